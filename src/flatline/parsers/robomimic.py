"""
robomimic: the epoch on a line of its own, its means as JSON below it.

    Train Epoch 53
    {
        "Loss": -22.792121203216606,
        "Optimizer/policy0_lr": 0.001,
        "Policy_Grad_Norms": 7.594157789739715,
        "Time_Epoch": 0.07
    }
    finished run successfully!

`Validation Epoch 53` heads what is held out.  A loss stands there for what learns by imitation; what
learns from rewards names those of its parts (`Critic/Critic1_Loss`), which need not fall: of these
the epoch alone is told.  A crash is caught and printed, with another last line.

Source: `train` and `main` of robomimic/scripts/train.py, ARISE-Initiative/robomimic.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from flatline.model import Progress
from flatline.parsers._rules import NUMBER, Late, number

FORMAT = "robomimic"
FRAMEWORK = "robomimic"
TRIGGERS = (
    r"Train Epoch [0-9]+\s*$",
    r"Validation Epoch [0-9]+\s*$",
    r"^finished run successfully!",
)
_HEAD = Late(r"(Train|Validation) Epoch ([0-9]{1,9})\s*$")
_ENTRY = Late(rf'\s*"([\w/.-]{{1,80}})": ({NUMBER}),?\s*$')
_MOST = 80
"""Entries of an epoch."""
Line = TypeVar("Line")


class Reader:
    """Reads one stream; holds the head that was just fed."""

    def __init__(self) -> None:
        self._head: tuple[str, int] | None = None
        self._trained = False

    def feed(self, text: str) -> Iterable[Progress]:
        """The end; what an epoch gave is told by the rows below its head."""
        text = text.strip()[:200]
        found = _HEAD.match(text)
        self._head = None if found is None else (found[1], int(found[2]))
        ends = self._trained and text == "finished run successfully!"
        return (Progress("finished"),) if ends else ()

    def rows(self, lines: Iterable[tuple[Line, str]]) -> Iterator[tuple[Line, Progress]]:
        """The epoch's point, at the line of its loss or where its JSON ends."""
        if self._head is None:
            return
        kind, epoch = self._head
        said: dict[str, float | None] = {}
        at: Line | None = None
        for n, (line, text) in enumerate(lines):
            text = text[:400]
            if n == 0:
                if text.strip() != "{":
                    return
                continue
            entry = _ENTRY.match(text)
            if entry is None or n > _MOST:
                at = at if at is not None else line
                break
            said[entry[1]] = number(entry[2])
            if entry[1] == "Loss":
                at = line
        if at is None or not said:
            return
        loss = said.get("Loss")
        if kind == "Validation":
            if loss is not None:
                yield at, Progress("eval", epoch=float(epoch), loss=loss, loss_name="Loss")
            return
        self._trained = True
        took = said.get("Time_Epoch")
        yield (
            at,
            Progress("train", epoch=float(epoch), loss=loss, loss_name="Loss",
                     grad_norm=said.get("Policy_Grad_Norms"),
                     step_s=None if took is None else 60 * took),
        )  # fmt: skip
