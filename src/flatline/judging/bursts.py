"""
Hosts whose bursts of something line up with the run's slow phases.

A burst is a stretch in which a host stands far above the others then.  Hosts whose bursts lie in
slow phases are taken together, and what they cover of the slow time is the score; of rare bursts
that hardly reach into fast time also that times the share of them that lies in it, for any phase
within a long burst is covered whole.  Its chance is measured by cutting the run at random into as
many slow phases, several of the same lengths, and choosing the hosts anew each time, so that
choosing the best of many hosts counts against the result.  Turning the throughput round against
the hosts instead calls phases that come at even distances chance: half a turn later they meet as
well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random
from typing import TYPE_CHECKING, TypeVar

from flatline.judging.timeline import ByHost, Timeline
from flatline.series.answer import by_exporter, grid
from flatline.series.spread import PEERS

if TYPE_CHECKING:
    from flatline.series.storage import Floats

K = TypeVar("K", bound=Hashable)

APART_RATIO = 3.0
"""Times the other hosts' median."""
LEAST_COUNT = 10.0
"""Of two or three hosts one must have counted so much, and APART_RATIO times any other."""
PRECISION = 0.8
"""Of a host's bursts so many must lie in slow phases: one that bursts as much while the run is
fast slows nothing."""
RECALL = 0.7
"""Of the slow time so much must be covered by the hosts' bursts."""
CHANCE = 0.05
LEAST_BURSTS = 2
DRAWS = 399
PHASES = 4
"""Of so many slow phases a random cut keeps the lengths: what meets them all meets few other cuts
of such phases, while fewer can be shifted to too few places for that to tell.  Bursts and
phases that know nothing of each other are still taken together in less than CHANCE of runs."""
BESIDE = 3
"""Fast stretches before and behind all slow phases: a border may be off by one.  A judgement."""


@dataclass(frozen=True, slots=True)
class Aligned:
    """The hosts, most bursts in slow phases first, how much of the slow time they cover, and how
    often chance does as well."""

    hosts: tuple[str, ...]
    recall: float
    chance: float


@dataclass(frozen=True, slots=True)
class Bar:
    """
    How far above the other hosts a value must stand: by `ratio` times their median and by their
    spread, which is taken as `least` at least, and for counts as the root of their median.

    With two or three hosts one must reach `alone`, and `ratio` times any other.
    """

    ratio: float = APART_RATIO
    least: float = 1.0
    alone: float = LEAST_COUNT
    counts: bool = True

    def above(self, values: Floats) -> list[int]:
        """Where those lie that are far above the others."""
        import numpy as np  # where numbers were read alone

        from flatline.series.standing import standing

        here = np.flatnonzero(np.isfinite(values))
        known = values[here]
        if known.size > PEERS:
            middle = float(np.partition(known, known.size // 2)[known.size // 2])
            root = max(middle, 0.0) ** 0.5 if self.counts else 0.0
            return standing(values, ratio=self.ratio, floor=max(self.least, root))
        return [
            int(here[at])
            for at, value in enumerate(known)
            if value >= self.alone
            and (value >= self.ratio * np.delete(known, at)).all()
            and known.size > 1
        ]


def bursts(read: Sequence[ByHost], cut: Timeline, bar: Bar | None = None) -> dict[str, list[bool]]:
    """Per host and stretch whether any of these signals stood far above the other hosts' that the
    same exporter reads."""
    laid = [(hosts, grid([signal.rows[host] for host in hosts], cut.ends))
            for signal in read for hosts in by_exporter(signal.rows).values()]  # fmt: skip
    lit = marked(laid, (bar or Bar()).above)
    return {host: lit[host] for hosts, _ in laid for host in hosts if host in lit}


def marked(
    read: Iterable[tuple[Sequence[K], Floats]], above: Callable[[Floats], Sequence[int]]
) -> dict[K, list[bool]]:
    """Per place and stretch whether any of these signals, [place x stretch], stood `above` the
    other places'; of the places where one ever did, in the order in which it did."""
    lit: dict[K, list[bool]] = {}
    for places, values in read:
        for at in range(values.shape[1]):
            for row in above(values[:, at]):
                lit.setdefault(places[row], [False] * values.shape[1])[at] = True
    return lit


def align(
    lit: Mapping[str, Sequence[bool]],
    low: Sequence[bool | None],
    *,
    rare: bool = False,
    chance: float = CHANCE,
) -> Aligned | None:
    """Hosts whose bursts make up the slow phases; None where none do, or chance might.  Bursts of
    what sound hosts never show are `rare`: it counts for them that they leave fast time alone."""
    kept = [at for at, slow in enumerate(low) if slow is not None]
    slow = [bool(low[at]) for at in kept]
    if not any(slow) or all(slow):
        return None
    by_host = {host: _bits(marks[at] for at in kept) for host, marks in lit.items()}
    hosts, recall, precise = _covering(by_host, slow)
    if not hosts or recall < RECALL:
        return None
    # the same draws for the same run: a verdict does not change by itself
    dice, as_well = Random(len(slow)), Counter[str]()
    phases = [len(list(run)) for mark, run in groupby(slow) if mark]
    ways = ["covered", "alone"] if rare and not _bursts_on(by_host, hosts, slow) else ["covered"]
    # a burst of the fast time, which hardly any other cut would hold, must not count for them
    near = _widened(_bits(slow))
    by_host = {host: marks & near if host in hosts else marks for host, marks in by_host.items()}
    for _ in range(DRAWS):
        _, covered, within = _covering(by_host, _cut_at_random(slow, phases, dice))
        as_well["covered"] += covered >= recall
        as_well["alone"] += covered * within >= recall * precise
        if min(as_well[way] for way in ways) > chance * (1 + DRAWS) - 1:
            return None
    return Aligned(hosts, recall, (1 + min(as_well[way] for way in ways)) / (1 + DRAWS))


def passed(slow: Sequence[bool | None]) -> bool:
    """Whether the run was fast before it was slow and is so again: what grows with a run's time
    does not go with it."""
    ends = (*slow[:BESIDE], *slow[-BESIDE:])
    return len(slow) > 2 * BESIDE and all(mark is False for mark in ends)


def _bursts_on(by_host: Mapping[str, int], hosts: Sequence[str], slow: Sequence[bool]) -> bool:
    """Whether these hosts burst in a good part of the fast time as well: what lies in nearly all
    of a run that is nearly all slow has hardly a burst outside."""
    near, together = _widened(_bits(slow)), 0
    for host in hosts:
        together |= by_host[host]
    fast = len(slow) - sum(slow)
    return (together & ~near).bit_count() > (1 - PRECISION) * fast


def _cut_at_random(slow: Sequence[bool], phases: Sequence[int], dice: Random) -> list[bool]:
    """As many stretches with as many slow phases, anywhere: of several the lengths are kept."""
    if len(phases) < PHASES:
        return _of_any_lengths(len(slow), len(phases), dice)
    fast = len(slow) - sum(slow)
    lengths = dict(zip(dice.sample(range(fast + 1), len(phases)), phases, strict=True))
    marks: list[bool] = []
    for at in range(fast + 1):
        marks += [True] * lengths.get(at, 0) + [False] * (at < fast)
    return marks


def _of_any_lengths(count: int, phases: int, dice: Random) -> list[bool]:
    edges = sorted(dice.sample(range(count + 1), 2 * phases))
    marks = [False] * count
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        marks[begin:end] = [True] * (end - begin)
    return marks


def _bits(marks: Iterable[bool]) -> int:
    """Marks as the bits of a number, the first the lowest: what hundreds of draws ask of every
    host is then one operation each."""
    return sum(1 << at for at, mark in enumerate(marks) if mark)


def _covering(
    by_host: Mapping[str, int], slow: Sequence[bool]
) -> tuple[tuple[str, ...], float, float]:
    """The hosts whose bursts lie in the slow time, the share of it they cover together, and the
    share of their bursts that lies in it. A border may be off by a stretch: the clocks and the
    windows are not the same."""
    low = _bits(slow)
    near, together = _widened(low), 0
    chosen: dict[str, int] = {}
    for host, marks in by_host.items():
        total, inside = marks.bit_count(), (marks & near).bit_count()
        if total >= LEAST_BURSTS and inside >= PRECISION * total:
            chosen[host] = inside
            together |= marks
    if not chosen:
        return (), 0.0, 0.0
    lit = sum(by_host[host].bit_count() for host in chosen)
    order = sorted(chosen, key=lambda host: (-chosen[host], host))
    recall = (_widened(together) & low).bit_count() / low.bit_count()
    return tuple(order), recall, sum(chosen.values()) / lit


def _widened(marks: int) -> int:
    return marks | marks << 1 | marks >> 1
