"""
VITS and the voice conversion code built on it (FreeVC, so-vits-svc, RVC, Bert-VITS2).

    INFO:freevc:Train Epoch: 1515 [70%]
    INFO:freevc:[2.06, 3.00, 14.57, 20.43, 2.23, 845200, 0.00016]
    INFO:freevc:====> Epoch: 1515

The list holds the losses of a generator and its discriminator, which need not fall, and nothing
in it says what it is; only epochs are taken.

Source: `train_and_evaluate` of train_ms.py, jaywalnut310/vits; train.py, OlaWod/FreeVC.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, rule

FORMAT = "vits"
FRAMEWORK = "VITS"
TRIGGERS = (
    r"Train Epoch: [0-9]+ \[[0-9]+%\]",
    r"====> Epoch: [0-9]+",
    r"Saving model and optimizer state at iteration [0-9]+ to ",
)
RULES = (
    rule("train", r"\bTrain Epoch: (?P<epoch>[0-9]{1,9}) \[[0-9]{1,3}%\]"),
    rule("train", r"====> Epoch: (?P<epoch>[0-9]{1,9})\b"),
    rule("checkpoint_saved", r"\bSaving model and optimizer state at iteration "),
)


def Reader() -> RuleReader:
    return RuleReader(RULES)
