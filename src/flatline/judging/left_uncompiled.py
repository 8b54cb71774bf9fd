"""Steps that are slow from where a compiler gave a function up, to the end."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from flatline.facts import Facts
from flatline.judging.throughput import DROP, Course, Slow, course_in_order
from flatline.model import Match

NEAR = 1
"""Points of the pace between the line and the border of the phases: a point that is printed every
so many steps tells of those before it."""
STOOD, FIRST = 0.5, 3
"""Of the level that the phase keeps, below which its first points stood for the last compiling."""
CHANCE = 0.15
"""A border meets lines in so many places among all points by chance as often."""


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The compiler's line, and the phase that begins there."""

    said: Match
    run: Course
    phase: Slow


def left_uncompiled(facts: Facts) -> GaveUp | None:
    """None where the run was as slow before, became fast again, or fell elsewhere."""
    said = [m for m in facts.tagged("compile-limit") if m.attempt == facts.last.n]
    run = course_in_order(facts) if said else None
    if run is None or run.pace.track is None:
        return None
    after = [p for p in run.settled if p.begins >= run.best.ends]
    if not after or any(p.part >= 1 - DROP for p in after):
        return None
    phase, last = after[0], after[-1].points[1]
    span = run.pace.track.of_attempt(facts.last.n)
    fell = _fell(run, phase)
    places = {
        bisect_left(run.pace.indexes, span[n]): m
        for m in reversed(said)
        if (n := facts.steps_before(m.cite, facts.last.n)) is not None and n < len(span)
    }
    met = [m for at, m in sorted(places.items()) if abs(at - fell) <= NEAR]
    if not met or last < len(run.pace.indexes) - 1:
        return None
    if len(places) * (2 * NEAR + 1) > CHANCE * len(run.pace.indexes):
        return None
    return GaveUp(met[0], run, phase)


def _fell(run: Course, phase: Slow) -> int:
    """Where the level begins that the phase keeps: the function was compiled once more before."""
    first, fast = phase.points[0], (1 - DROP) * run.best.level
    head = run.pace.values[first : first + FIRST]
    off = [n for n, value in enumerate(head) if value < STOOD * phase.level or value > fast]
    return first + off[-1] + 1 if off and head[0] < STOOD * phase.level else first
