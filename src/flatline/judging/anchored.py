"""
Whether the run was slower while a place's counters burst, asked at their moments.

The phases of the throughput (`judging.throughput`) are found from the pace alone, so that a few
per cent, or a dozen dips within the noise, make none.  Where a counter says when to look, the pace
just inside its bursts is laid beside the pace just outside them.  At their edges, so that a drift
of the pace costs nothing; over all of them as well, so that a short dip at the edge is not taken
for the effect of a burst that went on.

Chance is measured by laying as many bursts anywhere, those in the middle of the run with the
lengths they have, those that reach its border with any.  Twice: on the pace as it is (how often
do bursts meet what the pace does anyway), and on what is left of it without the effect (how often
does noise, as correlated as it is, look like that).  Both bars are divided by how many places that
burst unlike one another are tried; a place's signals are taken together before that.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, groupby, pairwise
from math import exp, log
from random import Random
from statistics import median

from flatline.facts import Facts
from flatline.judging.bursts import CHANCE
from flatline.judging.claims import claim
from flatline.judging.throughput import Pace, Slow, clock, level_cites
from flatline.judging.timeline import Timeline, timeline
from flatline.model import Claim
from flatline.series.spread import SIGMA, mad

EFFECT = 0.015
"""Less than this is no slow-down: pinned repeats of a run differ by 0.3 to 1 %."""
NOISE = 0.005
"""How often noise alone may look like it. CHANCE, how often bursts may meet what the pace does
anyway, is larger: of a single onset among 75 stretches one in 75 meets as well."""
LEAST_STRETCHES = 20
"""Fewer cannot show a meeting beyond chance."""
LEAST_LIT, LEAST_UNLIT = 4, 0.1
"""Stretches a place must have burst in, and the share of all in which it must not have."""
REACH = 8
"""The part of the run (1 in so many stretches) that an edge is looked at on each side."""
WILD, LEAST_WILD = 5.0, 0.1
"""Standard deviations beyond which a stretch counts as if it stood there, a tenth at least."""
ALIKE = 0.8
"""Of the stretches in which either bursts: both ends of a link are tried once."""
DRAWS = 1999
STRENGTH, REPEATED = 0.65, 0.7
"""Belief in one onset, and in several bursts (REPEATS): a few per cent have many causes that
nobody measures."""
MOST, ROOM = 0.75, 0.05
"""Never more than MOST, nor than ROOM above that, whatever stands beside it."""
REPEATS = 3
UNPROVEN = ("Whether something else slowed the run at the same moments: a run without these places"
            " would tell.")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Anchored:
    """
    Places in whose bursts the run was slower, the most so first.

    `lower` is the part by which the pace was lower in them than outside, `chance` how often
    bursts laid at random do as well; `longest` are a place's bursts, the longest first, and
    `outside` is the longest time without any.
    """

    places: tuple[str, ...]
    lower: float
    chance: float
    longest: Mapping[str, tuple[Slow, ...]]
    outside: Slow
    pace: Pace

    @property
    def begins(self) -> float:
        """When the first burst began, POSIX seconds."""
        return min(burst.begins for place in self.places for burst in self.longest[place])

    @property
    def spans(self) -> list[tuple[float, float]]:
        """When the first place's bursts were, POSIX seconds."""
        return [(burst.begins, burst.ends) for burst in self.longest[self.places[0]]]

    @property
    def strength(self) -> float:
        """Several bursts are met by chance less easily than one onset."""
        return REPEATED if len(self.longest[self.places[0]]) >= REPEATS else STRENGTH

    @property
    def most(self) -> float:
        """What other evidence may raise that to."""
        return self.strength + ROOM

    def shown(self, facts: Facts) -> Claim:
        """The pace in the longest burst beside the longest time without."""
        inside = self.longest[self.places[0]][0]
        text = (
            f"Throughput was {inside.level:.4g} {self.pace.unit} in the burst from"
            f" {clock(inside.begins)} to {clock(inside.ends)} UTC,"
            f" {1 - inside.part:.1%} below the {self.outside.level:.4g} from"
            f" {clock(self.outside.begins)} to {clock(self.outside.ends)} UTC"
        )
        cites = (*level_cites(facts, self.pace, inside),
                 *level_cites(facts, self.pace, self.outside))  # fmt: skip
        return claim(text, *cites)

    def told(self, shows: Sequence[Claim]) -> Claim:
        """What the bursts cost, and how often chance does as well."""
        return claim(
            f"Over all of their bursts throughput was {self.lower:.1%} lower than outside; bursts"
            f" laid at random meet so well in {self.chance:.1%} of draws.",
            *(cite for one in shows for cite in one.cites),
        )


def finest(facts: Facts, signals: Sequence[str], pace: Pace, cut: Timeline) -> Timeline | None:
    """The same time cut so that a stretch holds one point of a log's pace, for bursts that follow
    one another too closely for `cut`; None where that is no finer."""
    fine = timeline(facts, signals, pace.span, pace.interval_s)
    return fine if fine is not None and fine.length_s < cut.length_s else None


def anchored(
    pace: Pace,
    cut: Timeline,
    lit: Mapping[str, Sequence[bool]],
    meeting: float = CHANCE,
    cuts: int = 1,
) -> Anchored | None:
    """None where no place's bursts are slower than the time around them, beyond chance: `meeting`
    is how often bursts laid anywhere may meet what the pace does, `cuts` how many were tried."""
    levels = stretch_levels(pace, cut)
    tried = {place: closed for place, marks in lit.items()
             if (closed := _tried(_closed(marks), levels)) is not None}  # fmt: skip
    tries = cuts * _unlike(tried.values())
    if _over(0, NOISE / max(1, tries)):
        return None
    bursting = [sum(column) for column in zip(*tried.values(), strict=True)]
    found: dict[str, tuple[float, float]] = {}
    known: dict[tuple[bool, ...], tuple[float, float] | None] = {}
    for place, marks in tried.items():
        key = tuple(marks)
        if key not in known:
            free = [
                level if own or not count else None
                for level, own, count in zip(levels, marks, bursting, strict=True)
            ]
            known[key] = _slower(free, marks, tries, meeting)
        one = known[key]
        if one is not None:
            found[place] = one
    if not found:
        return None
    places = tuple(sorted(found, key=lambda place: (-found[place][0], place)))
    quiet = _stretches(pace, cut, [not count for count in bursting], 0.0)
    if not quiet:
        return None
    outside = quiet[0]
    bursts = {place: _stretches(pace, cut, tried[place], outside.level) for place in places}
    if not all(bursts.values()):
        return None
    lower, chance = min(one[0] for one in found.values()), max(one[1] for one in found.values())
    return Anchored(places, lower, chance, bursts, outside, pace)


# --- the pace, stretch by stretch ---------------------------------------------------------------


def stretch_levels(pace: Pace, cut: Timeline) -> list[float | None]:
    """The logarithm of the median pace of each stretch; None where none is known."""
    points: list[list[float]] = [[] for _ in cut.ends]
    for time, value in zip(pace.times, pace.values, strict=True):
        at = cut.index(time)
        if at is not None and value > 0:
            points[at].append(value)
    return [log(median(here)) if here else None for here in points]


def _closed(marks: Sequence[bool]) -> list[bool]:
    """A single stretch between two bursts is of theirs: few errors miss one by chance."""
    return [mark or (0 < at < len(marks) - 1 and marks[at - 1] and marks[at + 1])
            for at, mark in enumerate(marks)]  # fmt: skip


def _tried(marks: list[bool], levels: Sequence[float | None]) -> list[bool] | None:
    """The bursts, where enough of the run lies in and outside them."""
    known = [mark for mark, level in zip(marks, levels, strict=True) if level is not None]
    unlit = len(known) - sum(known)
    enough = sum(known) >= LEAST_LIT and unlit >= max(LEAST_LIT, LEAST_UNLIT * len(known))
    return marks if len(known) >= LEAST_STRETCHES and enough else None


def _unlike(rows: Iterable[Sequence[bool]]) -> int:
    """How many of these differ, or more than can be tried: the same bursts asked again are no
    further chance."""
    kept: list[Sequence[bool]] = []
    for row in rows:
        if _over(0, NOISE / max(1, len(kept))):
            break
        both = (sum(a and b for a, b in zip(row, other, strict=True)) for other in kept)
        either = (sum(a or b for a, b in zip(row, other, strict=True)) for other in kept)
        if all(a < ALIKE * b for a, b in zip(both, either, strict=True)):
            kept.append(row)
    return len(kept)


def unlike(kinds: Sequence[Sequence[Sequence[bool]]]) -> int:
    """Of so many kinds of bursts, each of its places, how many are not those of another kind: a
    queue and the pressure that it makes are one."""
    kept: list[Sequence[Sequence[bool]]] = []
    for rows in kinds:
        if not any(all(_unlike([row, *one]) == _unlike(one) for row in rows) for one in kept):
            kept.append(rows)
    return len(kept)


def _stretches(
    pace: Pace, cut: Timeline, marks: Sequence[bool], outside: float
) -> tuple[Slow, ...]:
    """The marked stretches that touch one another, the longest first, with their median pace."""
    out, at = [], 0
    for mark, group in groupby(marks):
        first, at = at, at + len(list(group))
        begins, ends = cut.ends[first] - cut.length_s, cut.ends[at - 1]
        low, high = bisect_right(pace.times, begins), bisect_right(pace.times, ends)
        if mark and low < high:
            level = median(pace.values[low:high])
            part = level / outside if outside else 1.0
            out.append(Slow(begins, ends, level, part, (low, high - 1)))
    return tuple(sorted(out, key=lambda one: (one.begins - one.ends, one.begins)))


# --- inside and outside -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Series:
    """A value a stretch, None where there is none, summed up once for every mean of it."""

    values: Sequence[float | None]

    @cached_property
    def _sums(self) -> tuple[list[float], list[int]]:
        return (list(accumulate((v or 0.0 for v in self.values), initial=0.0)),
                list(accumulate((v is not None for v in self.values), initial=0)))  # fmt: skip

    def fall(self, edges: Sequence[int], lit: bool) -> tuple[float, float]:
        """By how much the values are lower just inside the bursts, as a weighted mean over their
        edges, and the same in units of what independent noise of 1 would make of it.  `edges` are
        the borders of the parts, the run's own with them; `lit` says whether the first is one."""
        sums, counts = self._sums
        reach = max(LEAST_LIT - 1, len(self.values) // REACH)
        total = weights = 0.0
        for before, edge, after in zip(edges, edges[1:], edges[2:], strict=False):
            low, high = max(before, edge - reach), min(after, edge + reach)
            left, right = counts[edge] - counts[low], counts[high] - counts[edge]
            if left and right:
                weight = left * right / (left + right)
                fell = (sums[edge] - sums[low]) / left - (sums[high] - sums[edge]) / right
                total += weight * (-fell if lit else fell)
                weights += weight
            lit = not lit
        return (total / weights, total / weights**0.5) if weights else (0.0, 0.0)


def _slower(
    levels: Sequence[float | None], marks: Sequence[bool], tried: int, meeting: float
) -> tuple[float, float] | None:
    """By what part the pace is lower inside, and the chance of it; None where it is not so."""
    known = [(level, mark) for level, mark in zip(levels, marks, strict=True) if level is not None]
    inside, outside = ([level for level, mark in known if mark is lit] for lit in (True, False))
    if min(len(inside), len(outside)) < LEAST_LIT:
        return None
    lower = median(outside) - median(inside)
    here = _Series(_tamed(levels))
    edges = _edges(marks)
    fell, reach = here.fall(edges, marks[0])
    if min(lower, fell) < EFFECT:
        return None
    left = _Series([None if v is None else v + fell * mark
                    for v, mark in zip(here.values, marks, strict=True)])  # fmt: skip
    dice = Random(len(marks))  # the same draws for the same run
    met = noisy = 0
    for _ in range(DRAWS):
        drawn = _anywhere(edges, marks, dice)
        met += here.fall(drawn, marks[0])[1] >= reach
        noisy += left.fall(drawn, marks[0])[1] >= reach
        if _over(met, meeting / tried) or _over(noisy, NOISE / tried):
            return None
    return 1 - exp(-lower), (1 + max(met, noisy)) / (1 + DRAWS)


def _over(as_well: int, chance: float) -> bool:
    return 1 + as_well > chance * (1 + DRAWS)


def _tamed(levels: Iterable[float | None]) -> list[float | None]:
    """Wild stretches drawn in: the first step compiles, one waits for a disk."""
    rows = list(levels)
    known = [level for level in rows if level is not None]
    middle, spread = median(known), max(LEAST_WILD, WILD * SIGMA * mad(known))
    return [None if v is None else min(max(v, middle - spread), middle + spread) for v in rows]


def _edges(marks: Sequence[bool]) -> list[int]:
    inner = [at for at, (a, b) in enumerate(pairwise(marks), 1) if a is not b]
    return [0, *inner, len(marks)]


def _anywhere(edges: Sequence[int], marks: Sequence[bool], dice: Random) -> list[int]:
    """The same bursts elsewhere: in any order with their lengths, as far apart as may be; one
    that reaches the border of the run, whose length that is not, with any."""
    lengths = [b - a for a, b in pairwise(edges)]
    last = len(lengths) - 1
    kept = [at for at in range(1, last) if marks[edges[at]]]
    free = [at for at in range(last + 1) if at not in kept]
    pool = sum(lengths[at] for at in free)
    borders = [0, *sorted(dice.sample(range(1, pool), len(free) - 1)), pool]
    drawn = dict(zip(free, (b - a for a, b in pairwise(borders)), strict=True))
    order = [lengths[at] for at in kept]
    dice.shuffle(order)
    drawn |= dict(zip(kept, order, strict=True))
    return list(accumulate((drawn[at] for at in range(last + 1)), initial=0))
