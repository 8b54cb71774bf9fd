"""
DreamerV3's terminal: a rule with the step, and what was measured since the last one below it.

    ──────────── Step 183600 ────────────
    episode/score 512.2 / episode/length 500 / train/loss/dyn 3.11 / fps/policy 68.1

The score of an episode is what the policy is to raise; the losses of its world model and of its
actor are not told.  Steps are those of the environment.

Source: `TerminalOutput` of danijar/elements elements/logger.py; the metrics of danijar/dreamerv3.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import RISING, Progress
from flatline.parsers._rules import NUMBER, Late, number

FORMAT = "dreamer"
FRAMEWORK = "dreamer"
TRIGGERS = (
    r"(?:──|---) Step [0-9]",
    r"(?:^|\s|/ )episode/score [-+0-9n]",
    r"Reached run\.steps",
)
_HEAD = Late(r"(?:^|[\s\]])[─-]{2,80} Step ([0-9]{1,12}) [─-]{2,80}\s*$")
_SCORE = Late(rf"(?:^|\s)episode/score ({NUMBER})(?= /|\s*$)")
_SPEED = Late(rf"(?:^|\s)fps/policy ({NUMBER})(?= /|\s*$)")


class Reader:
    """Reads one stream; holds the step at hand."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._made = 0

    def feed(self, text: str) -> Iterable[Progress]:
        """A point with the score of the episodes since the last one."""
        text = text[:4000]
        if found := _HEAD.search(text):
            self._step = int(found[1])
        elif self._made and "Reached run.steps" in text:
            return (Progress("finished", self._made),)
        elif (found := _SCORE.search(text)) and self._step is not None:
            step, self._step = self._step, None
            self._made, speed = step, _SPEED.search(text)
            return (
                Progress("train", step, loss=number(found[1]), loss_name=RISING, falling=False,
                         throughput=number(speed[1]) if speed else None,
                         throughput_unit="frames/s" if speed else None),
            )  # fmt: skip
        return ()
