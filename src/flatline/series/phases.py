"""
Where a series changed its level, and the phases between the changes.

A series is cut where its ranks, summed up, stray furthest from what any order would give: at the
highest and the lowest point of that sum, which finds a dip in the middle as well as a step.  The
chance of straying so far is Kuiper's (its asymptotic form).  A series without a change is tried
once, each phase that was found once more.  Ranks make single spikes harmless.

Ranks know nothing of how far off a few points are, of which a sum never strays far, nor does it
where dips come and go.  Where the highest or the lowest points follow one another in a run or a
few, with nothing between them and the rest, they are phases by the odds of that alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, comb, exp
from statistics import median

CHANCE = 0.01
"""How often a series without a change, or a phase, may be cut all the same."""
LEAST = 4
"""Points a phase has at least."""
SHARE = 0.1
"""Of all points: fewer that stand apart are an incident and no phase."""
GAP = 1 / 3
"""Of the step between two levels: more than that is free of points, but for one at each end that
was read while the level changed."""
GAP_BESIDE = 1 / 2
"""The same where each of several dips has its own such points, which fill the gap together: more
than that must be free without them."""
EFFECT = 0.03
"""A change of level smaller than this is none that matters: pinned repeats of a run differ by
0.3 to 1 %, runs on other nodes by 2 %."""


@dataclass(frozen=True, slots=True)
class Phase:
    """Points first..last-1 of a series, and their median."""

    first: int
    last: int
    level: float

    def __len__(self) -> int:
        return self.last - self.first


def phases(
    values: Sequence[float], *, chance: float = CHANCE, least: int = LEAST, effect: float = EFFECT
) -> tuple[Phase, ...]:
    """The phases of a series, in order and without holes; one where it never changed, none where
    it has no values. `effect` is a part of the larger of two levels."""
    if not values:
        return ()
    cuts = sorted(_cuts(values, 0, len(values), chance, least))
    found = [_phase(values, a, b) for a, b in zip([0, *cuts], [*cuts, len(values)], strict=True)]
    found = _sharpened(values, found, least)
    while (at := _alike(found, effect)) is not None:
        found[at : at + 2] = [_phase(values, found[at].first, found[at + 1].last)]
    return tuple(found)


def _phase(values: Sequence[float], first: int, last: int) -> Phase:
    return Phase(first, last, median(values[first:last]))


def _sharpened(values: Sequence[float], found: list[Phase], least: int) -> list[Phase]:
    """The same phases with each border where the points beside it are nearest to their own
    level."""
    cuts = [found[0].first]
    for a, b in itertools.pairwise(found):
        reach = range(max(cuts[-1] + least, a.last - least), min(b.last, a.last + least) + 1)
        window = range(reach.start, reach.stop - 1) if len(reach) > 1 else range(0)

        def misfit(cut: int, a: Phase = a, b: Phase = b, window: range = window) -> float:
            return sum(abs(values[i] - (a.level if i < cut else b.level)) for i in window)

        cuts.append(min(reach, key=misfit) if len(reach) > 1 else a.last)
    cuts.append(found[-1].last)
    return [_phase(values, a, b) for a, b in itertools.pairwise(cuts) if b > a]


def _alike(found: Sequence[Phase], effect: float) -> int | None:
    """The neighbours that differ least, where that is less than matters."""
    differences = [
        (abs(a.level - b.level) / (max(abs(a.level), abs(b.level)) or 1.0), at)
        for at, (a, b) in enumerate(itertools.pairwise(found))
    ]
    smallest = min(differences, default=None)
    return smallest[1] if smallest is not None and smallest[0] < effect else None


def _cuts(
    values: Sequence[float], first: int, last: int, chance: float, least: int
) -> Iterator[int]:
    todo = [(first, last)]
    while todo:
        low, high = todo.pop()
        if high - low < 2 * least:
            continue
        strayed = _strayed(values[low:high])
        at_top = max(range(len(strayed)), key=strayed.__getitem__)
        at_bottom = min(range(len(strayed)), key=strayed.__getitem__)
        ends = sorted({at_top, at_bottom})
        if kuiper(strayed[at_top] - strayed[at_bottom]) > chance:
            part = values[low:high]
            ends = _together(part, chance, least) or _together(part, chance, least, GAP_BESIDE)
        cuts = [low + at for at in ends if least <= at <= high - low - least]
        yield from cuts
        if cuts:
            bounds = [low, *cuts, high]
            todo += list(itertools.pairwise(bounds))


def _together(
    values: Sequence[float], chance: float, least: int, beside: float = 0.0
) -> list[int]:
    """Where the runs of points begin and end that stand apart from all others: of any number of
    the highest or the lowest, those with the widest gap that make few runs. None where chance
    might make as few. With `beside` the points next to a run may lie in the gap, which must be
    that part of the step without them. A few alone that lie further off than those of all runs, as
    a first step does that compiles, are an incident and left out."""
    count = len(values)
    order = sorted(range(count), key=values.__getitem__)
    found: tuple[float, list[int]] = (0.0, [])
    for ranked in (order, order[::-1]):
        chosen = bytearray(count + 2)  # one more at either end, so that each point has neighbours
        for many, last in enumerate(ranked[: count // 2], 1):
            chosen[last + 1] = 1
            if many < max(least, ceil(SHARE * count)):
                continue
            nearest = ranked[many]
            if beside:
                rest = (ranked[n] for n in range(many, count))
                nearest = next((n for n in rest if not (chosen[n] or chosen[n + 2])), nearest)
            gap = abs(values[nearest] - values[last])
            step = abs(values[ranked[many // 2]] - values[ranked[(many + count) // 2]])
            if gap <= max((beside or GAP) * step, found[0]):
                continue
            runs = _runs(sorted(ranked[:many]))
            lasting = [run for run in runs if run[1] - run[0] >= least]
            odd = many - sum(end - first for first, end in lasting)
            if not lasting or odd > max(1.0, SHARE * many):
                continue
            if any(first <= at < end for at in ranked[:odd] for first, end in lasting):
                continue
            if count * _odds(count - odd, many - odd, len(lasting)) <= chance:
                found = gap, [edge for run in lasting for edge in run]
    return found[1]


def _runs(points: Sequence[int]) -> list[tuple[int, int]]:
    """The runs of neighbours among these, first..last + 1."""
    runs: list[tuple[int, int]] = []
    for at in points:
        if runs and runs[-1][1] == at:
            runs[-1] = runs[-1][0], at + 1
        else:
            runs.append((at, at + 1))
    return runs


def _odds(count: int, many: int, runs: int) -> float:
    """How often so many of these points, drawn at random, make so few runs."""
    ways = sum(comb(count - many + 1, n) * comb(many - 1, n - 1) for n in range(1, runs + 1))
    return ways / comb(count, many)


def _strayed(values: Sequence[float]) -> list[float]:
    """Ranks less their mean, summed up, as a Brownian bridge would have them; ties share ranks."""
    count = len(values)
    order = sorted(range(count), key=values.__getitem__)
    ranks = [0.0] * count
    at = 0
    while at < count:
        end = at
        while end + 1 < count and values[order[end + 1]] == values[order[at]]:
            end += 1
        for index in order[at : end + 1]:
            ranks[index] = (at + end) / 2 + 1
        at = end + 1
    scale = (count * count * (count + 1) / 12) ** 0.5
    total, out = 0.0, [0.0]
    for rank in ranks:
        total += rank - (count + 1) / 2
        out.append(total / scale)
    return out


def kuiper(reach: float) -> float:
    """The chance that a Brownian bridge reaches so far between its extremes (first term)."""
    if reach < 0.5:
        return 1.0
    square = reach * reach
    return min(1.0, (8 * square - 2) * exp(-2 * square))
