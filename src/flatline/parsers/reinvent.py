"""
REINVENT 4 (molecules by reinforcement learning): `Score: 0.66 Agent NLL: 34.79 Valid:  98% Step:
12`, one line a step.

Each stage counts from one; they are counted on.  The mean score is to rise.  A stage ends by its
score or by its number of steps, and the last one by

    Maximum number of steps of 300 reached in stage 2. Terminating all stages.

Source: reinvent/runmodes/RL/reports/ and run_staged_learning.py, MolecularAI/REINVENT4.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, NUMBER, Late, number

FORMAT = "reinvent"
FRAMEWORK = "REINVENT"
TRIGGERS = (
    r"\bScore: [0-9.nainf-]{1,12} Agent NLL: ",
    r"\bFinished stage [0-9]{1,4} >>>",
    r"\bMaximum number of steps of [0-9]{1,9} reached in stage [0-9]",
)
_STEP = Late(
    rf"\bScore: ({NUMBER}) Agent NLL: {NUMBER} Valid: {{1,3}}[0-9]{{1,3}}% Step: ([0-9]+)"
)
_STAGE = Late(r"\bFinished stage [0-9]{1,4} >>>")
_END = Late(r"\bMaximum number of steps of [0-9]{1,9} reached in stage [0-9]{1,4}\. Terminating")


class Reader:
    """A point for each step."""

    def __init__(self) -> None:
        self._before = self._last = 0

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        text = text[:LONGEST]
        if found := _STEP.search(text):
            self._last = int(found[2])
            step, score = self._before + self._last, number(found[1])
            return (Progress("train", step, loss=score, loss_name="score", falling=False),)
        if _STAGE.search(text):
            self._before, self._last = self._before + self._last, 0
        elif _END.search(text):
            return (Progress("finished", self._before + self._last),)
        return ()
