"""
nerfstudio's table: `Step (% Done)  Train Iter (time)  ...`, then `20 (0.07%)   40.1 ms   ...`.

Rows are read below the heading only.  The columns are as wide as twenty characters, and stand in
the order in which they were first measured; the loss is not among them.  The title of the box
behind the last row says that training is over: a run that was interrupted prints none.

Source: `LocalWriter` and `_format_time` of nerfstudio/utils/writer.py, `Trainer.train` of
nerfstudio/engine/trainer.py, 0.1 to 1.1.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, Late

FORMAT = "nerfstudio"
FRAMEWORK = "nerfstudio"
ANCHORED = True
TRIGGERS = (r"Step \(% Done\) +", r"[0-9] \([0-9.]{4,6}%\)   +", r" Training Finished ")
_WIDTH = 20
_HEADING = Late(r"\s*Step \(% Done\) +(?=[A-Z])")
_ROW = Late(r"\s*([0-9]{1,12}) \([0-9]{1,3}\.[0-9]{2}%\)   +(?=[0-9])")
_TIME = Late(r"(?:([0-9]{1,6}) s, )?([0-9]{1,6}\.[0-9]{3}) ms\s*$")
_OVER = Late(r"[^\w\s]{2,200} [^\w\s]{0,8} ?Training Finished [^\w\s]{0,8} ?[^\w\s]{2,200}\s*$")


class Reader:
    """Reads one stream; knows which column holds the time of an iteration."""

    def __init__(self) -> None:
        self._column: int | None = None
        self._begun = False

    def feed(self, text: str) -> Iterable[Progress]:
        """One training point a row, and the end."""
        text = text[:LONGEST].lstrip()
        if _HEADING.match(text):
            at = text.find("Train Iter (time)")
            self._begun, self._column = True, at if at > 0 else None
            return ()
        if self._begun and _OVER.match(text):
            return (Progress("finished"),)
        row = _ROW.match(text)
        if row is None or not self._begun:
            return ()
        return (Progress("train", step=int(row[1]), step_s=self._step_s(text)),)

    def _step_s(self, text: str) -> float | None:
        if self._column is None:
            return None
        found = _TIME.match(text[self._column : self._column + _WIDTH])
        return int(found[1] or 0) + float(found[2]) / 1e3 if found else None
