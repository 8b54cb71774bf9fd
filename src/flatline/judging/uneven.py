"""
Time that a run lost in some of its steps, while most of them took as long as ever.

Short spells, single slow steps, pauses and a pace that goes up and down make no phase, or many,
and a median hides them: the mean step does not.  Noise that is short as often as long moves none.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf, isfinite
from statistics import median

from flatline.facts import Facts, Track
from flatline.judging.claims import claim
from flatline.judging.throughput import (
    DROP,
    LASTING,
    LEAST_POINTS,
    LEAST_S,
    WARM_UP_STEPS,
    Course,
    course_in_order,
    course_of_steps,
)
from flatline.model import Claim
from flatline.series.phases import EFFECT, phases

PARTS, PART, FIFTH = 48, 16, 5
"""Parts of a run at most, and steps of one at least: its median is sure to a third of what steps
differ by."""
FAR = 1.5
"""Times what most steps took: beyond it a step is long, not noisy."""
RESOLVED_S = 50.0
"""Of which a second is less than repeats of a run differ by."""
LONG_SHARE = 0.1
"""Of the points: less is an evaluation or a save that the log does not name."""


def uneven(facts: Facts) -> Claim | None:
    """That steps took longer together than as many usual ones, and by how much; None where that is
    less than a slow phase must be, or the log does not tell it.  The first steps, and those by
    which the log says that it saved or evaluated, are left out."""
    run = course_of_steps(facts) or course_in_order(facts)
    track = None if run is None else run.pace.track
    if run is None or track is None:
        return None
    rounded = _in_whole_seconds(run, track)
    took = _merged(facts, track) if rounded else _each(facts, run, track)
    timed = run.pace.unit == "steps/s"
    whole = sum(each * steps for each, steps in took.values())
    if len(took) < LEAST_POINTS or (whole if timed else _lasted(run)) < LEAST_S:
        return None
    times = [each for each, _ in took.values()]
    most_took, fast = (_short(facts, track) if rounded else median(times)), _fast(times, rounded)
    usual = min(most_took, fast)
    more = whole / (usual * sum(steps for _, steps in took.values())) - 1
    if more < DROP and not (rounded and _lasting(took)):
        return None
    slowest = max(took, key=lambda index: took[index][0])
    typical = min(took, key=lambda index: (abs(took[index][0] - usual), index))
    most = took[slowest][0]
    when = "where the run was fast" if fast < most_took else "usually"
    text = f"A step took {usual:.3g} s {when}, and {more:.0%} more on average; one {most:.3g} s"
    if not timed:
        text = (
            f"Throughput was {1 / usual:.4g} {run.pace.unit} {when}; steps took {more:.0%} longer"
        )
        text += f" than that on average, and one made {1 / most:.4g}"
    return claim(text, *(facts.point(track, index).cite for index in (typical, slowest)))


def _each(facts: Facts, run: Course, track: Track) -> dict[int, tuple[float, int]]:
    """Per point of the log what a step took, and how many steps are behind it."""
    first, told = track.steps[track.of_attempt(facts.last.n)[0]], _told(facts, track)
    out: dict[int, tuple[float, int]] = {}
    for index, value in zip(run.pace.indexes, run.pace.values, strict=True):
        before = track.steps[index - 1] if index else -1
        if value > 0 and track.steps[index] - first >= WARM_UP_STEPS and index not in told:
            out[index] = 1 / value, max(1, track.steps[index] - before)
    return out


def _in_whole_seconds(run: Course, track: Track) -> bool:
    """Whether a clock that has no parts of a second alone tells what steps took."""
    known = run.pace
    printed = isfinite(track.step_s[known.indexes[-1]]) or known.unit != "steps/s"
    return known.clocked and not printed and all(at.is_integer() for at in known.times)


def _merged(facts: Facts, track: Track) -> dict[int, tuple[float, int]]:
    """The same of so many points together that the clock's second is little of what they took."""
    out: dict[int, tuple[float, int]] = {}
    lasted, made = 0.0, 0
    for index, seconds, steps in _by_clock(facts, track):
        lasted, made = lasted + seconds, made + steps
        if lasted >= RESOLVED_S:
            out[index] = lasted / made, made
            lasted, made = 0.0, 0
    return out


def _by_clock(facts: Facts, track: Track) -> Iterator[tuple[int, float, int]]:
    """Points, the seconds since the one before, and the steps that were made meanwhile."""
    span, told = track.of_attempt(facts.last.n), _told(facts, track)
    for a, b in pairwise(i for i in span if isfinite(track.at[i])):
        steps, seconds = track.steps[b] - track.steps[a], track.at[b] - track.at[a]
        warm = track.steps[a] - track.steps[span[0]] >= WARM_UP_STEPS
        if steps > 0 and seconds >= 0 and warm and b not in told:
            yield b, seconds, steps


def _short(facts: Facts, track: Track) -> float:
    """The mean of the steps that no more than rounding and noise make longer than most."""
    read = [(seconds, steps) for _, seconds, steps in _by_clock(facts, track)]
    bar = FAR * median(seconds / steps for seconds, steps in read)
    kept = [(seconds, steps) for seconds, steps in read if seconds <= bar * steps + 1]
    return sum(seconds for seconds, _ in kept) / sum(steps for _, steps in kept) or inf


def _lasting(took: Mapping[int, tuple[float, int]]) -> bool:
    """Whether the run was slower than before in phases that lasted."""
    best = slow = 0.0
    for phase in phases([1 / each for each, _ in took.values()]):
        if len(phase) >= LASTING:
            best = max(best, phase.level)
        slow += len(phase) if phase.level < (1 - EFFECT) * best else 0
    return slow >= LONG_SHARE * len(took)


def _fast(took: Sequence[float], merged: bool) -> float:
    """What a usual step took in the fastest fifth of the run's parts; as long as any where it has
    too few steps to be parted."""
    size = 1 if merged else max(PART, -(-len(took) // PARTS))
    parts = sorted(median(took[at : at + size]) for at in range(0, len(took) - size + 1, size))
    return parts[len(parts) // FIFTH] if len(parts) > FIFTH else inf


def _lasted(run: Course) -> float:
    """Seconds, as far as a clock tells."""
    return run.pace.times[-1] - run.pace.times[0] if run.pace.clocked else LEAST_S


def _told(facts: Facts, track: Track) -> set[int]:
    """The points before which, or right behind which, the log says that it saved or evaluated."""
    cites = [marker.cite for marker in facts.markers_of("eval", "checkpoint_saved")]
    cites += [m.cite for tag in ("evaluation", "save-begun") for m in facts.tagged(tag)]
    out: set[int] = set()
    for cite in cites:
        if cite.source == track.source:
            out.add(bisect_left(track.lines, cite.line))
            out.add(bisect_right(track.lines, cite.line) - 1)
    return out
