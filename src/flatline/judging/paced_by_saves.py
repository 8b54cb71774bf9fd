"""
Saves that the steps waited for though the times that steps print hold them: a rate taken from one
line to the next counts a save between the two as steps.

Where one follows every so many steps, the time from one line to the next goes up and down with
what the saves say they took if the steps waited, and does not if they were written beside them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import isfinite
from statistics import pstdev

from flatline.facts import Facts
from flatline.model import LogCite

LEAST = 12
"""Intervals with a save each that are compared."""
MOST_LEFT = 0.5
"""Of the intervals' spread so much may be left without their saves: of times that know nothing of
each other a dozen leave so little in less than one of a thousand draws, for what is taken from
them adds its own spread."""
RESOLVED_S = 0.2
"""What saves take must spread so far: clocks that print milliseconds and steps that vary stand
against it.  A judgement."""
MOST_OUTLIERS = 8
"""One interval of so many may hold something else: an evaluation, a stall."""


def paced_by_saves(
    facts: Facts, told: Sequence[tuple[float, LogCite]]
) -> tuple[float, float] | None:
    """Seconds of these saves and of the time they lie in, by the log's clock; None where the steps
    are not known to have waited for them."""
    track = facts.main_track(facts.last.n)
    if track is None or len(told) < LEAST:
        return None
    span = [i for i in track.of_attempt(facts.last.n) if isfinite(track.at[i])]
    lines = [track.lines[i] for i in span]
    took: dict[tuple[int, int], float] = {}
    for seconds, cite in told:
        at = bisect_left(lines, cite.line)
        if cite.source != track.source or not 0 < at < len(span):
            continue
        took[span[at - 1], span[at]] = took.get((span[at - 1], span[at]), 0.0) + seconds
    strides = [track.steps[b] - track.steps[a] for a, b in took]
    usual = max(set(strides), key=strides.count, default=0)
    pairs = [(track.at[b] - track.at[a], seconds) for (a, b), seconds in took.items()
             if track.steps[b] - track.steps[a] == usual > 0]  # fmt: skip
    if len(pairs) < LEAST or any(seconds > length for length, seconds in pairs):
        return None
    kept = _without_outliers(pairs)
    apart = pstdev(seconds for _, seconds in kept)
    left = pstdev(length - seconds for length, seconds in kept)
    if apart < RESOLVED_S or left > MOST_LEFT * pstdev(length for length, _ in kept):
        return None
    wall = track.at[span[-1]] - track.at[span[0]]
    return sum(took.values()), wall


def _without_outliers(pairs: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The pairs without the few longest of what a save leaves of its interval."""
    ordered = sorted(pairs, key=lambda pair: pair[0] - pair[1])
    return ordered[: len(pairs) - len(pairs) // MOST_OUTLIERS]
