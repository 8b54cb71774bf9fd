"""
fastai's table of epochs: `0  0.851  0.627  0.750  00:12`, and the list a plain terminal gets.

A row is one whole epoch, counted from 0; its columns are epoch, training loss, validation loss,
metrics and the epoch's time.  Where fit is called without progress bars a row is printed as a
Python list, `[0, 0.851, 0.627, 0.750, '00:12']`.  Without the heading (`epoch  train_loss ...`)
bare columns of numbers are not read: anything prints those.  fastai 1.0 counts from 1, has no
time in its rows until 1.0.40, and without bars prints `Total time: 01:02` below the last one.

Refused: the step, for a row does not say how many batches an epoch has.

Source: `Recorder._maybe_average_names`, `Recorder.after_epoch` of fastai/learner.py and
`ProgressCallback._write_stats` of fastai/callback/progress.py, 2.x; `MasterBar` of fastprogress.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, NUMBER, Late, number

FORMAT = "fastai"
FRAMEWORK = "fastai"
ANCHORED = True
TRIGGERS = (
    r"epoch +train_loss +",
    r"     [0-9]+\.[0-9]{6}  +([0-9]+\.[0-9]{6}|nan|inf|None|[0-9]{2}:[0-9]{2})",
    r"     (nan|inf|-[0-9]+\.[0-9]{6})  +",
    r"[0-9]:[ -?]{2}'\]",
    r"Total time: [0-9:]+",
)
"""A row's second column is told by the blanks before it: every column is as wide as its name, and
as eight characters, and two blanks stand between.  Digits beside two blanks stand in any table."""
_LIST = Late(rf"\s*\[([0-9]{{1,7}}), ({NUMBER})((?:, (?:{NUMBER}|None))+), '[0-9:]{{5,12}}'\]\s*$")
_ROW = Late(rf"\s*([0-9]{{1,7}}) +({NUMBER})((?: +(?:{NUMBER}|None))*) +[0-9:]{{5,12}}\s*$")
_UNTIMED = Late(r"\s*([0-9]{1,7})  +([0-9]{1,9}\.[0-9]{6})((?: +[0-9]{1,9}\.[0-9]{6})+)\s*$")
_TOTAL = Late(r"\s*Total time: [0-9:]{4,12}\s*$")


class Reader:
    """Reads one stream; knows the columns once their heading was printed."""

    def __init__(self) -> None:
        self._columns: list[str] | None = None
        self._rows = 0

    def feed(self, text: str) -> Iterable[Progress]:
        """A row is one training point, and one evaluation where it has a validation loss."""
        text = text[:LONGEST]
        if "train_loss" in text:
            self._columns = text.replace("'", " ").replace(",", " ").strip(" []").split()
            return ()
        row = _LIST.match(text)
        if row is None and self._columns is not None:
            row = (
                _ROW.match(text) or ("time" not in self._columns and _UNTIMED.match(text)) or None
            )
        if row is None:
            return (Progress("finished"),) if self._rows and _TOTAL.match(text) else ()
        self._rows += 1
        epoch = float(row[1])
        said = [Progress("train", epoch=epoch, loss=number(row[2]), loss_name="train_loss")]
        others = row[3].replace(",", " ").split()
        has_valid = self._columns is None or "valid_loss" in self._columns
        if others and has_valid and (valid := number(others[0])) is not None:
            said.append(Progress("eval", epoch=epoch, loss=valid, loss_name="valid_loss"))
        return said
