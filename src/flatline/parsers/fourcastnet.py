"""
FourCastNet: `Time taken for epoch 3 is 2399.6 sec`, then `Train loss: 0.24. Valid loss: 0.25`.

An epoch is all that is counted.  Parameters are printed as a name and a value with a blank between
(`max_epochs 150`); each rank says `DONE ---- rank 0` behind its last epoch.

Source: `Trainer.train` and the end of train.py, `YParams.log` of utils/YParams.py,
NVlabs/FourCastNet, and what was made from it.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, NUMBER, Late, number

FORMAT = "fourcastnet"
FRAMEWORK = None
TRIGGERS = (
    r"Time taken for epoch [0-9]+ is ",
    r"Train loss: [^ ]+ Valid loss: ",
    r" max_epochs [0-9]+$",
    r"DONE ---- rank [0-9]",
)
_EPOCH = Late(r"\bTime taken for epoch ([0-9]{1,7}) is [0-9.]{1,24} sec\s*$")
_LOSS = Late(rf"\bTrain loss: ({NUMBER})\. Valid loss: ({NUMBER})\s*$")
_PLAN = Late(r"(?:^|[ -])max_epochs ([0-9]{1,7})\s*$")
_DONE = Late(r"(?:^|[ -])DONE ---- rank [0-9]{1,7}\s*$")


class Reader:
    """Holds the epoch whose losses stand in the next line."""

    def __init__(self) -> None:
        self._epoch: float | None = None
        self._trained = False

    def feed(self, text: str) -> Iterable[Progress]:
        """An epoch with both its losses; the plan; the end, where any epoch was made."""
        text = text[:LONGEST]
        if found := _EPOCH.search(text):
            self._epoch = float(found[1])
            return ()
        if found := _PLAN.search(text):
            return (Progress("config", epochs=float(found[1])),)
        if _DONE.search(text):
            return (Progress("finished"),) if self._trained else ()
        found = _LOSS.search(text)
        if found is None or self._epoch is None:
            return ()
        epoch, self._epoch, self._trained = self._epoch, None, True
        return (
            Progress("train", epoch=epoch, loss=number(found[1]), loss_name="train loss"),
            Progress("eval", epoch=epoch, loss=number(found[2]), loss_name="valid loss"),
        )
