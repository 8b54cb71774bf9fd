"""
pytorch-tabnet's end: `Early stopping occurred at epoch 52 with best_epoch = 37 and best_... = ...`
or `Stop training because you reached max_epochs = 50 with best_epoch = ...`.

Its epochs are read by `plain`.  Folds end each with such a line: of a stream that says so twice
the second is no end of a run.

Source: `EarlyStopping.on_train_end` of pytorch_tabnet/callbacks.py, dreamquark-ai/tabnet, 2 to 4.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, Late

FORMAT = "tabnet"
FRAMEWORK = "pytorch-tabnet"
TRIGGERS = (
    r"Early stopping occurred at epoch [0-9]",
    r"Stop training because you reached max_epochs = ",
)
_BEST = r" with best_epoch = [0-9]{1,7} and best_\w{1,80} = [-+0-9.e]{1,24}\s*$"
_STOPPED = Late(r"(?:^|\s)Early stopping occurred at epoch ([0-9]{1,7})" + _BEST)
_WHOLE = Late(r"(?:^|\s)Stop training because you reached max_epochs = ([0-9]{1,7})" + _BEST)


class Reader:
    """Counts the ends that were told."""

    def __init__(self) -> None:
        self._ends = 0

    def feed(self, text: str) -> Iterable[Progress]:
        """The end of the first; epochs are numbered from 0."""
        text = text[:LONGEST]
        found = _STOPPED.search(text)
        epoch = float(found[1]) if found is not None else None
        if found is None:
            found = _WHOLE.search(text)
            epoch = float(found[1]) - 1 if found is not None else None
        if found is None:
            return ()
        self._ends += 1
        return (Progress("finished", epoch=epoch),) if self._ends == 1 else ()
