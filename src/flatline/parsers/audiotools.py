"""
Trackers of audiotools (Descript's audio codec): a progress of so many, and a table of its means.

    Iteration (train) 1000/250000 ━━━━━━━━ 0:10:20 / 4:08:00
    Iteration: 1000 / 25000  ━━━━━━━━  4%  10:20 / 4:08:00
    │ loss          73.725248   73.872698 │
    │ mel/loss       3.140556    3.146837 │

The distance between the spectra is the loss that is told: it is to fall, which the sum, that plays
against discriminators, need not.  The first table below a heading is the training's; a second is
of what is held out.  Titles of tables are printed as `Iteration 1000` in a frame.

Source: `Tracker` of audiotools/ml/decorators.py, descriptinc/audiotools; scripts/train.py of
descriptinc/descript-audio-codec.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import NUMBER, Late, number

FORMAT = "audiotools"
FRAMEWORK = "audiotools"
TRIGGERS = (
    r"Iteration \((train|val)\) +[0-9]+/[0-9]+ ",
    r"Iteration: [0-9]+ / [0-9]+ ",
    r"┃ +Iteration [0-9]+ ",
    r" mel/loss +(│ +)?[-0-9ni]",
)
_HEAD = Late(
    r"\bIteration(?: \((train|val)\)|:) {1,3}([0-9]{1,12}) ?/ ?([0-9]{1,12}) "
    r"|┃ {1,200}Iteration ([0-9]{1,12}) {1,200}┃"
)
_MEL = Late(rf" mel/loss +(?:│ +)?({NUMBER}) +(?:│ +)?{NUMBER}(?:\s|│|$)")


class Reader:
    """Reads one stream; holds the iteration, how many there are to be, and which table comes."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._planned: int | None = None
        self._told = False

    def feed(self, text: str) -> Iterable[Progress]:
        """A point at the training's loss, a measurement at that of what is held out."""
        text = text[:1_000]
        if found := _HEAD.search(text):
            if found[1] == "val":
                return ()
            step = int(found[2] or found[4])
            self._told = self._told and step == self._step
            self._step = step
            self._planned = int(found[3]) if found[3] else self._planned
            return ()
        found = _MEL.search(text)
        if found is None or self._step is None:
            return ()
        loss, name = number(found[1]), "mel/loss"
        if self._told:
            return (Progress("eval", self._step, loss=loss, loss_name=name),)
        self._told = True
        return (Progress("train", self._step, self._planned, loss=loss, loss_name=name),)
