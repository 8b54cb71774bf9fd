"""
TensorFlow estimators, Tensor2Tensor and TPUEstimator: `loss = 7.9, step = 100 (4.1 sec)`.

The seconds in brackets are those since the last such line, not a step's; `global_step/sec` is.
"Loss for final step" is printed once the planned steps are done.

Refused: "Saving checkpoints for 100 into ...", which is said before anything is written.

Source: `LoggingTensorHook`, `StepCounterHook` and `CheckpointSaverHook` of
tensorflow/python/training/basic_session_run_hooks.py; `Estimator.train` of
tensorflow_estimator/python/estimator/estimator.py; 1.x to 2.15.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "estimator"
FRAMEWORK = "tensorflow"
TRIGGERS = (
    r"loss = [-+0-9naif.e]+, (global_)?step = [0-9]",
    r"Loss for final step: ",
    r"Restoring parameters from .*-[0-9]+",
)
RULES = (
    rule("train", r"(?:^|\s|:)(?=loss = <#>, (?:global_)?step = )", says=fields(loss=r"\bloss = #",
         step=r"\bstep = ([0-9]{1,12})")),
    rule("finished", r"\bLoss for final step: "),
    rule("checkpoint_loaded", r"\bRestoring parameters from \S{1,400}-(?P<step>[0-9]{1,12})\s*$"),
)  # fmt: skip


def Reader() -> RuleReader:
    return RuleReader(RULES)
