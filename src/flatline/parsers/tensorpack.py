"""
tensorpack: `Epoch 1 (global_step 468) finished, time:12.3 seconds.`, its scalars a line each
below.

Of the scalars that may be the loss the first that stands below an epoch's line is read, in every
epoch the same one.  Where a score or a reward stands among them it is not meant to fall.

Source: `TrainLoop` of tensorpack/train/base.py and `ScalarPrinter` of
tensorpack/callbacks/monitor.py, 0.8 to 0.11.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, NUMBER, Late, number

FORMAT = "tensorpack"
FRAMEWORK = "tensorpack"
TRIGGERS = (
    r" \(global_step [0-9]+\) finished, time:",
    r"@monitor\.py:[0-9]+\] [A-Za-z_/]*(cost|loss|score|reward): ",
)
_EPOCH = Late(r"\bEpoch ([0-9]{1,7}) \(global_step ([0-9]{1,12})\) finished, time:")
_SCALAR = Late(
    rf"@monitor\.py:[0-9]{{1,5}}\] ((?:total_|cross_entropy_|xent_)?(?:cost|loss)): ({NUMBER})"
)
_REWARDED = Late(r"@monitor\.py:[0-9]{1,5}\] [\w/]{0,60}(?:score|reward): ")


class Reader:
    """Reads one stream; keeps the epoch its scalars belong to."""

    def __init__(self) -> None:
        self._at: tuple[int, float] | None = None
        self._name: str | None = None
        self._falling = True

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        text = text[:LONGEST]
        if found := _EPOCH.search(text):
            self._at = int(found[2]), float(found[1])
            return (Progress("train", *self._place()),)
        if _REWARDED.search(text):
            self._falling = False
        scalar = _SCALAR.search(text)
        if scalar is None or self._at is None or self._name not in (None, scalar[1]):
            return ()
        self._name = scalar[1]
        step, planned, epoch = self._place()
        loss = number(scalar[2])
        self._at = None
        return (Progress("train", step, planned, epoch, loss, scalar[1], falling=self._falling),)

    def _place(self) -> tuple[int | None, None, float | None]:
        step, epoch = self._at or (None, None)
        return step, None, epoch
