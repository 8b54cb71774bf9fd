"""
Undated steps laid on the clock by the dated lines that stand between them.

Trainers print steps without a time between lines of a library that has one: a save, a warning.
Such a line was printed after the step above it and before the one below, so each bounds when the
program's own clock began; together they leave a second or two.  Lines that do not agree are of
another process, or the clock stood still between them: nothing is laid then.
"""

from __future__ import annotations

from bisect import bisect_left
from math import inf, isfinite

from flatline.facts import Facts, Track
from flatline.judging.by_steps import BY_CLOCK, MOST_SLACK, Laid, Spent, spent
from flatline.model import LogCite

COARSE_S = 1.5
"""Bars show whole seconds, and a line is stamped before it is written."""
BY_DATES = f"{BY_CLOCK} and the dated lines between the steps"


def laid_by_dates(facts: Facts) -> Laid | None:
    """None where steps are dated, no clock of the program's own runs over them, or too few dated
    lines stand between them to tell when it began."""
    return facts.memo("laid by dates", _laid)


def _laid(facts: Facts) -> Laid | None:
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    span = track.of_attempt(facts.last.n)
    if any(isfinite(track.at[i]) for i in span):
        return None
    known = spent(track, span)
    if known is None or not known.clocked:
        return None
    took_s = known.by[-1] - known.by[0]
    low, high = _began(track, known, dated_lines(facts, track))
    if not 0.0 <= high - low <= MOST_SLACK * took_s:
        return None
    first = high - COARSE_S
    times = tuple(first + s for s in known.by)
    return Laid(track, known.indexes, times, took_s, took_s + high - low, BY_DATES)


def dated_lines(facts: Facts, track: Track) -> list[LogCite]:
    """What is told with a date of its own in the log of these steps."""
    said = [(m.attempt, m.cite) for m in facts.markers]
    said += [(m.attempt, m.cite) for m in facts.matches]
    return [cite for attempt, cite in said
            if attempt == facts.last.n and cite.source == track.source
            and cite.at is not None and not cite.at_assumed]  # fmt: skip


def _began(track: Track, known: Spent, dated: list[LogCite]) -> tuple[float, float]:
    """Between which moments (POSIX seconds) the program's own clock stood at nought."""
    lines = [track.lines[i] for i in known.indexes]
    low, high = -inf, inf
    for cite in dated:
        below = bisect_left(lines, cite.line)
        if cite.at is None or (below < len(lines) and lines[below] == cite.line):
            continue
        at = cite.at.timestamp()
        if below:
            high = min(high, at - known.by[below - 1] + COARSE_S)
        if below < len(lines):
            low = max(low, at - known.by[below] - COARSE_S)
    return low, high
