"""
`spread.apart` over the values of a fleet at once.

Kept from `spread`, which logs are judged with as well, so that NumPy is imported where numbers
were read alone.
"""

from __future__ import annotations

import numpy as np

from flatline.series.spread import MANY, SIGMA, apart, bar
from flatline.series.storage import Floats


def standing(values: Floats, *, ratio: float, floor: float = 0.0) -> list[int]:
    """Where the values lie that stand apart from the others, the finite ones alone."""
    here = np.flatnonzero(np.isfinite(values))
    own = values[here]
    if own.size <= MANY:
        return [int(here[at]) for at in apart(dict(enumerate(own.tolist())), ratio=ratio,
                                              floor=floor)]  # fmt: skip
    ordered = np.sort(own)
    spread = max(SIGMA * middle(np.sort(np.abs(ordered - middle(ordered)))), floor)
    usual = others(ordered, own)
    sign = 1.0 if ratio > 1 else -1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond = sign * ((own - usual) / spread) > bar(own.size)
    found: list[int] = here[beyond & (sign * (own - ratio * usual) > 0)].tolist()
    return found


def middle(ordered: Floats) -> float:
    """The median of values in order."""
    return float(ordered[(ordered.size - 1) // 2] + ordered[ordered.size // 2]) / 2


def others(ordered: Floats, own: Floats) -> Floats:
    """Of each of these values the median of all others; `ordered` are they all."""
    count = ordered.size - 1
    low, high = (np.where(ordered[at] < own, ordered[at], ordered[at + 1])
                 for at in ((count - 1) // 2, count // 2))  # fmt: skip
    found: Floats = (low + high) / 2
    return found


def medians(values: Floats) -> Floats:
    """The median of the finite values of each row; NaN where there are none."""
    count = np.isfinite(values).sum(axis=1)
    ordered = np.sort(np.where(np.isfinite(values), values, np.nan), axis=1)  # NaN last
    rows = np.arange(count.size)
    low, high = (np.maximum(at, 0) // 2 for at in (count - 1, count))
    found: Floats = (ordered[rows, low] + ordered[rows, high]) / 2
    return found
