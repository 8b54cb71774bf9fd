"""
VITS and the voice conversion code built on it (FreeVC, so-vits-svc, RVC, Bert-VITS2).

    INFO:freevc:Train Epoch: 1515 [70%]
    INFO:freevc:[2.06, 3.00, 14.57, 20.43, 2.23, 845200, 0.00016]
    INFO:freevc:====> Epoch: 1515
    INFO:voice:loss_disc=3.467, loss_gen=3.188, loss_fm=11.203,loss_mel=29.206, loss_kl=9.000

The list holds the losses of a generator and its discriminator, which need not fall, and nothing
in it says what it is: nothing of it is taken.  RVC names them, and cuts the distance between the
spectra, which is meant to fall, off at 75: it is taken unless the generator's loss is no number.

Source: `train_and_evaluate` of train_ms.py, jaywalnut310/vits; train.py, OlaWod/FreeVC;
infer/modules/train/train.py, RVC-Project.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from flatline.model import Progress
from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "vits"
FRAMEWORK = "VITS"
TRIGGERS = (
    r"Train Epoch: [0-9]+ \[[0-9]+%\]",
    r"====> Epoch: [0-9]+",
    r"Saving model and optimizer state at (iteration|epoch) [0-9]+ to ",
    r"loss_disc=[0-9.na]+, ?loss_gen=[0-9n]",
)
RULES = (
    rule(
        "train",
        r"\bloss_disc=<#>, ?loss_gen=(?P<loss>nan|inf)\b",
        loss_name="loss_gen",
        falling=False,
    ),
    rule(
        "train",
        r"\bloss_disc=<#>, ?loss_gen=<#>, ?loss_fm=<#>, ?",
        loss_name="loss_mel",
        says=fields(loss=r"\bloss_mel=#"),
    ),
    rule("train", r"\bTrain Epoch: (?P<epoch>[0-9]{1,9}) \[[0-9]{1,3}%\]"),
    rule("train", r"====> Epoch: (?P<epoch>[0-9]{1,9})\b"),
    rule("checkpoint_saved", r"\bSaving model and optimizer state at (?:iteration|epoch) "),
)


class Reader(RuleReader):
    """Keeps the epoch that named losses belong to."""

    def __init__(self) -> None:
        super().__init__(RULES)
        self._epoch: float | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        for said in super().feed(text):
            if said.epoch is not None:
                self._epoch = said.epoch
            yield replace(said, epoch=self._epoch) if said.kind == "train" else said
