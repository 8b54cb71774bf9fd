"""
DeePMD-kit: `DEEPMD INFO    batch    1000: trn: rmse = 1.97e+01, rmse_e = ..., lr = 9.50e-04`;
since 3.0 `Batch`.

The first of the errors, over all that is fitted, is the loss; TensorFlow's version prints none,
only times.  A batch is a step.  `Trained model has been saved to:` stands behind the last one, as
TensorFlow's `finished training` does.

Source: `format_training_message` of deepmd/loggers/training.py, `run` of
deepmd/pt/train/training.py, `train` of deepmd/tf/train/trainer.py, deepmodeling/deepmd-kit 2, 3.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "deepmd"
FRAMEWORK = "DeePMD-kit"
TRIGGERS = (r"DEEPMD [A-Z]+ ",)
_SAYS = r"\bDEEPMD INFO {1,8}"
_BATCH = _SAYS + r"[Bb]atch {1,12}(?P<step>[0-9]{1,12})"
RULES = (
    rule("train", _BATCH + r": (?:\w{1,60}_)?trn: ", loss_name="rmse",
         says=fields(loss=r"\brmse = #", lr=r", lr = #")),
    rule("eval", _BATCH + r": (?:\w{1,60}_)?val: ", loss_name="rmse",
         says=fields(loss=r"\brmse = #")),
    rule("train", _BATCH + r"(?= training time [0-9.]{1,12} s)"),
    rule("checkpoint_saved", _SAYS + r"Saved model to \S{0,400}-(?P<step>[0-9]{1,12})\.\w{1,6}$"),
    rule("finished", _SAYS + r"(?:Trained model has been saved to: |finished training$)"),
)  # fmt: skip


def Reader() -> RuleReader:
    return RuleReader(RULES)
