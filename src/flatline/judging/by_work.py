"""
Undated steps laid on the clock where the measured GPUs were at work.

Where no record dates the run, or its steps print throughput and not their time, the GPUs show
when steps were made.  Printed times say how long they took together: they are laid only where the
GPUs worked about as long, and no longer, so that there is one place for them.  Printed throughput
has no such check and takes a record of a run that ended well, through nearly all of which the
GPUs worked.
"""

from __future__ import annotations

from math import isfinite

from flatline.facts import Facts, Track
from flatline.judging.by_steps import BY_CLOCK, MOST_SLACK, Laid, Spent, spent
from flatline.judging.printed_sizes import printed_sizes
from flatline.judging.timeline import timeline

WORK = (
    "gpu_sm_active_ratio",
    "gpu_power_watts",
    "gpu_engine_active_ratio",
    "gpu_utilization_ratio",
)
"""What rises when steps begin: the first two stay low while a collective is set up or spins."""
IDLE = 2.0
"""A median GPU whose usual reading is not so many times its lowest was at work throughout."""
RISEN = 1 / 3
"""Of the way from its lowest reading to its usual one the median GPU is at work."""
USUAL, LEAST_SHARE = 0.8, 0.2
"""The reading that all but a fifth of the window's do not exceed is that of work, where the GPUs
worked for a fifth of it: a run may have stood still for most of what was measured."""


def laid_by_work(facts: Facts) -> Laid | None:
    """None where steps are dated or say nothing of their time, or fit at more than one place."""
    return facts.memo("laid by work", _laid)


def _laid(facts: Facts) -> Laid | None:
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    span = track.of_attempt(facts.last.n)
    if len(facts.attempts) > 1 or any(isfinite(track.at[i]) for i in span):
        return None
    known = spent(track, span)
    worked = None if known is None else at_work(facts)
    if known is None or worked is None:
        return None
    begins, ends, within_s = worked
    wall_s = ends - begins
    idle_s = started_s(track, known)
    took_s = known.by[-1] - idle_s if known.seconds else _recorded(facts, wall_s)
    off_s = within_s if took_s is None else abs(wall_s - took_s) + within_s
    if took_s is None or off_s > MOST_SLACK * wall_s:
        return None
    if known.seconds:
        first = ends - took_s - idle_s
        return Laid(track, known.indexes, tuple(first + s for s in known.by),
                    took_s, took_s + off_s, BY_OWN if known.clocked else BY_TIMES)  # fmt: skip
    if not facts.whole_logs or printed_sizes(facts, track):
        return None
    times = tuple(begins + wall_s * part / known.by[-1] for part in known.by)
    return Laid(track, known.indexes, times, wall_s, wall_s + off_s, BY_RATES)


BY_TIMES = "the sum of step times where the GPUs were at work"
BY_OWN = f"{BY_CLOCK} where the GPUs were at work"
BY_RATES = "printed throughput over the time the GPUs were at work"


def started_s(track: Track, known: Spent) -> float:
    """What the program's own clock ran before its first steps, by what these say they took: it
    loads and compiles, and no GPU works."""
    first = known.indexes[0]
    if not known.clocked or not isfinite(track.step_s[first]):
        return 0.0
    return max(0.0, known.by[0] - track.steps[first] * track.step_s[first])


def _recorded(facts: Facts, wall_s: float) -> float | None:
    """How long a run that ended well lasted, by its record."""
    began, ended = facts.last.started_at, facts.last.ended_at
    if began is None or ended is None or facts.disposition != "completed":
        return None
    return (ended - began).total_seconds()


def at_work(facts: Facts) -> tuple[float, float, float] | None:
    """The first and the last moment (POSIX seconds) at which the median of the GPUs that were
    measured worked, and the seconds either may be off by; None where that cannot be told."""
    signal = next(filter(facts.measured, WORK), None)
    cut = None if signal is None else timeline(facts, [signal], samples=1)  # levels, no rates
    answer = None if cut is None else cut.ask(facts, f"quantile(0.5, avg_over_time({signal}[w]))")
    if cut is None or answer is None or len(answer.rows) != 1:
        return None
    points = [(t, v) for t, v in answer.rows[0].points() if isfinite(v)]
    levels = sorted(v for _, v in points)
    if not levels:
        return None
    lowest, usual = levels[0], levels[int(USUAL * (len(levels) - 1))]
    bar = lowest + RISEN * (usual - lowest) if usual > IDLE * lowest else lowest
    lit = [t for t, v in points if v >= bar]
    if len(lit) < LEAST_SHARE * len(cut.ends):
        return None
    return lit[0] - cut.length_s, lit[-1], 2.0 * cut.length_s
