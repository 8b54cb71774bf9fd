"""
VITS and the voice conversion code built on it (FreeVC, so-vits-svc, RVC, Bert-VITS2).

    INFO:freevc:Train Epoch: 1515 [70%]
    INFO:freevc:[2.06, 3.00, 14.57, 20.43, 2.23, 845200, 0.00016]
    INFO:freevc:====> Epoch: 1515

    INFO:voice:loss_disc=3.568, loss_gen=3.584, loss_fm=10.479,loss_mel=22.264, loss_kl=3.902

The list holds the losses of a generator and its discriminator, which need not fall, and nothing
in it says what it is: nothing of it is taken.  RVC names them, and cuts its mel and KL losses off
(75, 9), so that these stay numbers whatever becomes of the model; the generator's is taken.

Source: `train_and_evaluate` of train_ms.py, jaywalnut310/vits; train.py, OlaWod/FreeVC;
infer/modules/train/train.py, RVC-Project.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, rule

FORMAT = "vits"
FRAMEWORK = "VITS"
TRIGGERS = (
    r"Train Epoch: [0-9]+ \[[0-9]+%\]",
    r"====> Epoch: [0-9]+",
    r"Saving model and optimizer state at (iteration|epoch) [0-9]+ to ",
    r"loss_disc=[0-9.na]+, loss_gen=[0-9n]",
)
RULES = (
    rule("train", r"\bTrain Epoch: (?P<epoch>[0-9]{1,9}) \[[0-9]{1,3}%\]"),
    rule("train", r"====> Epoch: (?P<epoch>[0-9]{1,9})\b"),
    rule("train", r"\bloss_disc=<#>, loss_gen=(?P<loss><#>)(?:,|$)", loss_name="generator loss",
         falling=False),
    rule("checkpoint_saved", r"\bSaving model and optimizer state at (?:iteration|epoch) "),
)  # fmt: skip


def Reader() -> RuleReader:
    return RuleReader(RULES)
