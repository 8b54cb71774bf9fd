"""
torchtitan: `step: 10  loss: 8.1  grad_norm: 1.2  memory: 9.4GiB(12.0%)  tps: 1,234 ...`.

`tps` is tokens a second and device.  The plan stands in "Trainer is initialized with ... total
steps N" or, of older versions, in "Training starts at step 1, with ... total steps N".  A line
that begins `validate step:` is evaluation.  "Finished loading the checkpoint" is said of initial
weights too and is not read: where training starts says whether it went on (see `markers`).

Source: `MetricsProcessor.log` and `log_validation` of torchtitan/components/metrics.py (`wps:` in
train.py of 2024), `Trainer.train` and `__init__` of train.py, `CheckpointManager.save` of
components/checkpoint.py; 2024 to 2026.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "torchtitan"
FRAMEWORK = "torchtitan"
TRIGGERS = (
    r"step: +[0-9]+ +loss: .*(memory|tps|wps): ",
    r"Trainer is initialized with .*total steps [0-9]",
    r"Training starts at step [0-9]",
    r"Finished (saving|loading) the checkpoint",
)
_FIELDS = {
    "loss": r"\bloss: +#",
    "norm": r"\bgrad_norm: +#",
    "speed": r"\b(?:tps|wps): +#",
    "data": r"\btime(?:_metrics)?/data_loading(?:\(s\))?: +#",
}
RULES = (
    rule("eval", r"\bvalidate step: +(?P<step>[0-9]{1,12})(?= +loss:)",
         says=fields(loss=r"\bloss: +#")),
    rule("train", r"(?:^|[^\w:])step: +(?P<step>[0-9]{1,12})(?= +loss: .*\b(?:memory|tps|wps): )",
         unit="tokens/s/GPU", says=fields(**_FIELDS)),
    rule("fresh", r"\bTraining starts at step (?P<step>[01])\b(?:.{0,300}?\btotal steps "
         r"(?P<planned>[0-9]{1,12}))?"),
    rule("plan", r"\bTrainer is initialized with .{1,400}?\btotal steps (?P<planned>[0-9]{1,12})"),
    rule("checkpoint_saved", r"\bFinished saving the checkpoint\b"),
    rule("checkpoint_loaded", r"\bFinished loading the checkpoint\b"),
)  # fmt: skip


def Reader() -> RuleReader:
    return RuleReader(RULES)
