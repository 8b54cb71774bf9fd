"""
How far a value stands from its peers, without letting it judge itself.

Medians and median absolute deviations: one wild value moves neither.  Each is compared with the
others alone, and the bar rises with how many are compared, so that a large run does not make
outliers by being large.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Mapping, Sequence
from statistics import NormalDist, median
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
SIGMA = 1.4826
"""A normal distribution's standard deviation in MADs."""
LEAST = 5.0
"""Standard deviations below which nothing stands apart: medians of a few peers are rough."""
MANY = 64
"""Among more than this one value does not move the spread, which is then taken over all."""
PEERS = 3
"""Fewer others have no usual value."""
CHANCE = 0.01
"""How often any of all that are compared may stand apart by chance."""


def mad(values: Sequence[float]) -> float:
    """The median distance from the median. Raises StatisticsError for none."""
    middle = median(values)
    return median(abs(value - middle) for value in values)


def bar(compared: int, chance: float = CHANCE) -> float:
    """Standard deviations beyond which one of so many may be said to stand apart."""
    return max(LEAST, NormalDist().inv_cdf(1.0 - chance / (2.0 * max(1, compared))))


def deviations(values: Mapping[K, float], floor: float = 0.0) -> Mapping[K, tuple[float, float]]:
    """
    Of each value: the median of the others, and its distance from it in standard deviations.

    `floor` is the least spread peers are allowed, in the unit of the values: peers that agree to
    the last digit would make anything an outlier.  Empty where there are too few peers.
    """
    if len(values) <= PEERS:
        return {}
    ordered = sorted(values.values())
    of_all = max(SIGMA * mad(ordered), floor) if len(values) > MANY else None
    out: dict[K, tuple[float, float]] = {}
    for key, value in values.items():
        usual, spread = without(ordered, value), of_all
        if spread is None:
            others = [other for name, other in values.items() if name != key]
            spread = max(SIGMA * median(abs(other - usual) for other in others), floor)
        distance = value - usual
        if spread:
            out[key] = usual, distance / spread
        else:
            out[key] = usual, distance and (float("inf") if distance > 0 else float("-inf"))
    return out


def without(ordered: Sequence[float], value: float) -> float:
    """The median of the others, where these are all in order."""
    rank = bisect_left(ordered, value)

    def at(index: int) -> float:
        return ordered[index if index < rank else index + 1]

    count = len(ordered) - 1
    return (at((count - 1) // 2) + at(count // 2)) / 2


def apart(
    values: Mapping[K, float], *, ratio: float, floor: float = 0.0
) -> Mapping[K, tuple[float, float]]:
    """
    Those above (ratio > 1) or below (ratio < 1) their peers, by spread and by ratio: of each the
    peers' median and the distance.
    """
    limit = bar(len(values))
    sign = 1.0 if ratio > 1 else -1.0
    return {
        key: (usual, distance)
        for key, (usual, distance) in deviations(values, floor).items()
        if sign * distance > limit and sign * (values[key] - ratio * usual) > 0
    }
