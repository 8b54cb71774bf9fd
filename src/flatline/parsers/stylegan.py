"""
StyleGAN 2 and 3 and EDM: `tick 12  kimg 48.1  time 12m 30s  sec/tick 61.2  sec/kimg 15.31 ...`.

A tick is a number of images that the options set, and is taken for the step.  Losses are written
to a file of their own, `stats.jsonl`, and not printed: EDM's one is read there.  A distance
between what is generated and what is real is printed where it is measured.  "Exiting..." ends the
loop, "Aborting..." before it at another's wish.  EDM2's `Status:` lines, which print a loss, are
read by their numbers; its end counts where its plan, once printed, is reached.

Source: `training_loop` of training/training_loop.py, NVlabs/stylegan2-ada-pytorch,
NVlabs/stylegan3 and NVlabs/edm; `Collector.as_dict` of torch_utils/training_stats.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, Late, number

FORMAT = "stylegan"
FRAMEWORK = "stylegan"
TRIGGERS = (
    r" kimg [0-9.]+ ",
    r"^Status: [^\n]{0,80}[kM]img ",
    r"^Training for [0-9.]+ [kM]img",
    r"{\"results\": {\"[fk]id[0-9a-z_]*\": ",
    r"^(Exiting|Aborting)\.\.\.",
    r"\"Loss/loss\": \{\"num\": ",
)
_TICK = Late(
    r"(?:^|\s)tick ([0-9]{1,9}) {1,8}kimg ([0-9.]{1,16}) {1,12}time .{1,40}? sec/tick"
    r" ([0-9.]{1,16}) {1,12}sec/kimg ([0-9.]{1,16}) "
)
_DISTANCE = Late(r'\{"results": \{"([fk]id\w{0,40})": ([0-9.]{1,24})\}')
_KEPT = Late(r'"Loss/loss": \{"num": [0-9]{1,15}, "mean": ([-+0-9.eE]{1,30}|NaN|Infinity)\b')
_KEPT_TICK = Late(r'"Progress/tick": \{"num": [0-9]{1,15}, "mean": ([0-9]{1,9})(?:\.0+)?[,}]')
_PLAN = Late(r"^Training for ([0-9.]{1,16}) ([kM])img\b")
_STATUS = Late(r"^Status: [^\n]{0,40}?(?:\b([0-9.]{1,16}) ([kM])img|\b([kM])img ([0-9.]{1,16}))\b")
IMAGES = 1000
NEAR = 0.995
"""Of the plan: its images are a number of batches."""


class Reader:
    """Knows whether the loop was begun, and whether it was broken off."""

    def __init__(self) -> None:
        self._trains = False
        self._planned: float | None = None
        self._made = 0.0

    def feed(self, text: str) -> Iterable[Progress]:
        """One training point a tick; the first is printed before any training."""
        if text.startswith("Aborting..."):
            self._trains = False
        elif text.startswith("Exiting..."):
            ended = self._trains and self._made >= NEAR * (self._planned or 0.0)
            self._trains = False
            return (Progress("finished"),) if ended else ()
        elif kept := _KEPT.search(text[:LONGEST]):
            tick = _KEPT_TICK.search(text[:LONGEST])
            made = int(tick[1]) if tick is not None else None
            return (Progress("train", made, loss=number(kept[1])),)
        elif measured := _DISTANCE.search(text[:LONGEST]):
            value = float(measured[2]) if measured[2].count(".") < 2 else None
            return (Progress("eval", loss=value, loss_name=measured[1]),)
        elif plan := _PLAN.search(text[:LONGEST]):
            self._planned = _images(plan[1], plan[2])
        elif status := _STATUS.search(text[:LONGEST]):
            self._trains = True
            self._made = _images(status[1] or status[4], status[2] or status[3])
        found = _TICK.search(text[:LONGEST])
        if found is None or found[1] == "0":
            return ()
        self._trains, self._made = True, _images(found[2], "k")
        each = float(found[4]) if found[4].count(".") < 2 else 0.0
        speed = IMAGES / each if each else None
        unit = "images/s" if speed else None
        return (Progress("train", int(found[1]), throughput=speed, throughput_unit=unit),)


def _images(said: str, unit: str) -> float:
    """Thousands of images."""
    try:
        return float(said) * (1000.0 if unit == "M" else 1.0)
    except ValueError:
        return 0.0
