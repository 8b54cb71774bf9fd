"""
The one GPU that kept its SMs or their tensor cores as busy, or its power up, as the run became
slow and all others fell.

The others wait for it, and what waits keeps fewer SMs busy than what computes, and draws less
(`lone_power`).  Each card is held against its own fast phases, so that how they differ by build or
place tells nothing.  Too little to accuse a card by itself: it tells which one a rank is that
something else accused.
"""

from __future__ import annotations

from math import isfinite
from statistics import median

from flatline.facts import Facts
from flatline.judging.apart import fleet
from flatline.judging.throughput import Course
from flatline.model import Claim, Place

SIGNALS = {
    "gpu_sm_active_ratio": ("SMs active", "kept its SMs active {own} of the time, the median GPU"
                            " {others}", "{:.1%}".format),
    "gpu_tensor_active_ratio": ("tensor cores active", "kept its tensor cores active {own} of the"
                                " time, the median GPU {others}", "{:.1%}".format),
    "gpu_power_watts": ("power", "drew {own}, the median GPU {others}", "{:.0f} W".format),
}  # fmt: skip
LEAST_GPUS = 4
FELL = 0.985
"""Of its own, that the median GPU drew at most: less says nothing of a wait."""
APART, SPREADS, NEXT = 0.015, 6.0, 0.01
"""How far the one must be above the median of the others, also in their median deviations, and
above the next.  A judgement: means of minutes differ by a few tenths of a per cent."""


def held_up(facts: Facts, run: Course) -> tuple[Place, Claim] | None:
    """None where the pace never fell, or no card stands alone so."""
    told = (_kept(facts, run, signal) for signal in (SIGNALS if run.slow else ()))
    return next(filter(None, told), None)


def _kept(facts: Facts, run: Course, signal: str) -> tuple[Place, Claim] | None:
    ranks = fleet(facts, run, signal)
    if ranks is None or len(ranks.read.rows) < LEAST_GPUS:
        return None
    low = run.low(ranks.cut)
    parts = []
    for row in ranks.values.tolist():
        known = [(value, mark) for value, mark in zip(row, low, strict=True) if isfinite(value)]
        slow, fast = ([value for value, mark in known if mark is now] for now in (True, False))
        if not slow or not fast or median(fast) <= 0:
            return None
        parts.append(median(slow) / median(fast))
    found = parts.index(max(parts))
    others = parts[:found] + parts[found + 1 :]
    middle = median(others)
    spread = median(abs(part - middle) for part in others)
    over = parts[found] - middle
    if middle > FELL or over < max(APART, SPREADS * spread) or parts[found] < max(others) + NEXT:
        return None
    place, worst = [*ranks.read.rows][found], min(run.slow, key=lambda phase: phase.part)
    shows = ranks.beside(facts, place, worst, SIGNALS[signal])
    return None if shows is None else (place, shows)
