"""
Reductions over many runs of values at once.

A run is `values[lo:hi]`, the window of one series at one step.  Runs may overlap, and mostly do:
where they hold many more values than there are, sums come from running sums that are exact, and
extrema are put together from those of spans of 1, 2, 4, … values, so that the cost does not grow
with the length of a window.  Sums are compensated as Prometheus's are; a NaN is a value.  Empty
runs give NaN, and callers mask them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from flatline.series.promql.vector import Bools
from flatline.series.storage import Floats, Ints

NAN = float("nan")
BLOCK_CELLS = 1 << 21
"""Values of overlapping runs laid out at once: 16 MiB an array."""
EXTREMES_OVERLAP = 2.0
"""Extrema of overlapping runs go by spans where they hold more values than this times all values
times their levels (measured at 1.1 million values, windows of 20)."""
EXACT_SHARE = 0.25
"""From this share of all values on, running sums cost less than adding up the runs."""
LONG = 256
"""Runs of this length on are added up in pairs, where they are few."""

Reduction = Callable[[Floats, Ints, Ints], Floats]


# --- sums ---------------------------------------------------------------------------------------


def sums(values: Floats, lo: Ints, hi: Ints) -> Floats:
    """The sum of each run."""
    count = np.maximum(hi - lo, 0)
    if int(count.sum()) > EXACT_SHARE * values.size:
        out = _exactly(values, lo, np.maximum(hi, lo))
        odd = np.flatnonzero(np.isnan(out))
        out[odd] = _in_turn(values, lo[odd], hi[odd])
    else:
        out = _in_turn(values, lo, hi)
    out[count <= 0] = NAN
    return out


def _exactly(values: Floats, lo: Ints, hi: Ints) -> Floats:
    """Each run as the difference of two running sums that no rounding has touched; NaN where a
    run holds a value that is not finite, or a sum could overflow."""
    finite = np.isfinite(values) if not _all_finite(values) else None
    running = np.zeros(values.size + 1)
    found: list[Floats] = []
    try:
        for part in parts(
            values if finite is None else np.where(finite, values, 0.0), values.size
        ):
            np.cumsum(part, out=running[1:])
            found.append(running[hi] - running[lo])
    except OverflowError:
        return np.full(lo.size, NAN)
    out = _smallest_first(found, lo.shape)
    if finite is not None:
        np.cumsum(~finite, out=running[1:])
        out[running[hi] > running[lo]] = NAN
    return out


def grouped(values: Floats, begins: Ints) -> Floats | None:
    """The sum of the rows begins[i] up to begins[i + 1] of a matrix; None where a value is not
    finite, or a sum could overflow."""
    if not _all_finite(values):
        return None
    try:
        found = [np.add.reduceat(part, begins, axis=0) for part in parts(values, len(values))]
    except OverflowError:
        return None
    return _smallest_first(found, (begins.size, values.shape[1]))


def parts(values: Floats, terms: int) -> Iterator[Floats]:
    """
    The values, which are finite, in parts of so few bits that every sum of up to `terms` numbers
    of a part is exact: whole numbers are one part, decimals of about one size two.  A part is
    good until the next is asked for.  Raises OverflowError.

    ExtractVector of Rump, Ogita and Oishi, "Accurate Floating-Point Summation", 2008.
    """
    rest = values
    while most := max(float(rest.max(initial=0.0)), -float(rest.min(initial=0.0))):
        unit = math.ldexp(1.0, math.frexp(most)[1] + (2 * terms).bit_length())
        part = rest + unit
        part -= unit
        yield part
        rest = np.subtract(rest, part)


def _all_finite(values: Floats) -> bool:
    return bool(np.isfinite(values.max(initial=0.0)) and np.isfinite(values.min(initial=0.0)))


def _smallest_first(found: list[Floats], shape: tuple[int, ...]) -> Floats:
    """What the parts come to; the largest part is the first."""
    out = np.zeros(shape)
    for total in reversed(found):
        out += total
    return out


def _two(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The rounded sum, and exactly what rounding took (Knuth's TwoSum)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _in_turn(values: Floats, lo: Ints, hi: Ints) -> Floats:
    """Neumaier's sum, all runs a value at a time."""
    longest = int((hi - lo).max(initial=0))
    if longest >= LONG and longest * lo.size <= min(BLOCK_CELLS, 2 * int((hi - lo).sum())):
        return _in_pairs(values, lo, hi)
    if longest > 16 * lo.size:
        pairs = zip(lo.tolist(), hi.tolist(), strict=True)
        return np.array([_sum(values[a:b].tolist()) for a, b in pairs], dtype=np.float64)
    total, lost = np.zeros(lo.size), np.zeros(lo.size)
    live = np.flatnonzero(hi > lo)
    step = 0
    while live.size:
        total[live], lost[live] = added(values[lo[live] + step], total[live], lost[live])
        step += 1
        live = live[lo[live] + step < hi[live]]
    return np.where(np.isinf(total), total, total + lost)


def _in_pairs(values: Floats, lo: Ints, hi: Ints) -> Floats:
    """Long runs of about one length, side by side: halves are added to halves, all with their
    errors; those that are not finite then a value at a time."""
    size = hi - lo
    places = np.arange(int(size.max()))
    inside = places < size[:, None]
    span = np.where(inside, values[np.minimum(lo[:, None] + places, values.size - 1)], 0.0)
    lost = np.zeros_like(span)
    while span.shape[1] > 1:
        if span.shape[1] % 2:
            span, lost = (np.pad(part, ((0, 0), (0, 1))) for part in (span, lost))
        half = span.shape[1] // 2
        span, error = _two(span[:, :half], span[:, half:])
        lost = lost[:, :half] + lost[:, half:] + error
    out: Floats = span[:, 0] + lost[:, 0]
    for run in np.flatnonzero(~np.isfinite(out)).tolist():
        out[run] = _sum(values[lo[run] : hi[run]].tolist())
    return out


def added(term: Floats, total: Floats, lost: Floats) -> tuple[Floats, Floats]:
    """A compensated sum with one more term, and what its rounding has lost so far."""
    after = total + term
    larger = np.abs(total) >= np.abs(term)
    error = np.where(larger, (total - after) + term, (term - after) + total)
    return after, np.where(np.isinf(after), 0.0, lost + error)


def _sum(run: list[float]) -> float:
    """One long run, by the same steps."""
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


def running_means(values: Floats, lo: Ints, hi: Ints) -> Floats:
    """The mean of each run as Prometheus 2 had it: corrected by each value in turn."""
    mean, lost = np.zeros(lo.size), np.zeros(lo.size)
    live = np.flatnonzero(hi > lo)
    count = 0
    while live.size:
        value = values[lo[live] + count]
        count += 1
        moved, left = added(value / count - mean[live] / count, mean[live], lost[live])
        stays = still_infinite(mean[live], value)
        mean[live] = np.where(stays, mean[live], moved)
        lost[live] = np.where(stays, lost[live], left)
        live = live[lo[live] + count < hi[live]]
    out = np.where(np.isinf(mean), mean, mean + lost)
    out[hi <= lo] = NAN
    return out


def still_infinite(mean: Floats, value: Floats) -> Bools:
    """Where an infinite mean is not changed by one more value."""
    same = np.isinf(value) & ((mean > 0) == (value > 0))
    stays: Bools = np.isinf(mean) & (same | np.isfinite(value))
    return stays


# --- runs laid out ------------------------------------------------------------------------------


def laid_out(
    reduction: Callable[[Ints, Ints], Floats], lo: Ints, hi: Ints, columns: int = 1
) -> Floats:
    """
    A reduction over the values of runs laid end to end, some runs at a time.

    It is given the index of every value and where each run begins among them, and gives
    `columns` numbers a run.  Empty runs are not asked about: they give NaN.
    """
    out = np.full((columns, lo.size), NAN)
    runs = np.flatnonzero(hi > lo)
    count = (hi - lo)[runs]
    ends = np.cumsum(count)
    first = 0
    while first < runs.size:
        done = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + BLOCK_CELLS, "right")))
        sizes = count[first:last]
        begins = np.cumsum(sizes) - sizes
        index = np.arange(int(sizes.sum())) + np.repeat(lo[runs[first:last]] - begins, sizes)
        out[:, runs[first:last]] = reduction(index, begins)
        first = last
    return out if columns > 1 else out[0]


def variances(values: Floats, lo: Ints, hi: Ints) -> Floats:
    """The population variance of each run, in two passes over what differs from its first
    value: a run of one value has exactly none."""

    def reduction(index: Ints, begins: Ints) -> Floats:
        count = np.diff(np.append(begins, index.size))
        apart = values[index] - np.repeat(values[index[begins]], count)
        mean = np.add.reduceat(apart, begins) / count
        apart -= np.repeat(mean, count)
        out: Floats = np.add.reduceat(apart * apart, begins) / count
        return out

    return laid_out(reduction, lo, hi)


def deviations(values: Floats, lo: Ints, hi: Ints) -> Floats:
    """The population standard deviation of each run."""
    return np.sqrt(variances(values, lo, hi))


def counts(values: Floats, lo: Ints, hi: Ints) -> Floats:
    """How many values each run has."""
    return (hi - lo).astype(np.float64)


# --- order --------------------------------------------------------------------------------------


def smallest(values: Floats, lo: Ints, hi: Ints) -> Floats:
    """The least value of each run; NaN only where there is nothing else."""
    return _extreme(np.fmin, values, lo, hi)


def largest(values: Floats, lo: Ints, hi: Ints) -> Floats:
    """The greatest value of each run; NaN only where there is nothing else."""
    return _extreme(np.fmax, values, lo, hi)


def _extreme(how: np.ufunc, values: Floats, lo: Ints, hi: Ints) -> Floats:
    count = np.maximum(hi - lo, 0)
    if not lo.size or not values.size:
        return np.full(lo.size, NAN)
    if int(count.sum()) > EXTREMES_OVERLAP * values.size * _levels(count):
        out = _extreme_by_spans(how, values, lo, count)
    else:
        bounds = np.empty(2 * lo.size, dtype=np.int64)
        bounds[0::2], bounds[1::2] = lo, np.maximum(hi, lo)
        out = how.reduceat(np.append(values, NAN), bounds)[::2]
    out[count <= 0] = NAN
    return out


def _levels(count: Ints) -> int:
    """How many powers of two the longest run spans."""
    return max(1, int(count.max(initial=0)).bit_length())


def _extreme_by_spans(how: np.ufunc, values: Floats, lo: Ints, count: Ints) -> Floats:
    """Each run as two spans of the largest power of two that fits, which may overlap."""
    out = np.full(lo.size, NAN)
    span = values
    length = 1
    longest = int(count.max(initial=0))
    while length <= longest:
        runs = np.flatnonzero((count >= length) & (count < 2 * length))
        out[runs] = how(span[lo[runs]], span[lo[runs] + count[runs] - length])
        if 2 * length <= longest:
            span = how(span[:-length], span[length:])
        length *= 2
    return out


def quantiles(
    at: Floats, values: Floats, lo: Ints, hi: Ints, about: Floats | None = None
) -> Floats:
    """
    The `at`-quantile of each run, interpolated between neighbours (Prometheus's `quantile`).

    A quantile below 0 is -Inf, above 1 +Inf; NaN values sort first.  With `about`, the quantile
    of how far the values lie from that, a number a run.
    """
    out = np.full(lo.size, NAN)
    count = np.maximum(hi - lo, 0)
    longest = int(count.max(initial=0))
    if not longest:
        return out
    padded = np.append(values, NAN)
    block = max(1, BLOCK_CELLS // longest)
    for first in range(0, lo.size, block):
        part = slice(first, first + block)
        width = int(count[part].max(initial=0))
        columns = np.arange(width)
        inside = columns < count[part][:, None]
        index = np.where(inside, lo[part][:, None] + columns, values.size)
        grid = padded[index]
        if about is not None:
            grid = np.abs(grid - about[part][:, None])
        out[part] = quantiles_of(at[part], grid, count[part])
    return out


def quantiles_of(at: Floats, grid: Floats, count: Ints) -> Floats:
    """The same of the rows of a grid, of which `count` values are there and the rest NaN."""
    width = grid.shape[1]
    if not width:
        return np.full(at.size, NAN)
    unknown = count - (~np.isnan(grid)).sum(axis=1)
    grid = np.sort(grid, axis=1)  # NaN last, those of the padding among them
    rank = np.clip(np.nan_to_num(at), 0, 1) * np.maximum(count - 1, 0)
    below = np.floor(rank).astype(np.int64)
    above = np.minimum(np.maximum(count - 1, 0), below + 1)
    weight = rank - below
    rows = np.arange(grid.shape[0])

    def pick(place: Ints) -> Floats:
        shifted = place - unknown
        return np.where(shifted < 0, NAN, grid[rows, np.clip(shifted, 0, width - 1)])

    out = pick(below) * (1 - weight) + pick(above) * weight
    out = np.where(at < 0, -np.inf, np.where(at > 1, np.inf, out))
    out[np.isnan(at) | (count <= 0)] = NAN
    return out
