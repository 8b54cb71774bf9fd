"""
Keras 2 and 3 and tf.keras: `Epoch 2/5`, then `12/58 [==>..] - loss: 1.2` in any of its shapes.

Guaranteed: a bar is training only below an `Epoch n/m` line and until that epoch's bar is full:
`evaluate` and `predict` draw the same bar without one.  The step counts over epochs, the plan is
epochs x batches.  A full bar with `val_loss` behind it is a training point and an evaluation; it
is one without an epoch above it as well, of no known step, for only `fit` evaluates beside it.  Of
bars glued to one another or to other text (copies lose the carriage returns between them) the
last is read: the count is as wide as the total, so its digits are known from those before it.
"Invalid loss, terminating training" is a NaN at that batch.  DeepCTR-Torch prints the same two
lines of an epoch that it has made, with no bar and no dash before the time.

Refused: bars without an epoch, `predict` bars, an unknown total (`12/Unknown`) as a plan.

Source: `keras.utils.Progbar`, `ProgbarLogger`, `ModelCheckpoint`, `EarlyStopping`,
`TerminateOnNaN` of Keras 2.0 to 3.15, verbose 1 and 2; `BaseModel.fit` of DeepCTR-Torch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from flatline.model import Progress

FORMAT = "keras"
FRAMEWORK = "keras"
ANCHORED = True
TRIGGERS = (
    r"Epoch [0-9]+/[0-9]+",
    r"[mun]?s/step - ",
    r"(?:==|=>|>\.|\.\.)\] - ",
    r"[0-9]m?s(/(step|epoch))? - loss: ",
    r"Epoch [0-9]+: (saving model to|[a-z_]+ improved from|early stopping)",
    r"Batch [0-9]+: Invalid loss, terminating training",
)

_NUMBER = r"([-+]?(?:[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?|nan|inf))(?![\w])"
_EPOCH = re.compile(
    r"\s*Epoch ([0-9]{1,9})/([0-9]{1,9})\s*"
    r"(?:[\[(]?\d{1,4}[-/:]\d\d?[-/:]\d{1,4}[ T\d:.,]{0,20}[\])]?\s*)?$"
)
"""A callback may print when it begins behind it."""
_BAR = re.compile(
    r"[\s\x08]*([0-9]{1,12})/([0-9]{1,12}|Unknown) +(?:\[[=>.]+\]|[━╸ ]*)? *(?:- )?"
    r"(?=[^-]*(?:[0-9]s\b|s/(?:step|sample|epoch)|ETA))"
)
_GLUED = re.compile(
    r"([0-9]{1,24})/([0-9]{1,12}) (?=(?:\[[=>.]{1,99}\]|[━╸]{1,99}) *"
    r"(?:- )?[^-]{0,99}?(?:[0-9]s\b|s/step|ETA))"
)
"""The digits before the slash may end a number that was printed before it."""
_FIRST_TF1 = re.compile(r"\s*(?:- )?[0-9]{1,9}m?s - (?:loss|[a-z_]*acc)")
_LOSS = re.compile(r"- loss: {1,2}" + _NUMBER, re.I)
_VAL_LOSS = re.compile(r"- val_loss: {1,2}" + _NUMBER, re.I)
_RATE = re.compile(r"- (?:lr|learning_rate): " + _NUMBER, re.I)
_STEP_TIME = re.compile(r"\b([0-9]+)(s|ms|us|ns)/step")
_UNITS_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SAVED = re.compile(r"Epoch 0{0,9}([0-9]{1,9}): [^\n]{0,200}saving model to ")
_STOPPED = re.compile(r"Epoch 0{0,9}([0-9]{1,9}): early stopping")
_INVALID = re.compile(r"Batch ([0-9]{1,12}): Invalid loss, terminating training")


_LONGEST = 4_096
"""Characters of a line that are read."""


def _number(found: re.Match[str] | None) -> float | None:
    try:
        return None if found is None else float(found[1])
    except ValueError:
        return None


def _last_drawn(text: str) -> str:
    """From its last bar on; as far as it is read where no bar can be told from what stands
    before it."""
    read = text[-_LONGEST:]
    last = max(_GLUED.finditer(read), key=re.Match.start, default=None)
    count = last[1][-len(last[2]) :] if last else "0"
    if last is None or not 0 < int(count) <= int(last[2]):
        return text[:_LONGEST]
    return count + read[last.end(1) :]


def _step_s(text: str) -> float | None:
    found = _STEP_TIME.search(text)
    return int(found[1][:12]) * _UNITS_S[found[2]] if found else None


class Reader:
    """Reads one stream; knows the epoch it is in, if any, and how far its bar is."""

    def __init__(self) -> None:
        self._epoch: int | None = None
        self._epochs = 0
        self._n = 0
        self._total: int | None = None
        self._base = 0
        self._redrawn = False

    def feed(self, text: str) -> Iterable[Progress]:
        """A training point, an evaluation, or both where one bar carries both losses."""
        whole, text = text, _last_drawn(text)
        self._redrawn = "ETA: " in whole and whole != text
        if found := _EPOCH.match(text):
            self._begin(int(found[1]), int(found[2]))
            return ()
        if found := _BAR.match(text):
            return self._bar(found, text)
        if self._epoch is not None and _FIRST_TF1.match(text):
            return self._losses(text, None, None)
        return self._message(text)

    def _begin(self, epoch: int, epochs: int) -> None:
        if self._epoch is not None and epoch == self._epoch + 1:
            self._base += self._total if self._total is not None else self._n
        elif epoch == 1:
            self._base = 0
        elif self._total is not None:
            self._base = (epoch - 1) * self._total
        self._epoch, self._epochs, self._n = epoch, epochs, 0

    def _bar(self, found: re.Match[str], text: str) -> Iterable[Progress]:
        n = int(found[1])
        total = int(found[2]) if found[2] != "Unknown" else None
        full = self._total is not None and self._n >= self._total
        if self._epoch is None or n < self._n or (full and (n != self._n or total != self._total)):
            return self._evaluation(n, total, text)
        if n == self._n and full:
            return ()
        if self._epoch > 1 and self._base == 0 and total is not None:
            self._base = (self._epoch - 1) * total
        self._n, self._total = n, total
        planned = self._epochs * total if total is not None else None
        return self._losses(text, self._base + n, planned)

    def _evaluation(self, n: int, total: int | None, text: str) -> Iterable[Progress]:
        """The bar of `evaluate`, once it is full; of `fit`, whose epoch was not read."""
        loss = _number(_LOSS.search(text))
        if loss is None or n != total:
            return ()
        if self._epoch is None and self._redrawn and _VAL_LOSS.search(text):
            return (Progress("train"),)  # of which fold or trial, and so its course, is not known
        return (Progress("eval", loss=loss),)

    def _losses(self, text: str, step: int | None, planned: int | None) -> Iterable[Progress]:
        epoch = float(self._epoch) if self._epoch is not None else None
        train = Progress(
            "train",
            step=step,
            planned=planned,
            epoch=epoch,
            loss=_number(_LOSS.search(text)),
            lr=_number(_RATE.search(text)),
            step_s=_step_s(text),
        )
        held_out = _number(_VAL_LOSS.search(text))
        if held_out is None:
            return (train,)
        return (train, Progress("eval", step, planned, epoch, held_out, "val_loss"))

    def _message(self, text: str) -> Iterable[Progress]:
        if found := _SAVED.search(text):
            return (Progress("checkpoint_saved", epoch=float(found[1])),)
        if found := _STOPPED.search(text):
            return (Progress("finished", epoch=float(found[1])),)
        if found := _INVALID.search(text):
            return (Progress("train", step=self._base + int(found[1]), loss=math.nan),)
        return ()
