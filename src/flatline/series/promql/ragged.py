"""
Reductions over many runs of values at once.

A run is `values[lo:hi]`.  A window of one series and a group of series at one step are both
runs, so `*_over_time` and the aggregations share these.  Sums are compensated (Neumaier), as
Prometheus's are; a NaN is a value.  Empty runs give NaN, and callers mask them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from flatline.series.storage import Floats, Ints

NAN = float("nan")
BLOCK_CELLS = 1 << 22
"""Values of overlapping runs laid out at once: 32 MiB."""


def sums(values: Floats, lo: Ints, hi: Ints) -> Floats:
    """The sum of each run."""
    longest = int((hi - lo).max(initial=0))
    if longest > 4 * lo.size:
        pairs = zip(lo.tolist(), hi.tolist(), strict=True)
        return np.array([_sum(values[a:b].tolist()) for a, b in pairs], dtype=np.float64)
    total = np.zeros(lo.size)
    lost = np.zeros(lo.size)
    live = np.flatnonzero(hi > lo)
    step = 0
    while live.size:
        term = values[lo[live] + step]
        before = total[live]
        after = before + term
        larger = np.abs(before) >= np.abs(term)
        error = np.where(larger, (before - after) + term, (term - after) + before)
        lost[live] = np.where(np.isinf(after), 0.0, lost[live] + error)
        total[live] = after
        step += 1
        live = live[lo[live] + step < hi[live]]
    out = np.where(np.isinf(total), total, total + lost)
    out[hi <= lo] = NAN
    return out


def _sum(run: list[float]) -> float:
    """One long run, by the same steps."""
    if not run:
        return NAN
    total = lost = 0.0
    for term in run:
        after = total + term
        if math.isinf(after):
            lost = 0.0
        elif abs(total) >= abs(term):
            lost += (total - after) + term
        else:
            lost += (term - after) + total
        total = after
    return total if math.isinf(total) else total + lost


def means(values: Floats, lo: Ints, hi: Ints) -> Floats:
    """The mean of each run; one whose sum overflows is divided before it is added up."""
    count = hi - lo
    total = sums(values, lo, hi)
    over = np.flatnonzero(np.isinf(total))
    mean = total / count
    for run in over.tolist():
        part = values[lo[run] : hi[run]]
        if np.isfinite(part).all():
            mean[run] = float(np.sum(part / part.size))
    return mean


def variances(values: Floats, lo: Ints, hi: Ints) -> Floats:
    """The population variance of each run, in two passes over what differs from its first
    value: a run of one value has exactly none."""
    count = np.maximum(hi - lo, 0)
    out = np.full(lo.size, NAN)
    block = max(1, BLOCK_CELLS // max(1, int(count.max(initial=1))))
    for first in range(0, lo.size, block):
        part = slice(first, first + block)
        out[part] = _variances(values, lo[part], count[part])
    return out


def _variances(values: Floats, lo: Ints, count: Ints) -> Floats:
    runs = np.repeat(np.arange(lo.size), count)
    ends = np.cumsum(count)
    begins = ends - count
    where = lo[runs] + np.arange(runs.size) - begins[runs]
    apart = values[where] - values[lo[runs]]
    mean = means(apart, begins, ends)
    out: Floats = sums((apart - mean[runs]) ** 2, begins, ends) / count
    return out


def smallest(values: Floats, lo: Ints, hi: Ints) -> Floats:
    """The least value of each run; NaN only where there is nothing else."""
    return _reduce(np.fmin, values, lo, hi)


def largest(values: Floats, lo: Ints, hi: Ints) -> Floats:
    """The greatest value of each run; NaN only where there is nothing else."""
    return _reduce(np.fmax, values, lo, hi)


def _reduce(how: np.ufunc, values: Floats, lo: Ints, hi: Ints) -> Floats:
    padded = np.append(values, NAN)
    bounds = np.empty(2 * lo.size, dtype=np.int64)
    bounds[0::2], bounds[1::2] = lo, np.maximum(hi, lo)
    out: Floats = how.reduceat(padded, bounds)[::2] if lo.size else np.empty(0)
    out[hi <= lo] = NAN
    return out


def quantiles(at: Floats, values: Floats, lo: Ints, hi: Ints) -> Floats:
    """
    The `at`-quantile of each run, interpolated between neighbours (Prometheus's `quantile`).

    A quantile below 0 is -Inf, above 1 +Inf; NaN values sort first.
    """
    out = np.full(lo.size, NAN)
    count = hi - lo
    longest = int(count.max(initial=0))
    if not longest:
        return out
    block = max(1, BLOCK_CELLS // longest)
    for first in range(0, lo.size, block):
        part = slice(first, first + block)
        out[part] = _quantiles(at[part], values, lo[part], count[part])
    out = np.where(at < 0, -np.inf, np.where(at > 1, np.inf, out))
    out[np.isnan(at) | (count <= 0)] = NAN
    return out


def _quantiles(at: Floats, values: Floats, lo: Ints, count: Ints) -> Floats:
    width = int(count.max(initial=0))
    if not width:
        return np.full(lo.size, NAN)
    columns = np.arange(width)
    inside = columns < count[:, None]
    grid = np.where(
        inside, np.append(values, NAN)[np.where(inside, lo[:, None] + columns, values.size)], NAN
    )
    unknown = (np.isnan(grid) & inside).sum(axis=1)
    grid.sort(axis=1)  # NaN last, those of the padding among them
    rank = np.clip(np.nan_to_num(at), 0, 1) * np.maximum(count - 1, 0)
    below = np.floor(rank).astype(np.int64)
    above = np.minimum(count - 1, below + 1)
    weight = rank - below

    def pick(place: Ints) -> Floats:
        shifted = place - unknown
        safe = np.clip(shifted, 0, width - 1)
        return np.where(shifted < 0, NAN, grid[np.arange(grid.shape[0]), safe])

    return pick(below) * (1 - weight) + pick(above) * weight


Reduction = Callable[[Floats, Ints, Ints], Floats]


def counts(values: Floats, lo: Ints, hi: Ints) -> Floats:
    """How many values each run has."""
    return (hi - lo).astype(np.float64)


def deviations(values: Floats, lo: Ints, hi: Ints) -> Floats:
    """The population standard deviation of each run."""
    return np.sqrt(variances(values, lo, hi))
