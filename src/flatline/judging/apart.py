"""
GPUs whose readings stand apart from the others' in the run's slow phases, and in those alone.

Their own fast phases are the control: a GPU that always differs (a pipeline stage, a cooler slot)
slows nothing.  What stands apart must also be large enough to explain the slowness.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import groupby
from math import isfinite
from typing import TYPE_CHECKING

from flatline.facts import Facts
from flatline.judging.anchored import Anchored, anchored
from flatline.judging.bursts import CHANCE, Aligned, align, marked
from flatline.judging.claims import claim
from flatline.judging.gpus import BUSY_RATIO, Readings, readings, whole_hosts
from flatline.judging.shifted import shifted
from flatline.judging.throughput import FEW_STRETCHES, Course, Slow
from flatline.judging.timeline import Timeline, instant, timeline, usual
from flatline.model import Claim, Place
from flatline.series.answer import by_exporter, grid

if TYPE_CHECKING:
    from flatline.series.storage import Floats

STILL = 0.2
"""Of what the one host's readings changed by, the other's may have changed."""
MOST_SHARE = 0.25
"""More GPUs than this share are a pipeline stage or another part of the model, not a rank."""
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
    values: Floats
    """The finite values of each GPU (a row, as in `read`) and stretch; NaN where there is none."""

    def alike(self) -> Fleet:
        """Those of its GPUs that one exporter tells of, the one that tells of most."""
        told = by_exporter(self.read.rows)
        if len(told) < 2:
            return self
        most = max(told.values(), key=len)
        return self._of(most)

    def working(self) -> Fleet:
        """Those of hosts on which a GPU was at work in any stretch: the others no run held."""
        held = self.values >= BUSY_RATIO  # NaN is not
        worked = {place: bool(held[row].any()) for row, place in enumerate(self.read.rows)}
        hosts = {place.host for place, did in worked.items() if did}
        return self._of([place for place in worked if place.host in hosts])

    def _of(self, places: Iterable[Place]) -> Fleet:
        read = Readings(self.read.answer, {place: self.read.rows[place] for place in places})
        return replace(self, read=read, values=grid(read.rows.values(), self.cut.ends))

    def names(self) -> dict[str, Place]:
        return {str(place): place for place in self.read.rows}

    def in_slow_phases(
        self, ratio: float, floor: float, *, rare: bool, chance: float = CHANCE
    ) -> Aligned | None:
        """The GPUs beyond `ratio` of the others of their model (above, or below where it is less
        than 1), by their spread and by `floor` at least; `rare` and `chance` as in `align`."""
        low = self.run.low(self.cut)
        slow, fast = ([at for at, mark in enumerate(low) if mark is wanted]
                      for wanted in (True, False))  # fmt: skip
        lit = self._at_work(self._apart(ratio, floor), lambda _: (slow, fast))
        found = align(lit, low, rare=rare, chance=chance)
        if found is None or not (
            self._few(found.hosts) or (rare and self._alone_changed(found.hosts, slow, fast))
        ):
            return None
        needed = EXPLAINS_SHARE * (1.0 - min(phase.part for phase in self.run.slow))
        return found if self._differs(found.hosts, slow) >= needed else None

    def at_moments(self, ratio: float, floor: float) -> Anchored | None:
        """The GPUs apart from the others at moments of their own, at which the run is slower:
        where its pace alone shows no phase."""

        def times(marks: Sequence[bool]) -> tuple[list[int], list[int]]:
            every = range(len(marks))
            return [at for at in every if marks[at]], [at for at in every if not marks[at]]

        working = self._at_work(self._apart(ratio, floor), times)
        lit = {name: _bridged(marks) for name, marks in working.items()}
        found = anchored(self.run.pace, self.cut, lit, MEETING) if lit else None
        return found if found is not None and self._few(found.places) else None

    def _at_work(
        self,
        lit: Mapping[str, list[bool]],
        times: Callable[[Sequence[bool]], Iterable[list[int]]],
    ) -> dict[str, list[bool]]:
        """Those of the GPUs that take part in the run in each of these groups of stretches, as
        far as they were read in them."""
        if not lit:
            return {}
        from flatline.series.standing import medians

        over = self.values - TAKES_PART * medians(self.values.T)
        rows = {str(place): row for row, place in enumerate(self.read.rows)}

        def works(name: str, stretches: list[int]) -> bool:
            typical = medians(over[rows[name], stretches].reshape(1, -1)) if stretches else [0.0]
            return not float(typical[0]) < 0  # NaN where it was not read in them

        return {name: marks for name, marks in lit.items()
                if all(works(name, stretches) for stretches in times(marks))}  # fmt: skip

    def _few(self, names: Sequence[str]) -> bool:
        """Whether these are no part of the model: a share of the GPUs, or one whole host of
        several."""
        named = self.names()
        hosts = {named[name].host for name in names}
        whole = [place for place in self.read.rows if place.host in hosts]
        one = len(hosts) == 1 and len(whole) == len(names)
        several = len({place.host for place in self.read.rows}) >= HOSTS
        return len(names) <= MOST_SHARE * len(self.read.rows) or (one and several)

    def of_one_place(self, names: Sequence[str]) -> bool:
        """Whether these are the cards of the same numbers on each of several hosts: a part of the
        model that is laid out so, as experts are, and no fault of as many cards at once."""
        named, by_host = self.names(), defaultdict[str, set[str]](set)
        for name in names:
            by_host[named[name].host or ""].add(named[name].gpu or "")
        numbers = [*by_host.values()]
        return len(numbers) > 1 and all(one == numbers[0] for one in numbers)

    def _alone_changed(
        self, names: Sequence[str], slow: Sequence[int], fast: Sequence[int]
    ) -> bool:
        """Whether these are one whole host of two, and the other reads in the slow phases what it
        read in the fast ones: which of two is the odd one, their difference does not tell."""
        from flatline.series.standing import medians

        named = self.names()
        own = [row for row, place in enumerate(self.read.rows) if str(place) in set(names)]
        others = [row for row in range(len(self.read.rows)) if row not in own]
        hosts = {named[name].host for name in names}
        rest = {place.host for place in self.read.rows} - hosts
        whole = not any(place.host in hosts for row, place in enumerate(self.read.rows)
                        if row in others)  # fmt: skip
        if len(hosts) != 1 or len(rest) != 1 or not whole or not slow or not fast:
            return False

        def moved(rows: list[int]) -> float:
            then, now = (float(medians(self.values[rows][:, at].reshape(1, -1))[0])
                         for at in (fast, slow))  # fmt: skip
            return abs(now / then - 1) if then else 0.0

        return moved(others) <= STILL * moved(own)

    def _differs(self, names: Sequence[str], slow: Sequence[int]) -> float:
        """By what part of the median GPU the farthest of these differs over these stretches."""
        from flatline.series.standing import medians

        read = self.values[:, slow]
        named, at = set(names), {place: row for row, place in enumerate(self.read.rows)}
        far = [0.0]
        for places in by_exporter(self.read.rows).values():
            level = float(medians(read[[at[place] for place in places]].reshape(1, -1))[0])
            rows = [at[place] for place in places if str(place) in named]
            own = medians(read[rows]).tolist() if rows and level else []
            far += [abs(value / level - 1.0) for value in own if isfinite(value)]
        return max(far)

    def _apart(self, ratio: float, floor: float) -> dict[str, list[bool]]:
        from flatline.series.standing import standing  # what judges is imported without NumPy

        models: dict[tuple[str | None, str], list[int]] = {}
        for at, row in enumerate(self.read.rows.values()):
            models.setdefault((row.labels.get("model"), row.exporter), []).append(at)

        def above(values: Floats) -> list[int]:
            return [peers[at] for peers in models.values()
                    for at in standing(values[peers], ratio=ratio, floor=floor)]  # fmt: skip

        lit = marked([([*self.read.rows], self.values)], above)
        off = self._of_another_clock({place.host or "" for place in lit})
        return {str(place): marks for place, marks in lit.items() if place.host not in off}

    def _of_another_clock(self, hosts: Set[str]) -> frozenset[str]:
        """Hosts whose readings are earlier or later than the others': they stand apart whenever
        all pause."""
        import numpy as np  # as in `_at_work`

        if not hosts:
            return frozenset()
        rows: dict[str, list[int]] = {}
        for at, place in enumerate(self.read.rows):
            rows.setdefault(place.host or "", []).append(at)
        known = np.where(np.isfinite(self.values), self.values, 0.0)
        count = np.isfinite(self.values)
        means = {
            host: np.where(count[own].any(axis=0),
                           known[own].sum(axis=0) / np.maximum(count[own].sum(axis=0), 1), np.nan)
            for host, own in rows.items()
        }  # fmt: skip
        return shifted(means, hosts)

    def places(self, names: Sequence[str]) -> tuple[Place, ...]:
        """The GPUs, or their host where it is all of a host's."""
        named = self.names()
        return whole_hosts([named[name] for name in names], self.read.rows)

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
        row = self.read.rows.get(place)
        others = usual(facts, queries[0], float(int(phase.ends)), f"{text} of the median GPU",
                       exporter=row.exporter if row is not None else None)  # fmt: skip
        if own is None or others is None:
            return None
        told = say.format(own=written(own.value), others=written(others.value))
        past = f"; while the run was fast {written(before.value)}" if before else ""
        return claim(f"{place} {told}{past}", own, others, before)


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
    cut = timeline(facts, [signal], run.pace.span, run.stretch_s)
    if cut is not None and len(cut.ends) < FEW_STRETCHES:
        cut = timeline(facts, [signal], run.pace.span, run.stretch_s, samples=1)
    read = None if cut is None else readings(cut.ask(facts, f"avg_over_time({signal}[w])"))
    if cut is None or read is None:
        return None
    return Fleet(signal, run, cut, read, grid(read.rows.values(), cut.ends))
