"""
Is it chance that failures met at one place?  Exact, one sided, within strata.

Within a stratum of jobs that could have been placed alike, who failed and who touched the place
are both counted; that their overlap is at least as large as seen has, without any connection, a
hypergeometric probability (Fisher's exact test).  Strata are convolved (the exact form of
Mantel and Haenszel's test), so that what only the strata have in common shows nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, lgamma

ALPHA = 0.05
"""The chance of naming any place at all where none is to blame, over all that are considered:
the conventional level (R. A. Fisher, Statistical Methods for Research Workers, 1925)."""


def _choices(n: int, k: int) -> float:
    """The logarithm of n over k."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _overlap(total: int, touched: int, failed: int) -> list[float]:
    """Probabilities that 0, 1, 2... of `failed` jobs drawn from `total` touched the place."""
    low, high = max(0, failed + touched - total), min(touched, failed)
    whole = _choices(total, failed)
    return [0.0] * low + [
        exp(_choices(touched, k) + _choices(total - touched, failed - k) - whole)
        for k in range(low, high + 1)
    ]


def tail(strata: Iterable[tuple[int, int, int]], seen: int) -> tuple[float, float]:
    """
    (the probability of an overlap of at least `seen`, the smallest it could have been).

    A stratum is (jobs, jobs that touched the place, jobs that failed).
    """
    chances = [1.0]
    for total, touched, failed in strata:
        if not touched or not failed:
            continue
        one = _overlap(total, touched, failed)
        both = [0.0] * (len(chances) + len(one) - 1)
        for i, a in enumerate(chances):
            for j, b in enumerate(one):
                both[i + j] += a * b
        chances = both
    return min(1.0, sum(chances[seen:])), min(1.0, chances[-1])


def multiplicity(smallest: Sequence[float], alpha: float = ALPHA) -> int:
    """
    By how many tests a probability has to be multiplied.

    Of discrete tests those that could never be significant are not counted: the least K such that
    at most K of them can reach alpha / K (R. E. Tarone, Biometrics 46, 1990, 515-522).
    """
    ordered = sorted(smallest)
    reach = len(ordered)
    for k in range(1, len(ordered) + 1):
        while reach and ordered[reach - 1] > alpha / k:
            reach -= 1
        if reach <= k:
            return k
    return max(1, len(ordered))
