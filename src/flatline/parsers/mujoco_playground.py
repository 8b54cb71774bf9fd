"""
MuJoCo Playground's and Brax's PPO: the steps and the reward of each evaluation.

    60162048: reward=24.260
    Done training.
    Time to JIT compile: 211.331

A point is an evaluation; the steps between two are as many as the plan's parts, of which ten are
usual.  That training is done is heard only behind a point.

Source: learning/train_jax_ppo.py of google-deepmind/mujoco_playground.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import RISING, Progress
from flatline.parsers._rules import NUMBER, Late, number

FORMAT = "mujoco_playground"
FRAMEWORK = "mujoco_playground"
ANCHORED = True
TRIGGERS = (
    r"[0-9]: reward=[-+0-9n]",
    r"Done training\.",
)
_POINT = Late(rf"(?:^|\] )([0-9]{{1,15}}): reward=({NUMBER})(?:\s|$)")
_DONE = Late(r"(?:^|\] )Done training\.\s*$")


class Reader:
    """Reads one stream; the end is told of one in which a point was."""

    def __init__(self) -> None:
        self._step: int | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """A point for each evaluation."""
        text = text[:400]
        if found := _POINT.search(text):
            self._step = int(found[1])
            value = number(found[2])
            return (
                Progress("train", self._step, loss=value, loss_name=RISING, falling=False),
                Progress("eval", self._step, loss=value, loss_name="reward", falling=False),
            )
        if self._step is not None and _DONE.search(text):
            return (Progress("finished", self._step),)
        return ()
