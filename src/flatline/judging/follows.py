"""Whether the pace follows a number that the steps print, point for point, once both moved."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from statistics import StatisticsError, correlation

from flatline.facts import Facts
from flatline.judging.quiet import NETWORK, SOCKETS, WATCHED
from flatline.judging.throughput import Course

LEAST, CLOSELY = 12, 0.9
"""Points of the slow time, and the correlation of their ranks.  A judgement: a step that happens
to slow at the same moment has no reason to slow further as the number goes on."""


def follows(
    facts: Facts,
    run: Course,
    when: Mapping[int, float],
    at: Sequence[int],
    values: Sequence[float],
) -> bool:
    """Asked of a run of which nothing but its log was read: else the signals tell.  A number that
    leapt and stands is followed by nothing that would tell the two from what met by chance."""
    if any(facts.measured(name) for one in (*WATCHED, *NETWORK, SOCKETS) for name in one.signals):
        return False
    begins = min((p.begins for p in run.slow if p.begins >= run.best.begins), default=None)
    if begins is None:
        return False
    times = run.pace.times
    pairs = [
        (run.pace.values[spot], value)
        for index, value in zip(at, values, strict=True)
        if index in when and when[index] >= begins
        and (spot := bisect_left(times, when[index])) < len(times)
    ]  # fmt: skip
    if len(pairs) < LEAST:
        return False
    try:
        return correlation(*(_ranks(one) for one in zip(*pairs, strict=True))) <= -CLOSELY
    except StatisticsError:  # one of them stands
        return False


def _ranks(values: Sequence[float]) -> list[float]:
    """Those that are alike share the middle of their places."""
    ordered = sorted(values)
    ends = [(bisect_left(ordered, v), ordered.count(v)) for v in values]
    return [first + (count - 1) / 2 for first, count in ends]
