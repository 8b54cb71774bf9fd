"""
Chainer's trainer, and ESPnet 1 on it: the table of `PrintReport`, the log that `LogReport` keeps.

A table's heading names its columns, each as wide as its name and ten characters at the least; what
was not measured is left blank.  The log is a list of objects, a line a value.  Both hold the
iteration of the run and means since the row before; `main/loss` is the training loss,
`validation/main/loss` an evaluation.

ESPnet leaves out an update whose gradient is NaN and says so, which is sound now and then.  Where
it left out every one since the row before, the gradient of that row is no number.

Refused: of a row with blanks what stands beside its columns; tables without an iteration and a
`main/loss` column.

Source: chainer/training/extensions/print_report.py and log_report.py, chainer 1.11 to 7;
`CustomUpdater.update_core` of espnet/asr/pytorch_backend/asr.py, espnet 0.3 to 202412.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, number

FORMAT = "chainer"
FRAMEWORK = "chainer"
TRIGGERS = (
    r"main/loss",
    r"\"iteration\": [0-9]",
    r"\"epoch\": [0-9]",
    r"[0-9]      +[0-9]+   +",
    r"rad norm is nan\. Do not update model",
)
_ENTRY = re.compile(r"\s*\"([\w/]{1,60})\": (-?(?:[0-9][0-9.eE+-]{0,30}|Infinity)|NaN),?\s*$")
_COLUMN = re.compile(r"\S+")
_VALUE = re.compile(r"-?(?:[0-9][0-9.e+-]{0,30}|nan|inf)")
LEFT_OUT = "grad norm is nan"
MAIN, HELD_OUT = "main/loss", "validation/main/loss"
COLUMNS = 64
EVERY = 0.99


class Reader:
    """Reads one stream; knows its columns, its last iteration and the updates left out since."""

    def __init__(self) -> None:
        self._columns: list[tuple[str, int]] | None = None
        self._record: dict[str, str] = {}
        self._iteration = 0
        self._left_out = 0

    def feed(self, text: str) -> Iterable[Progress]:
        """A training point for a row or a record, and an evaluation where it holds one."""
        text = text[:LONGEST].expandtabs(1)
        if LEFT_OUT in text:
            self._left_out += 1
            return ()
        if entry := _ENTRY.match(text):
            return self._entry(entry[1], entry[2])
        if MAIN in text:
            named = [(found[0], found.start()) for found in _COLUMN.finditer(text)]
            whole = {"iteration", MAIN} <= {name for name, _ in named}
            self._columns = named if whole and len(named) <= COLUMNS else None
            return ()
        row = self._row(text)
        return self._told(row) if row else ()

    def _entry(self, name: str, value: str) -> Iterable[Progress]:
        """A line of the log; its record is told once its iteration and its loss are known."""
        if name in self._record:
            self._record = {}
        if len(self._record) < COLUMNS:
            self._record[name] = value
        if name not in ("iteration", MAIN, HELD_OUT) or "iteration" not in self._record:
            return ()
        if name == "iteration":
            return self._told(self._record) if MAIN in self._record else ()
        return self._told({key: self._record[key] for key in ("iteration", name)})

    def _row(self, text: str) -> Mapping[str, str] | None:
        """Values by column: as many as there are columns, or each where its column stands."""
        columns = self._columns
        if columns is None:
            return None
        values = text.split()
        if len(values) == len(columns):
            row = {name: value for (name, _), value in zip(columns, values, strict=True)}
        else:
            row = {}
            for value in _COLUMN.finditer(text):
                name = next((name for name, at in columns if at == value.start()), None)
                if name is None:
                    break  # what follows was moved
                row[name] = value[0]
        return row if all(map(_VALUE.fullmatch, row.values())) else None

    def _told(self, row: Mapping[str, str]) -> Iterable[Progress]:
        iteration, epoch = number(row.get("iteration")), number(row.get("epoch"))
        if iteration is None or not math.isfinite(iteration):
            return ()
        step = int(iteration)
        said = []
        if MAIN in row or HELD_OUT not in row:
            every = self._left_out >= EVERY * max(step - self._iteration, 1)
            norm = math.nan if every and step > self._iteration else None
            loss = number(row.get(MAIN))
            said.append(
                Progress("train", step, epoch=epoch, loss=loss, loss_name=MAIN, grad_norm=norm)
            )
            self._iteration, self._left_out = step, 0
        if HELD_OUT in row and (held_out := number(row[HELD_OUT])) is not None:
            said.append(Progress("eval", step, epoch=epoch, loss=held_out, loss_name=HELD_OUT))
        return said
