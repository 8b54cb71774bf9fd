"""
fairseq and metaseq: `epoch 001:   10 / 1000 loss=15.1, ..., num_updates=10, lr=..., gnorm=...`.

The counter behind the epoch counts batches of that epoch, `num_updates` the optimizer steps of the
run, which is the step.  The `json` format says the same as one object a line, values as texts.
`train | epoch 001 | ...` sums an epoch up and is left out, unless its loss is no number: a step
that the loss scaler skips is in no sum.  `valid | ...` is evaluation.

Source: `SimpleProgressBar`, `JsonProgressBar` and `TqdmProgressBar` of
fairseq/logging/progress_bar.py, `train` and `main` of fairseq_cli/train.py,
`save_checkpoint` and `load_checkpoint` of checkpoint_utils.py and trainer.py; 0.9 to 0.12.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "fairseq"
FRAMEWORK = "fairseq"
TRIGGERS = (
    r"epoch [0-9]+: +[0-9]+ / [0-9]+ .*num_updates=",
    r"\"num_updates\": \"[0-9]",
    r"\"train_loss\": \"-?(nan|inf)\"",
    r"(train|valid) \| epoch [0-9]+ \|",
    r"[Ss]aved checkpoint .*\(epoch [0-9]+ @ [0-9]+ updates",
    r"[Ll]oaded checkpoint .*\(epoch [0-9]+ @ [0-9]+ updates",
    r"No existing checkpoint found ",
    r"done training in [0-9.]+ seconds",
)
_PLACE = r"\(epoch (?P<epoch>[0-9]{1,7}) @ (?P<step>[0-9]{1,12}) updates"
RULES = (
    rule(
        "train",
        r"\bepoch (?P<epoch>[0-9]{1,7}): +[0-9]{1,12} / (?P<of>[0-9]{1,12})(?= .*\bnum_updates=)",
        unit="words/s",
        says=fields(
            step=r"\bnum_updates=([0-9]{1,12})",
            loss=r"(?<![\w])loss=#",
            lr=r"\blr=#",
            norm=r"\bgnorm=#",
            speed=r"\bwps=#",
            per_s=r"\bups=#",
        ),
    ),
    rule("eval", r'\{(?="epoch": [0-9]+, "valid_loss": )', says=fields(loss=r'"valid_loss": "#"')),
    rule(
        "train",
        r'\{"epoch": (?P<epoch>[0-9]{1,7}), "update": <#>(?=, "loss": )',
        unit="words/s",
        says=fields(
            step=r'"num_updates": "([0-9]{1,12})"',
            loss=r'"loss": "#"',
            lr=r'"lr": "#"',
            norm=r'"gnorm": "#"',
            speed=r'"wps": "#"',
            per_s=r'"ups": "#"',
        ),
    ),
    rule(
        "train",
        r'\{"epoch": (?P<epoch>[0-9]{1,7}), (?="train_loss": "-?(?:nan|inf)")',
        says=fields(step=r'"train_num_updates": "([0-9]{1,12})"', loss=r'"train_loss": "#"'),
    ),
    rule(
        "train",
        r"\btrain \| epoch (?P<epoch>[0-9]{1,7}) \| (?=loss -?(?:nan|inf) )",
        says=fields(step=r"\bnum_updates ([0-9]{1,12})", loss=r"\bloss #"),
    ),
    rule(
        "eval",
        r"\bvalid \| epoch (?P<epoch>[0-9]{1,7}) \|",
        says=fields(loss=r"\| loss #", step=r"\bnum_updates ([0-9]{1,12})"),
    ),
    rule(None, r"\btrain \| epoch [0-9]{1,7} \|"),
    rule("checkpoint_saved", r"\b[Ss]aved checkpoint .{1,400}?" + _PLACE),
    rule("checkpoint_loaded", r"\b[Ll]oaded checkpoint .{1,400}?" + _PLACE),
    rule("fresh", r"\bNo existing checkpoint found "),
    rule("finished", r"\bdone training in [0-9.]{1,16} seconds"),
)


def Reader() -> RuleReader:
    return RuleReader(RULES)
