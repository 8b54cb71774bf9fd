"""Both runs over one axis: what was compared step by step, and signals that differ."""

from __future__ import annotations

from math import isfinite
from statistics import median

from flatline.exhibit.curves import STRETCHES, thinned
from flatline.exhibit.model import Both
from flatline.facts import Facts
from flatline.judging.comparison import comparison, signal_levels
from flatline.judging.steps import Name, columns
from flatline.judging.throughput import pace

SIGNALS_DRAWN = 4
Points = tuple[tuple[float, float], ...]
_NAMES: tuple[Name, ...] = ("throughput", "step time", "loss")


def compared_of(facts: Facts) -> tuple[Both, ...]:
    """Empty where the run has no baseline, or where the two share nothing that can be drawn."""
    beside = comparison(facts)
    if beside is None or facts.baseline is None:
        return ()
    made = _by_step(facts, facts.baseline) or _by_time(facts, facts.baseline)
    known = signal_levels(facts)
    for change in beside.signals[:SIGNALS_DRAWN]:
        level = known[change.signal]
        ours, theirs = (_spread(course) for course in (level.our_course, level.their_course))
        made += [Both(change.signal, "the run, median host", " %", ours, theirs)]
    return tuple(made)


def _by_step(facts: Facts, other: Facts) -> list[Both]:
    mine, its = columns(facts), columns(other)
    if mine is None or its is None:
        return []
    made: list[Both] = []
    for name in _NAMES:
        if mine.axes[name] != its.axes[name]:
            continue
        scale = 1.0 if mine.axes[name] == "steps" else 1000.0
        ours, theirs = (
            thinned([(step / scale, read.columns[name][step][0])
                     for step in sorted(read.columns[name])], STRETCHES)
            for read in (mine, its)
        )  # fmt: skip
        told = any(both.name in ("throughput", "step time") for both in made)
        if len(ours) > 1 and len(theirs) > 1 and not (name == "step time" and told):
            made.append(Both(name, mine.axes[name], "", ours, theirs))
    return made


def _by_time(facts: Facts, other: Facts) -> list[Both]:
    mine, its = pace(facts), pace(other)
    if mine is None or its is None or mine.unit != its.unit:
        return []
    drawn = []
    for known in (mine, its):
        begins = known.times[0]
        points = [((time - begins) / 3600.0, value)
                  for time, value in zip(known.times, known.values, strict=True)
                  if isfinite(value)]  # fmt: skip
        drawn.append(thinned(points, STRETCHES))
    return [Both("throughput", "hours since each began", " h", drawn[0], drawn[1])]


def _spread(course: tuple[float, ...]) -> Points:
    """A course over its run, from 0 to 100 per cent of it."""
    if not all(map(isfinite, course)):
        course = tuple(value if isfinite(value) else median(course) for value in course)
    last = max(1, len(course) - 1)
    return tuple((100.0 * at / last, value) for at, value in enumerate(course))
