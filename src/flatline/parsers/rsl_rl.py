"""
RSL-RL's blocks (legged robots, Isaac Lab): an iteration, its rates, the losses of its update.

    Learning iteration 812/1500
      Computation: 79731 steps/s (collection: 1.119s, learning 0.114s)
          Mean value_function loss: 0.0213

The value's loss is told, which is not meant to fall; inf or NaN in it says that the returns have
no end.  Its `steps/s` are those of the simulated robots.

Source: `OnPolicyRunner.log` of rsl_rl/runners/on_policy_runner.py, leggedrobotics/rsl_rl.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import NUMBER, Late, number

FORMAT = "rsl_rl"
FRAMEWORK = "rsl_rl"
ANCHORED = True
TRIGGERS = (
    r"Learning iteration [0-9]+/[0-9]+",
    r"Computation: [0-9]+ steps/s \(collection: ",
    r"(?:value_|Value )function loss: ",
)
_BEGINS = Late(r"\s*Learning iteration (\d{1,9})/(\d{1,9})\s*$")
_TOOK = Late(
    r"\s*Computation: \d{1,12} steps/s \(collection: ([\d.]{1,12})s, learning ([\d.]{1,12})s\)"
)
_LOSS = Late(rf"\s*(?:Mean value_function|Value function) loss: ({NUMBER})\s*$")


class Reader:
    """Reads one stream; holds the iteration at hand."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._planned: int | None = None
        self._took_s: float | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """A training point with the loss of an iteration's update."""
        text = text[:400]
        if found := _BEGINS.match(text):
            self._step, self._planned, self._took_s = int(found[1]), int(found[2]), None
        elif found := _TOOK.match(text):
            parts = [number(found[at]) for at in (1, 2)]
            self._took_s = sum(part for part in parts if part is not None)
        elif (found := _LOSS.match(text)) and self._step is not None:
            step, self._step = self._step, None
            return (
                Progress("train", step, planned=self._planned, loss=number(found[1]),
                         loss_name="value loss", falling=False, step_s=self._took_s),
            )  # fmt: skip
        return ()
