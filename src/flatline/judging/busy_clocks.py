"""
The clocks of a run's GPUs at work, each beside its peers', and whether one lies far below them.

A clock that nothing read explains is no verdict, for like GPUs differ; but a run of which one GPU
lies far beyond what its own others differ by is not called sound with confidence either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flatline.facts import Facts
from flatline.judging.gpus import (
    Beside,
    Gpus,
    Readings,
    Stretches,
    at_work,
    beside_peers,
    stretches,
)
from flatline.model import Place

if TYPE_CHECKING:
    from flatline.series.answer import Row

CLOCK = "gpu_sm_clock_hertz"
FAR_BELOW = 0.9
"""Of its peers' clock: beyond the 8 % by which like GPUs differ on average (arXiv 2208.11035)."""
LEAST_SHARE = 0.1
"""Low in a smaller share of its busy time, a GPU cost the run little."""


@dataclass(frozen=True, slots=True)
class BusyClocks:
    """`highest` are the clocks the GPUs can run at, where an exporter tells."""

    cut: Stretches
    gpus: Gpus
    clock: Readings
    highest: Readings | None
    beside: Beside

    @property
    def one_lies_low(self) -> bool:
        """Whether a GPU ran far below its peers, beyond their spread, for a good part of its
        time at work."""
        return any(map(self._low, self.beside.far_below()))

    def _low(self, place: Place) -> bool:
        read = self.beside.of(place).values()
        low = sum(below and part < FAR_BELOW for part, below in read)
        return low >= max(2, LEAST_SHARE * len(read))


def busy_clocks(facts: Facts) -> BusyClocks | None:
    """None where clocks or activity were not measured, or no GPU was ever at work."""
    return facts.memo("busy clocks", _busy_clocks)


def _busy_clocks(facts: Facts) -> BusyClocks | None:
    cut = stretches(facts, CLOCK)
    clock = None if cut is None else cut.means(facts, CLOCK)
    if cut is None or clock is None:
        return None
    highest = cut.means(facts, "gpu_sm_clock_max_hertz")

    def kind(place: Place, row: Row) -> str | None:
        """The model, or the highest clock, which unlike models do not share."""
        known = clock.rows[place].labels.get("model") if place in clock.rows else None
        top = highest.rows.get(place) if highest is not None else None
        return known or (f"{top.last:g}" if top is not None and len(top) else None)

    gpus = at_work(facts, cut, clock, kind)
    if gpus is None or not any(place in clock.rows for place in gpus.busy):
        return None
    return BusyClocks(cut, gpus, clock, highest, beside_peers(gpus, clock))
