"""
CleanRL: `global_step=2764, episodic_return=[3.5]`, one for each episode that ended.

The return is what a policy is to raise; no loss is printed.  Nothing is said at the end: where W&B
keeps the run, "Waiting for W&B process to finish... (success)." behind the last episode tells that
the script left without an error.

Source: the single-file scripts of vwxyzjn/cleanrl; wandb/wandb 0.12 to 0.16.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import RISING, Progress
from flatline.parsers._rules import NUMBER, Late, number

FORMAT = "cleanrl"
FRAMEWORK = "cleanrl"
TRIGGERS = (
    r"global_step=[0-9]+, episodic_return=",
    r"Waiting for W&B process to finish\.\.\. \(success\)",
)
_EPISODE = Late(rf"(?:^|\s)global_step=([0-9]{{1,15}}), episodic_return=\[?({NUMBER})\]?")


class Reader:
    """Reads one stream; the end is told of a stream in which episodes ended."""

    def __init__(self) -> None:
        self._step = 0

    def feed(self, text: str) -> Iterable[Progress]:
        """A point for each episode of a later step: those of one step are of several worlds."""
        if found := _EPISODE.search(text[:400]):
            step, was = int(found[1]), self._step
            if step == was:
                return ()
            self._step = step
            value = number(found[2])
            return (Progress("train", step, loss=value, loss_name=RISING, falling=False),)
        if self._step and text.rstrip().endswith("(success)."):
            return (Progress("finished", self._step),)
        return ()
