"""
Undated steps laid on the clock by the time each says it took.

The scheduler's record says when the run began and ended; the steps say how long they took.  What
is left over was spent before the first step, between steps or after the last one, and nothing
tells where: it is taken to lie before the first, where nearly all of it lies in a run that ended
well (`Laid.slack_s` is how far off every time may be).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from flatline.facts import Facts, Track
from flatline.model import DerivedCite

METHOD = "step-seconds@1"
MOST_UNTIMED = 0.1
"""Of the points so many may lack the time they took: each takes the one before."""
MOST_SLACK = 0.1
"""Of a run's length: times that may be off by more place no phase, and leave room for a hang."""
OVERRUN = 0.02
"""Steps that say they took longer, together, than the run lasted are not of this run."""


@dataclass(frozen=True, slots=True)
class Laid:
    """The points of a track with their times (POSIX seconds), and what their sum leaves of the
    run's length, all in seconds."""

    track: Track
    indexes: tuple[int, ...]
    times: tuple[float, ...]
    spent_s: float
    wall_s: float

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
    kept = [i for i in span if track.steps[i] >= 0]
    timed = sum(isfinite(track.step_s[i]) and track.step_s[i] > 0 for i in kept)
    if len(kept) < 2 or timed < (1.0 - MOST_UNTIMED) * len(kept):
        return None
    spent: list[float] = []
    took, before = 0.0, track.steps[kept[0]] - 1
    for index in kept:
        own = track.step_s[index]
        took = own if isfinite(own) and own > 0 else took
        steps = track.steps[index] - before
        if steps < 1:
            return None  # counted anew: another attempt that nothing parts from this one
        before = track.steps[index]
        spent.append((spent[-1] if spent else 0.0) + steps * took)
    wall_s = (ended - began).total_seconds()
    if spent[-1] > (1.0 + OVERRUN) * wall_s:
        return None
    first = ended.timestamp() - spent[-1]
    return Laid(track, tuple(kept), tuple(first + s for s in spent), spent[-1], wall_s)


def added_up(facts: Facts, known: Laid) -> DerivedCite:
    """The sum of the steps' own times, as evidence."""
    ends = tuple(facts.point(known.track, known.indexes[at]).cite for at in (0, -1))
    return DerivedCite(
        method=METHOD,
        inputs=ends,
        params=(),
        value=round(known.spent_s, 3),
        text=f"the times the steps say they took add up to {known.spent_s:.0f} s",
        unit="s",
        tolerance=1.0,
    )
