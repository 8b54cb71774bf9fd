"""
Time that a run lost in some of its steps, while most of them took as long as ever.

Short spells, single slow steps, pauses and a pace that goes up and down make no phase, or many,
and a median hides them: the mean step does not.  Noise that is short as often as long moves none.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import inf
from statistics import median

from flatline.facts import Facts, Track
from flatline.judging.claims import claim
from flatline.judging.throughput import (
    DROP,
    LEAST_POINTS,
    LEAST_S,
    WARM_UP_STEPS,
    Course,
    course_in_order,
    course_of_steps,
)
from flatline.model import Claim

PARTS, PART, FIFTH = 48, 16, 5
"""Parts of a run at most, and steps of one at least: its median is sure to a third of what steps
differ by."""


def uneven(facts: Facts) -> Claim | None:
    """That steps took longer together than as many usual ones, and by how much; None where that is
    less than a slow phase must be, or the log does not tell it.  The first steps, and those by
    which the log says that it saved or evaluated, are left out."""
    run = course_of_steps(facts) or course_in_order(facts)
    track = None if run is None else run.pace.track
    if run is None or track is None:
        return None
    first, told = track.steps[track.of_attempt(facts.last.n)[0]], _told(facts, track)
    took: dict[int, tuple[float, int]] = {}
    for index, value in zip(run.pace.indexes, run.pace.values, strict=True):
        before = track.steps[index - 1] if index else -1
        if value > 0 and track.steps[index] - first >= WARM_UP_STEPS and index not in told:
            took[index] = 1 / value, max(1, track.steps[index] - before)
    timed = run.pace.unit == "steps/s"
    whole = sum(each * steps for each, steps in took.values())
    if len(took) < LEAST_POINTS or (whole if timed else _lasted(run)) < LEAST_S:
        return None
    usual, fast = median(each for each, _ in took.values()), _fast([t for t, _ in took.values()])
    usual = min(usual, fast)
    more = whole / (usual * sum(steps for _, steps in took.values())) - 1
    if more < DROP:
        return None
    slowest = max(took, key=lambda index: took[index][0])
    typical = min(took, key=lambda index: (abs(took[index][0] - usual), index))
    most = took[slowest][0]
    when = "where the run was fast" if usual == fast else "usually"
    text = f"A step took {usual:.3g} s {when}, and {more:.0%} more on average; one {most:.3g} s"
    if not timed:
        text = (
            f"Throughput was {1 / usual:.4g} {run.pace.unit} {when}; steps took {more:.0%} longer"
        )
        text += f" than that on average, and one made {1 / most:.4g}"
    return claim(text, *(facts.point(track, index).cite for index in (typical, slowest)))


def _fast(took: Sequence[float]) -> float:
    """What a usual step took in the fastest fifth of the run's parts; as long as any where it has
    too few steps to be parted."""
    size = max(PART, -(-len(took) // PARTS))
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
