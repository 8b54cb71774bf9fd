"""
GPUs whose readings stand apart from the others' in the run's slow phases, and in those alone.

Their own fast phases are the control: a GPU that always differs (a pipeline stage, a cooler slot)
slows nothing.  What stands apart must also be large enough to explain the slowness.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, groupby
from math import isfinite
from operator import not_
from statistics import median

from flatline.facts import Facts
from flatline.judging.anchored import Anchored, anchored
from flatline.judging.bursts import Aligned, align
from flatline.judging.claims import claim
from flatline.judging.gpus import Readings, readings
from flatline.judging.throughput import Course, Slow
from flatline.judging.timeline import Timeline, instant, timeline, usual
from flatline.model import Claim, Place
from flatline.series.spread import MANY, apart

MOST_SHARE = 0.25
"""More GPUs than this share are a pipeline stage or another part of the model, not a rank."""
NEARLY = 0.99
HOSTS = 3
"""Of so many one may be the slow one; of two nothing tells which."""
EXPLAINS_SHARE = 0.4
"""Of the slow-down so much must be had from the difference: a step waits for the slowest rank
only where it computes, so that a device slower by a tenth slows the step by less."""

MEETING = 0.1
"""A device that stands apart slows a synchronous run, which a counter of errors need not: its
moments may meet the pace by chance twice as often as `anchored` allows a counter's.  A judgement:
the false alarms that were simulated are those of the counters' bar."""
TAKES_PART = 0.1
"""Of the median GPU's reading, fast and slow: below it a GPU computes no part of a step, and is
another job's, a spare, or nobody's.  A judgement, far below what a rank of a run that goes on
shows."""
BREAK = 3
"""Stretches between two in which a device stands apart that still count as one."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """A signal of every GPU, as means over the stretches of the run."""

    signal: str
    run: Course
    cut: Timeline
    read: Readings
    columns: Mapping[float, Mapping[Place, float]]
    """The finite values of each stretch."""

    def names(self) -> dict[str, Place]:
        return {str(place): place for place in self.read.rows}

    def in_slow_phases(self, ratio: float, floor: float) -> Aligned | None:
        """The GPUs beyond `ratio` of the others of their model (above, or below where it is less
        than 1), by their spread and by `floor` at least."""
        low = self.run.low(self.cut)
        slow, fast = ([end for end, at in zip(self.cut.ends, low, strict=True) if at is wanted]
                      for wanted in (True, False))  # fmt: skip
        found = align(self._at_work(self._apart(ratio, floor), lambda _: (slow, fast)), low)
        if found is None or not self._few(found.hosts):
            return None
        needed = EXPLAINS_SHARE * (1.0 - min(phase.part for phase in self.run.slow))
        named = self.names()
        return (
            found if self._differs([named[name] for name in found.hosts], slow) >= needed else None
        )

    def at_moments(self, ratio: float, floor: float) -> Anchored | None:
        """The GPUs apart from the others at moments of their own, at which the run is slower:
        where its pace alone shows no phase."""

        def times(marks: Sequence[bool]) -> tuple[Sequence[float], Sequence[float]]:
            ends = self.cut.ends
            return [*compress(ends, marks)], [*compress(ends, map(not_, marks))]

        working = self._at_work(self._apart(ratio, floor), times)
        lit = {name: _bridged(marks) for name, marks in working.items()}
        found = anchored(self.run.pace, self.cut, lit, MEETING) if lit else None
        return found if found is not None and self._few(found.places) else None

    def _at_work(
        self,
        lit: Mapping[str, list[bool]],
        times: Callable[[Sequence[bool]], Iterable[Sequence[float]]],
    ) -> dict[str, list[bool]]:
        """Those of the GPUs that take part in the run in each of these times, as far as they were
        read in them."""
        if not lit:
            return {}
        named = self.names()
        least = {end: TAKES_PART * median(values.values())
                 for end, values in self.columns.items() if values}  # fmt: skip

        def works(place: Place, ends: Sequence[float]) -> bool:
            over = [self.columns[end][place] - least[end]
                    for end in ends if place in self.columns[end]]  # fmt: skip
            return not over or median(over) >= 0

        return {name: marks for name, marks in lit.items()
                if all(works(named[name], ends) for ends in times(marks))}  # fmt: skip

    def _few(self, names: Sequence[str]) -> bool:
        """Whether these are no part of the model: a share of the GPUs, or one whole host of
        several."""
        named = self.names()
        hosts = {named[name].host for name in names}
        whole = [place for place in self.read.rows if place.host in hosts]
        one = len(hosts) == 1 and len(whole) == len(names)
        several = len({place.host for place in self.read.rows}) >= HOSTS
        return len(names) <= MOST_SHARE * len(self.read.rows) or (one and several)

    def _differs(self, places: Sequence[Place], ends: Sequence[float]) -> float:
        """By what part of the median GPU the farthest of these differs over these stretches."""
        level = median([v for end in ends for v in self._values(end).values()] or [0.0])
        rows = ([self.read.value(place, end) for end in ends] for place in places)
        own = [median(read) for row in rows if (read := [v for v in row if v is not None])]
        return max((abs(value / level - 1.0) for value in own), default=0.0) if level else 0.0

    def _values(self, end: float) -> Mapping[Place, float]:
        return self.columns.get(end, {})

    def _apart(self, ratio: float, floor: float) -> dict[str, list[bool]]:
        models: dict[str | None, list[Place]] = {}
        for place, row in self.read.rows.items():
            models.setdefault(row.labels.get("model"), []).append(place)
        lit: dict[str, list[bool]] = {}
        for at, end in enumerate(self.cut.ends):
            values = self._values(end)
            for peers in models.values():
                found = {place: values[place] for place in peers if place in values}
                if not _any_beyond(found.values(), ratio):
                    continue
                here = {str(place): value for place, value in found.items()}
                for name in apart(here, ratio=ratio, floor=floor):
                    lit.setdefault(name, [False] * len(self.cut.ends))[at] = True
        return lit

    def places(self, names: Sequence[str]) -> tuple[Place, ...]:
        """The GPUs, or their host where it is all of a host's."""
        named = self.names()
        chosen = [named[name] for name in names]
        out: dict[Place, None] = {}
        for place in chosen:
            here = [p for p in self.read.rows if p.host == place.host]
            whole = place.host is not None and len(here) > 1 and set(here) <= set(chosen)
            out.setdefault(Place(host=place.host) if whole else place)
        return tuple(out)

    def beside(
        self,
        facts: Facts,
        place: Place,
        phase: Slow,
        said: tuple[str, str, Callable[[float], str]],
        fast: Slow | None = None,
    ) -> Claim | None:
        """Its reading in the slow phase beside the median GPU's, and beside its own when the run
        was fast (`fast`, or its best phase): the name of the reading, a sentence with {own} and
        {others}, and how numbers are written."""
        text, say, written = said
        queries = [f"avg_over_time({self.signal}[{max(1, int(p.ends - p.begins))}s])"
                   for p in (phase, fast or self.run.best)]  # fmt: skip
        own, before = (
            None if read is None else read.cite(place, float(int(p.ends)), text)
            for p, q in zip((phase, fast or self.run.best), queries, strict=True)
            for read in (readings(instant(facts, q, float(int(p.ends)))),)
        )
        others = usual(facts, queries[0], float(int(phase.ends)), f"{text} of the median GPU")
        if own is None or others is None:
            return None
        told = say.format(own=written(own.value), others=written(others.value))
        past = f"; while the run was fast {written(before.value)}" if before else ""
        return claim(f"{place} {told}{past}", own, others, before)


def _any_beyond(values: Collection[float], ratio: float) -> bool:
    """Whether any of many could lie beyond the ratio of the others' median, which is that of all
    but for NEARLY; few are always looked at."""
    if len(values) <= MANY:
        return True
    limit = ratio * median(values)
    return max(values) > NEARLY * limit if ratio > 1 else NEARLY * min(values) < limit


def _bridged(marks: Sequence[bool]) -> list[bool]:
    """Without short breaks: what holds a device down lets it up for moments."""
    out, at = list(marks), 0
    for lit, group in groupby(marks):
        length = len(list(group))
        if not lit and at > 0 and at + length < len(out) and length <= BREAK:
            out[at : at + length] = [True] * length
        at += length
    return out


def fleet(facts: Facts, run: Course, signal: str) -> Fleet | None:
    """None where the signal was not measured while the run's pace is known."""
    return facts.memo(f"apart.{signal}", lambda facts: _fleet(facts, run, signal))


def _fleet(facts: Facts, run: Course, signal: str) -> Fleet | None:
    if not facts.measured(signal):
        return None
    cut = timeline(facts, [signal], run.pace.span, 2 * run.pace.interval_s)
    read = None if cut is None else readings(cut.ask(facts, f"avg_over_time({signal}[w])"))
    if cut is None or read is None:
        return None
    columns: dict[float, dict[Place, float]] = {end: {} for end in cut.ends}
    for place, row in read.rows.items():
        for time, value in row.points():
            if time in columns and isfinite(value):
                columns[time][place] = value
    return Fleet(signal, run, cut, read, columns)
