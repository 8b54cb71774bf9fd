"""
big_vision: `[50] training_loss = 6.77927`, a metric a line, and how many steps there are.

    NOTE: Steps:9380/9380 [100.0%]

The steps that a note counts are the run's; "Done!" behind it is told by its place in the log.

Source: `BigVisionMetricWriter.measure` and `Chrono` of big_vision/utils.py,
google-research/big_vision.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import NUMBER, Late, number

FORMAT = "big_vision"
FRAMEWORK = "big_vision"
TRIGGERS = (
    r"\[[0-9]+\](?:\[0m)? training_loss = ",
    r"NOTE(?:\[0m)?: Steps:[0-9]+/[0-9]+ \[",
)
_LOSS = Late(rf"\[([0-9]{{1,12}})\](?:\[0m)? training_loss = ({NUMBER})\s*$")
_STEPS = Late(r"Steps:[0-9]{1,12}/([0-9]{1,12}) \[")


class Reader:
    """A point for each loss; the plan once it is noted."""

    def __init__(self) -> None:
        self._planned: int | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        text = text[:400]
        if found := _LOSS.search(text):
            return (Progress("train", int(found[1]), self._planned, loss=number(found[2]),
                             loss_name="training_loss"),)  # fmt: skip
        if (noted := _STEPS.search(text)) and int(noted[1]) != self._planned:
            self._planned = int(noted[1])
            return (Progress("plan", planned=self._planned),)
        return ()
