"""
Undated steps laid on the clock by the time each says it took, or by the program's own clock.

The scheduler's record says when the run began and ended; the steps say how long they took.  What
is left over was spent before the first step, between steps or after the last one, and nothing
tells where: it is taken to lie before the first, where nearly all of it lies in a run that ended
well (`Laid.slack_s` is how far off every time may be).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from flatline.facts import Facts, Track
from flatline.judging.own_clock import own_clock
from flatline.model import DerivedCite

METHOD = "step-seconds@1"
MOST_UNTIMED = 0.1
"""Of the points so many may lack the time they took: each takes the one before."""
MOST_SLACK = 0.1
"""Of a run's length: times that may be off by more place no phase, and leave room for a hang."""
OVERRUN = 0.02
"""Steps that say they took longer, together, than the run lasted are not of this run."""


@dataclass(frozen=True, slots=True)
class Spent:
    """
    One point of each step, in their order, and what the run had spent on steps by then.

    In seconds where the steps say how long they took, else in a measure of it (`seconds` is
    false): steps over throughput, which is their time as long as all have as much work.  With
    what lay between them where the program's own clock says it (`clocked`).
    """

    indexes: tuple[int, ...]
    by: tuple[float, ...]
    seconds: bool
    clocked: bool = False


def spent(track: Track, span: Sequence[int]) -> Spent | None:
    """None where steps print neither their time nor throughput, or are counted anew: another
    attempt, or another loop, that nothing parts from this one."""
    own = own_clock(track, span)
    if own:
        return Spent(tuple(own), tuple(own.values()), seconds=True, clocked=True)
    times = _summed(track, span, track.step_s)
    if times is not None:
        return Spent(*times, True)
    rates = _summed(track, span, [1 / v if v > 0 else 0.0 for v in track.throughput])
    return None if rates is None else Spent(*rates, False)


def _summed(
    track: Track, span: Sequence[int], column: Sequence[float]
) -> tuple[tuple[int, ...], tuple[float, ...]] | None:
    """A step that is printed again counts once, by the line that says what it took."""
    said = {i for i in span if isfinite(column[i]) and column[i] > 0}
    kept: list[int] = []
    for index in span:
        step = track.steps[index]
        before = track.steps[kept[-1]] if kept else -1
        if 0 <= step < before:
            return None
        if step > before:
            kept.append(index)
        elif kept and step == before and kept[-1] not in said and index in said:
            kept[-1] = index
    if len(kept) < 2 or len(said.intersection(kept)) < (1.0 - MOST_UNTIMED) * len(kept):
        return None
    out: list[float] = []
    total, took, last = 0.0, 0.0, track.steps[kept[0]] - 1
    for index in kept:
        took = column[index] if index in said else took
        total += (track.steps[index] - last) * took
        last = track.steps[index]
        out.append(total)
    return tuple(kept), tuple(out)


BY_SUM, BY_CLOCK = "the sum of step times", "the program's own clock"


@dataclass(frozen=True, slots=True)
class Laid:
    """The points of a track with their times (POSIX seconds), and what their sum leaves of the
    run's length, all in seconds."""

    track: Track
    indexes: tuple[int, ...]
    times: tuple[float, ...]
    spent_s: float
    wall_s: float
    by: str = BY_SUM

    @property
    def slack_s(self) -> float:
        return max(0.0, self.wall_s - self.spent_s)


def laid(facts: Facts) -> Laid | None:
    """None where the main track is dated, prints no step times, or no record dates the run."""
    return facts.memo("laid by steps", _laid)


def _laid(facts: Facts) -> Laid | None:
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    began, ended = facts.last.started_at, facts.last.ended_at
    if ended is None and facts.disposition == "running":
        ended = facts.now
    span = track.of_attempt(facts.last.n)
    if began is None or ended is None or any(isfinite(track.at[i]) for i in span):
        return None
    known = spent(track, span)
    if known is None or not known.seconds:
        return None
    took_s, wall_s = known.by[-1], (ended - began).total_seconds()
    if took_s > (1.0 + OVERRUN) * wall_s:
        return None
    first = ended.timestamp() - took_s
    by = BY_CLOCK if known.clocked else BY_SUM
    return Laid(track, known.indexes, tuple(first + s for s in known.by), took_s, wall_s, by)


def added_up(facts: Facts, known: Laid) -> DerivedCite:
    """The sum of the steps' own times, as evidence."""
    ends = tuple(facts.point(known.track, known.indexes[at]).cite for at in (0, -1))
    return DerivedCite(
        method=METHOD,
        inputs=ends,
        params=(),
        value=round(known.spent_s, 3),
        text=f"the program's own clock had run {known.spent_s:.0f} s"
        if known.by == BY_CLOCK
        else f"the times the steps say they took add up to {known.spent_s:.0f} s",
        unit="s",
        tolerance=1.0,
    )
