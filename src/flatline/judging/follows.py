"""Whether the pace follows a number that the steps print, point for point, once both moved."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from statistics import StatisticsError, correlation, median

from flatline.facts import Facts
from flatline.judging.quiet import NETWORK, SOCKETS, WATCHED
from flatline.judging.throughput import Course

LEAST, CLOSELY = 12, 0.9
"""Points of the slow time, and the correlation of their ranks.  A judgement: a step that happens
to slow at the same moment has no reason to slow further as the number goes on."""
THERE = 0.95
"""Of its way: where a number that goes on no more has come to.  Behind it both stand, and the
order of what only scatters says nothing."""


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
    going = pairs[: _stands(pairs)]
    if len(going) < LEAST:
        return False
    try:
        together = correlation(*(_ranks(one) for one in zip(*going, strict=True)))
        return (
            max(together, correlation(*zip(*pairs, strict=True)) if going != pairs else -1.0)
            <= -CLOSELY
        )
    except StatisticsError:  # one of them stands
        return False


def _stands(pairs: Sequence[tuple[float, float]]) -> int:
    """Before how many points the number goes on: all of them, unless it stands for the later half
    of them where it has come to by then."""
    values = [value for _, value in pairs]
    if len(values) < 2 * LEAST:
        return len(values)
    last = median(values[len(values) // 2 :])
    way = last - values[0]
    there = next(
        (at for at, v in enumerate(values) if (v - values[0]) * way >= THERE * way * way), 0
    )
    return there if 2 * there <= len(values) else len(values)


def _ranks(values: Sequence[float]) -> list[float]:
    """Those that are alike share the middle of their places."""
    ordered = sorted(values)
    ends = [(bisect_left(ordered, v), ordered.count(v)) for v in values]
    return [first + (count - 1) / 2 for first, count in ends]
