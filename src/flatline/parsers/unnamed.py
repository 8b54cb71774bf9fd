"""
Training loops in words that no other format knows, as each program makes its own: `s 150 | ce
4.418 | gn 0.50 | 8.75 s`, rows of JSON with short keys, tables under a heading.

Asked only of files in which nothing else told of a step, or how long one took, for the lines that
a sample of the file taught it (`_learned`).

Source: the step lines of some hundred programs, none of which agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from flatline.model import Progress
from flatline.parsers import Columns
from flatline.parsers._epochs import Epochs
from flatline.parsers._learned.curves import Curve
from flatline.parsers._learned.numbered import row
from flatline.tracks import LEARNED

FORMAT = LEARNED
FRAMEWORK = None
TRIGGERS = ()


class Reader:
    """Reads one stream by what was learned, and counts on over its epochs."""

    def __init__(self, curves: Sequence[Curve] = ()) -> None:
        self._curves = curves
        self._epochs = Epochs()

    def feed(self, text: str) -> Iterable[Progress]:
        """One training point, or nothing."""
        line = row(text)
        for curve in self._curves:
            point = curve.read(line)
            if point is not None:
                return (self._counted(point),)
        return ()

    def columns(self, text: str) -> Columns | None:
        """Where lines of this shape have their numbers; None where an epoch, which counts on over
        what was read before, or anything but a number stands in one of the places."""
        line = row(text)
        if line.low != text.lower():
            return None
        for curve in self._curves:
            if curve.read(line) is not None:
                return curve.columns(line)
        return None

    def _counted(self, point: Progress) -> Progress:
        """With the step counted over the whole run, where a count begins anew with each epoch."""
        if point.step is None or point.epoch is None:
            return point
        step, planned = self._epochs.over(point.step, point.planned, (point.epoch, None), None)
        return replace(point, step=step, planned=planned)
