"""
Ray Train's tables: an iteration of a trainer, when it ended, and what it reported.

    Training finished iteration 3 at 2025-04-08 06:28:34. Total running time: 7min 13s
    │ time_this_iter_s      144.0 │
    │ loss                 0.3847 │

A trainer reports what it likes, once an epoch as a rule.  Tables of Tune's trials say which trial
they are of, and are left alone.

Source: `AirResultProgressCallback._print_result` of ray-project/ray
python/ray/tune/experimental/output.py (2.7 and later).
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import NUMBER, Late, number

FORMAT = "ray_train"
FRAMEWORK = "ray"
ANCHORED = True
TRIGGERS = (
    "Training finished iteration [0-9]",
    "│ time_this_iter_s ",
    "│ (?:train(?:ing)?[_/])?loss  ",
)
_BEGINS = Late(r"\s*Training finished iteration (\d{1,9}) at \d{4}-")
_TOOK = Late(rf"│ time_this_iter_s {{1,40}}({NUMBER}) {{0,9}}│")
_LOSS = Late(rf"│ ((?:train(?:ing)?[_/])?loss) {{1,60}}({NUMBER}) {{0,9}}│")


class Reader:
    """Reads one stream; holds the iteration at hand."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._took_s: float | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """A training point with the loss that an iteration reported."""
        text = text[:400]
        if found := _BEGINS.match(text):
            self._step, self._took_s = int(found[1]), None
        elif found := _TOOK.search(text):
            self._took_s = number(found[1])
        elif (found := _LOSS.search(text)) and self._step is not None:
            step, self._step = self._step, None
            return (
                Progress("train", step, loss=number(found[2]), loss_name=found[1],
                         step_s=self._took_s),
            )  # fmt: skip
        return ()
