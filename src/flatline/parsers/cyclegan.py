"""
CycleGAN and pix2pix: `(epoch: 1, iters: 100, time: 0.306, data: 0.201) G_GAN: 1.2 D_real: 0.6`.

`iters` counts images within the epoch, which are no steps; what is read is that an epoch is being
trained.  Of its losses the one is told that holds the picture to its target or to what it was made
from; else the first, which is an adversary's and not meant to fall; a NaN where any is one.
`End of epoch 200 / 200` is the end where both are the same.

Source: `Visualizer.print_current_losses` of util/visualizer.py and train.py,
junyanz/pytorch-CycleGAN-and-pix2pix, and the many copies of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import isfinite, nan

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, NUMBER, Late, number

FORMAT = "cyclegan"
FRAMEWORK = None
TRIGGERS = (r"\(epoch: [0-9]+, iters: [0-9]+, time: ", r"End of epoch [0-9]+ / [0-9]+ ")
_POINT = Late(
    r"\(epoch: ([0-9]{1,7}), iters: [0-9]{1,12}, time: [0-9.]{1,12}(?:, data: [0-9.]{1,12})?\) "
)
_LOSS = re.compile(rf"(?<![\w.])(\w{{1,40}}): ({NUMBER})(?![\w.])")
_END = Late(r"^\s*End of epoch ([0-9]{1,7}) / ([0-9]{1,7}) \s*Time Taken: ")
_TARGETS = ("G_L1", "cycle_A", "G_VGG")
_MOST = 32
"""Losses of a line that are read."""


class Reader:
    """Knows whether this loop was seen: others print how an epoch ends in the same words."""

    def __init__(self) -> None:
        self._trains = False

    def feed(self, text: str) -> Iterable[Progress]:
        """A point of training, or the end."""
        text = text[:LONGEST]
        if ended := _END.match(text):
            whole = self._trains and int(ended[1]) == int(ended[2])
            return (Progress("finished", epoch=float(ended[1])),) if whole else ()
        found = _POINT.search(text)
        if found is None:
            return ()
        self._trains = True
        told = _LOSS.findall(text, found.end())[:_MOST]
        values = {name: value for name, said in told if (value := number(said)) is not None}
        name = next((one for one in _TARGETS if one in values), next(iter(values), "loss"))
        bad = any(not isfinite(value) for value in values.values())
        loss = nan if bad else values.get(name)
        return (
            Progress(
                "train", epoch=float(found[1]), loss=loss, loss_name=name, falling=name in _TARGETS
            ),
        )
