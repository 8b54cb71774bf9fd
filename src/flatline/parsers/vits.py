"""
VITS and the voice conversion code built on it (FreeVC, so-vits-svc, RVC, Bert-VITS2).

    INFO:freevc:Train Epoch: 1515 [70%]
    INFO:freevc:[2.06, 3.00, 14.57, 20.43, 2.23, 845200, 0.00016]
    INFO:freevc:====> Epoch: 1515
    INFO:44k:Losses: [2.54, 1.97, 6.75, 23.59, 1.14], step: 5800, lr: 9.9e-05, reference_loss: 36.0
    INFO:voice:loss_disc=3.467, loss_gen=3.188, loss_fm=11.203,loss_mel=29.206, loss_kl=9.000

The list holds the losses of a discriminator and its generator, which need not fall, the features'
and, always fourth, the distance between the spectra, which is meant to fall and is told, unless
any other is no number; where no words stand beside it step and rate are its last.  A warm start
from weights that a model's author gives out may leave nothing to fall.  RVC names the losses, and
cuts the distance off at 75.

so-vits-svc says that it could not load the last checkpoint, and begins anew; it says so where it
begins for the first time as well, without any.

Source: `train_and_evaluate` of train_ms.py, jaywalnut310/vits; train.py, OlaWod/FreeVC; train.py,
svc-develop-team/so-vits-svc; train_ms.py, fishaudio/Bert-VITS2; infer/modules/train/train.py,
RVC-Project.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import isfinite
from typing import TypeVar

from flatline.model import Progress
from flatline.parsers._rules import Late, RuleReader, fields, number, rule

FORMAT = "vits"
FRAMEWORK = "VITS"
TRIGGERS = (
    r"Train Epoch: [0-9]+ \[[0-9]+%\]",
    r"====> Epoch: [0-9]+",
    r"Saving model and optimizer state at (iteration|epoch) [0-9]+ to ",
    r"loss_disc=[0-9.na]+, ?loss_gen=[0-9n]",
    r"\bLosses: \[[0-9.na]+, ",
    r"^load old checkpoint failed",
    r"\{'train': \{'log_interval': [0-9]+, ",
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


_VALUE = r"(?:[0-9]{1,12}(?:\.[0-9]{1,20})?(?:e-?[0-9]{1,3})?|nan|inf)"
_LIST = Late(
    rf"\[({_VALUE}(?:, {_VALUE}){{4,9}})(?:, ([0-9]{{1,12}}), ({_VALUE})\]\s*$"
    rf"|\], step: ([0-9]{{1,12}}), lr: ({_VALUE})(?:,|$))"
)
_EPOCHS = Late(r"\{'train': \{'log_interval': .{1,400}?'epochs': ([0-9]{1,9})[,}]")
_MEL = 3
"""Where in the list the distance of the spectra stands."""
_LISTS = 4_000
"""Lists that are sought below their epoch's line: of a file so many tables are read."""
Line = TypeVar("Line")


def _listed(text: str, epoch: float | None) -> Progress | None:
    """What a list of losses says."""
    found = _LIST.search(text[:1_000])
    if found is None:
        return None
    values = [number(one) for one in found[1].split(", ")]
    lost = next((one for one in values if one is not None and not isfinite(one)), None)
    return Progress(
        "train", int(found[2] or found[4]), epoch=epoch, loss_name="loss_mel",
        loss=values[_MEL] if lost is None else lost, lr=number(found[3] or found[5]),
    )  # fmt: skip


class Reader(RuleReader):
    """Keeps the epoch that losses belong to, and how many there are to be."""

    def __init__(self) -> None:
        super().__init__(RULES)
        self._epoch: float | None = None
        self._epochs: int | None = None
        self._below = False
        self._listed = 0

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        self._below = False
        if "Losses: [" in text:
            point = _listed(text, self._epoch)
            self._listed += point is not None
            return () if point is None else (point,)
        if text.startswith("load old checkpoint failed"):
            return (Progress("fresh"),)
        if found := _EPOCHS.search(text[:4_096]):
            self._epochs = int(found[1])
            return ()
        return tuple(
            self._placed(said, text) for said in super().feed(text) if self._says(said, text)
        )

    def _says(self, said: Progress, text: str) -> bool:
        """Whether a line says more than the list of losses below it."""
        if said.kind != "train" or said.epoch is None:
            return True
        self._epoch = said.epoch
        heads = "Train Epoch: " in text
        self._below = heads and self._listed < _LISTS
        ends = not heads and said.epoch == self._epochs
        return ends or not self._listed or (heads and not self._below)

    def _placed(self, said: Progress, text: str) -> Progress:
        if "====> Epoch: " in text and said.epoch == self._epochs and self._listed:
            return Progress("finished", epoch=said.epoch)
        return replace(said, epoch=self._epoch) if said.kind == "train" else said

    def rows(self, lines: Iterable[tuple[Line, str]]) -> Iterator[tuple[Line, Progress]]:
        """The list below the line of its epoch."""
        if not self._below:
            return
        for line, text in lines:
            point = None if "Losses: [" in text else _listed(text, self._epoch)
            if point is not None:
                self._listed += 1
                yield line, point
            return
