"""
GluonTS: the lines of the trainer of its MXNet models.

    INFO:gluonts.trainer:Epoch[3] Learning rate is 0.001
    INFO:gluonts.trainer:Epoch[3] Evaluation metric 'epoch_loss'=4.718054
    INFO:gluonts.trainer:Epoch[3] Evaluation metric 'validation_epoch_loss'=4.902
    INFO:gluonts.trainer:End model training

The metric named `epoch_loss` is the mean of the training's batches.

Source: `Trainer.__call__` of gluonts/mx/trainer/_base.py, awslabs/gluonts.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, rule

FORMAT = "gluonts"
FRAMEWORK = "gluonts"
TRIGGERS = (
    r"Epoch\[[0-9]+\] Evaluation metric '(validation_)?epoch_loss'=",
    r":End model training",
)
RULES = (
    rule("train", r"\bEpoch\[(?P<epoch>[0-9]{1,7})\] Evaluation metric 'epoch_loss'=(?P<loss><#>)",
         loss_name="epoch_loss"),
    rule("eval", r"\bEpoch\[(?P<epoch>[0-9]{1,7})\] Evaluation metric 'validation_epoch_loss'="
         r"(?P<loss><#>)"),
    rule("finished", r"\bgluonts[\w.]{0,40}:End model training\s*$"),
)  # fmt: skip


def Reader() -> RuleReader:
    return RuleReader(RULES)
