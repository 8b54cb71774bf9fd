"""
Whether steps take longer in proportion to a size that they print, point for point.

A size that leaps is known by when it did.  One that grows over many steps, as a policy learns to
answer at length, leaves no moment: what tells it from anything else that grows with a run's time
is that each step costs what its own size asks, wherever the growth begins, bends and ends.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from statistics import StatisticsError, linear_regression

from flatline.judging.throughput import Course

LEAST, RANGE = 24, 1.25
"""Points on the way, and how far the largest stands above the smallest."""
WAY = 0.1
"""Of the way at each of its ends: what has leapt there lies within, and meets a fall by chance."""
EXPLAINED = 0.95
"""Of the variance of what steps took: the rest is their scatter.  A judgement."""
BETTER = 4.0
"""Times as much a curve over the steps' order must leave: whatever grows with a run's time would
be told as well by that."""
DEGREE = 3
"""Of that curve: one that begins, goes on and ends."""


def in_proportion(
    run: Course, when: Mapping[int, float], at: Sequence[int], values: Sequence[float]
) -> tuple[int, int] | None:
    """The places, among the values, of the smallest before throughput fell and of the largest in
    the slow time."""
    begins = min((p.begins for p in run.slow if p.begins >= run.best.begins), default=None)
    times = run.pace.times
    known = [
        (place, when[index], 1.0 / run.pace.values[spot], value)
        for place, (index, value) in enumerate(zip(at, values, strict=True))
        if index in when
        and (spot := bisect_left(times, when[index])) < len(times)
        and run.pace.values[spot] > 0
    ]
    if begins is None or len(known) < LEAST:
        return None
    took, sizes = [one[2] for one in known], [one[3] for one in known]
    if min(sizes) <= 0 or max(sizes) < RANGE * min(sizes):
        return None
    room = WAY * (max(sizes) - min(sizes))
    if sum(min(sizes) + room < size < max(sizes) - room for size in sizes) < LEAST:
        return None
    left = _left(took, sizes)
    if left is None or left > 1.0 - EXPLAINED or BETTER * left > _left_by_order(took):
        return None
    before = [one for one in known if one[1] < begins]
    after = [one for one in known if one[1] >= begins]
    if not before or not after:
        return None
    return min(before, key=lambda one: one[3])[0], max(after, key=lambda one: one[3])[0]


def _left(took: Sequence[float], sizes: Sequence[float]) -> float | None:
    """The part of the variance of what steps took that their sizes do not tell; None where larger
    ones do not take longer."""
    try:
        line = linear_regression(sizes, took)
    except StatisticsError:
        return None
    mean = sum(took) / len(took)
    whole = sum((one - mean) ** 2 for one in took)
    off = sum((one - line.intercept - line.slope * size) ** 2
              for one, size in zip(took, sizes, strict=True))  # fmt: skip
    return off / whole if whole and line.slope > 0 else None


def _left_by_order(took: Sequence[float]) -> float:
    """The same of a smooth curve over their order."""
    import numpy as np  # where a size grew with the steps alone

    order, seconds = np.linspace(-1.0, 1.0, len(took)), np.asarray(took)
    curve = np.polynomial.polynomial.Polynomial.fit(order, seconds, DEGREE)
    return float(((seconds - curve(order)) ** 2).sum() / ((seconds - seconds.mean()) ** 2).sum())
