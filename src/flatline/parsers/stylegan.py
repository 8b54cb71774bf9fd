"""
StyleGAN 2 and 3 and EDM: `tick 12  kimg 48.1  time 12m 30s  sec/tick 61.2  sec/kimg 15.31 ...`.

A tick is a number of images that the options set, and is taken for the step.  Adversaries' losses
are written to files of their own and not printed; a distance between what is generated and what is
real is, where it is measured.  "Exiting..." ends the loop, "Aborting..." before it at another's
wish.

Source: `training_loop` of training/training_loop.py, NVlabs/stylegan2-ada-pytorch,
NVlabs/stylegan3 and NVlabs/edm.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, Late

FORMAT = "stylegan"
FRAMEWORK = "stylegan"
TRIGGERS = (
    r" kimg [0-9.]+ ",
    r"{\"results\": {\"[fk]id[0-9a-z_]*\": ",
    r"^(Exiting|Aborting)\.\.\.",
)
_TICK = Late(
    r"(?:^|\s)tick ([0-9]{1,9}) {1,8}kimg [0-9.]{1,16} {1,12}time .{1,40}? sec/tick"
    r" ([0-9.]{1,16}) {1,12}sec/kimg ([0-9.]{1,16}) "
)
_DISTANCE = Late(r'\{"results": \{"([fk]id\w{0,40})": ([0-9.]{1,16})\}')
IMAGES = 1000


class Reader:
    """Knows whether the loop was begun, and whether it was broken off."""

    def __init__(self) -> None:
        self._trains = False

    def feed(self, text: str) -> Iterable[Progress]:
        """One training point a tick; the first is printed before any training."""
        if text.startswith("Aborting..."):
            self._trains = False
        elif text.startswith("Exiting..."):
            ended, self._trains = self._trains, False
            return (Progress("finished"),) if ended else ()
        elif measured := _DISTANCE.search(text[:LONGEST]):
            value = float(measured[2]) if measured[2].count(".") < 2 else None
            return (Progress("eval", loss=value, loss_name=measured[1]),)
        found = _TICK.search(text[:LONGEST])
        if found is None or found[1] == "0":
            return ()
        self._trains = True
        each = float(found[3]) if found[3].count(".") < 2 else 0.0
        speed = IMAGES / each if each else None
        unit = "images/s" if speed else None
        return (Progress("train", int(found[1]), throughput=speed, throughput_unit=unit),)
