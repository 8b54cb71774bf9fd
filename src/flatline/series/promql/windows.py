"""
Range functions: what the samples of a window come to.

A window ends at a step (moved by `offset` or `@`) and is open on the left, as in Prometheus 3.
All windows of all series are found by binary search and reduced together.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from flatline.series.promql import ragged
from flatline.series.promql.vector import Bools
from flatline.series.storage import Floats, Ints, Series

EXTRAPOLATION = 1.1
"""A window's end counts as reached by samples no farther from it than this many average
intervals (`extrapolatedRate` in prometheus/promql/functions.go)."""
FEW_STEPS = 24
"""Up to this many steps all series are searched together; above, each for all its steps."""


@dataclass(frozen=True, slots=True)
class Windows:
    """
    For every series and step, the run `lo:hi` of its samples, flattened row by row.

    `starts_ms` and `ends_ms` are the bounds of the window of each step, `steps_ms` the step
    itself.  `old` asks for what Prometheus 2 did where it differs.
    """

    series: Series
    lo: Ints
    hi: Ints
    starts_ms: Ints
    ends_ms: Ints
    steps_ms: Ints
    old: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.series), self.ends_ms.size

    @property
    def counts(self) -> Ints:
        return self.hi - self.lo

    def row_of_steps(self, per_step: Floats | Ints) -> Floats:
        """A number a step, repeated for every series."""
        return np.tile(np.asarray(per_step, dtype=np.float64), len(self.series))


def spans(series: Series, lower: Floats, upper: Floats, *, closed: bool) -> tuple[Ints, Ints]:
    """Runs of samples with lower < time <= upper (lower <= time where `closed`), row by row;
    of another metric of the same scrapes they are known already."""
    for known in tuple(_KNOWN):
        if known.are_of(series, lower, upper, closed=closed):
            return known.lo, known.hi
    lo, hi = _spans(series, lower, upper, closed=closed)
    if lo.size <= KNOWN_CELLS:
        lo.flags.writeable = hi.flags.writeable = False
        times = weakref.ref(series.times)
        _KNOWN.append(_Known(times, series.offsets, lower, upper, closed, lo, hi))
        while sum(known.lo.size for known in tuple(_KNOWN)) > KNOWN_CELLS:
            _KNOWN.popleft()
    return lo, hi


@dataclass(frozen=True, slots=True)
class _Known:
    """What was found of some times, as long as they are in use."""

    times: weakref.ref[Floats]
    offsets: Ints
    lower: Floats
    upper: Floats
    closed: bool
    lo: Ints
    hi: Ints

    def are_of(self, series: Series, lower: Floats, upper: Floats, *, closed: bool) -> bool:
        return (
            self.times() is series.times
            and self.closed == closed
            and np.array_equal(self.upper, upper)
            and np.array_equal(self.lower, lower)
            and np.array_equal(self.offsets, series.offsets)
        )


KNOWN_CELLS = 1 << 22
"""Of the runs found last, 64 MB."""
_KNOWN: deque[_Known] = deque(maxlen=16)


def _spans(series: Series, lower: Floats, upper: Floats, *, closed: bool) -> tuple[Ints, Ints]:
    if lower.size <= FEW_STEPS:
        lo = _bisected(series, lower, after_equal=not closed)
        hi = _bisected(series, upper, after_equal=True)
        return lo, np.maximum(hi, lo)
    side = "left" if closed else "right"
    lo = np.empty((len(series), lower.size), dtype=np.int64)
    hi = np.empty_like(lo)
    again = _again(series)
    for row in range(len(series)):
        first, last = series.offsets[row], series.offsets[row + 1]
        if again[row]:
            np.add(lo[row - 1], last - first, out=lo[row])
            np.add(hi[row - 1], last - first, out=hi[row])
            continue
        times = series.times[first:last]
        lo[row] = times.searchsorted(lower, side) + first  # type: ignore[call-overload]
        hi[row] = times.searchsorted(upper, "right") + first
    return lo.ravel(), np.maximum(hi, lo).ravel()


def _again(series: Series) -> Bools:
    """Which series have the times of the one before them, as those of one scrape do; looked at
    only where all are of one length."""
    again = np.zeros(len(series), dtype=np.bool_)
    size = int(series.offsets[1]) if len(series) else 0
    if size and np.array_equal(series.offsets, np.arange(len(series) + 1) * size):
        times = series.times[: size * len(series)].reshape(-1, size)
        again[1:] = (times[1:] == times[:-1]).all(axis=1)
    return again


def trimmed(series: Series, first: float, last: float) -> Series:
    """The samples within first..last, where that leaves out most of them."""
    lo, hi = spans(series, np.array([first]), np.array([last]), closed=True)
    sizes = hi - lo
    kept = int(sizes.sum())
    if 2 * kept > series.values.size:
        return series
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    index = np.arange(kept) + np.repeat(lo - offsets[:-1], sizes)
    return Series(series.labels, series.times[index], series.values[index], offsets)


def _bisected(series: Series, bounds: Floats, *, after_equal: bool) -> Ints:
    """The first sample of each series at or past each bound, by one search of all."""
    low = np.repeat(series.offsets[:-1], bounds.size)
    high = np.repeat(series.offsets[1:], bounds.size)
    wanted = np.tile(bounds, len(series))
    open_ = np.flatnonzero(low < high)
    while open_.size:
        middle = (low[open_] + high[open_]) >> 1
        times = series.times[middle]
        before = times <= wanted[open_] if after_equal else times < wanted[open_]
        low[open_[before]] = middle[before] + 1
        high[open_[~before]] = middle[~before]
        open_ = open_[low[open_] < high[open_]]
    return low


Result = tuple[Floats, Bools]
"""Flat values and which of them there are."""


def _over(reduction: ragged.Reduction) -> Callable[[Windows], Result]:
    def function(w: Windows) -> Result:
        return reduction(w.series.values, w.lo, w.hi), w.hi > w.lo

    return function


def _mean(w: Windows) -> Result:
    reduction = ragged.running_means if w.old else ragged.means
    return reduction(w.series.values, w.lo, w.hi), w.hi > w.lo


def _last(w: Windows) -> Result:
    there = w.hi > w.lo
    return at(w.series.values, np.where(there, w.hi - 1, 0)), there


def _first(w: Windows) -> Result:
    there = w.hi > w.lo
    return at(w.series.values, np.where(there, w.lo, 0)), there


def _present(w: Windows) -> Result:
    return np.ones(w.lo.size), w.hi > w.lo


def at(values: Floats, index: Ints) -> Floats:
    """The values at some places; zeros where there are none at all."""
    return values[index] if values.size else np.zeros(index.size)


def _quantile(w: Windows, level: Floats) -> Result:
    levels = w.row_of_steps(level)
    return ragged.quantiles(levels, w.series.values, w.lo, w.hi), w.hi > w.lo


def _spread(w: Windows) -> Result:
    """The median of how far the samples lie from their median; NaN where one of them is."""
    values = w.series.values
    half = np.full(w.lo.size, 0.5)
    median = ragged.quantiles(half, values, w.lo, w.hi)
    unknown = np.concatenate(([0], np.cumsum(np.isnan(values))))
    median[unknown[w.hi] > unknown[w.lo]] = np.nan
    spread = ragged.quantiles(half, values, w.lo, w.hi, median)
    return np.where(np.isnan(median), np.nan, spread), w.hi > w.lo


# --- when ---------------------------------------------------------------------------------------


def _time_of_first(w: Windows) -> Result:
    there = w.hi > w.lo
    return at(w.series.times, np.where(there, w.lo, 0)), there


def _time_of_last(w: Windows) -> Result:
    there = w.hi > w.lo
    return at(w.series.times, np.where(there, w.hi - 1, 0)), there


def _time_of(extreme: ragged.Reduction) -> Callable[[Windows], Result]:
    """When the extreme was last; the last sample's time where all are NaN."""

    def function(w: Windows) -> Result:
        values = w.series.values
        best = extreme(values, w.lo, w.hi)[w.hi > w.lo]
        done = 0

        def reduction(index: Ints, begins: Ints) -> Floats:
            nonlocal done
            sizes = np.diff(np.append(begins, index.size))
            wanted = np.repeat(best[done : done + begins.size], sizes)
            done += begins.size
            found = np.where((values[index] == wanted) | np.isnan(wanted), index, -1)
            return w.series.times[np.maximum.reduceat(found, begins)]

        return ragged.laid_out(reduction, w.lo, w.hi), w.hi > w.lo

    return function


# --- change over a window -----------------------------------------------------------------------


def _fallen_from(w: Windows) -> tuple[Ints, Floats]:
    """Where the value fell, and the value before each fall."""
    values = w.series.values
    fell = np.flatnonzero(values[1:] < values[:-1])
    return fell + 1, values[fell]


def _within(marked: Ints, w: Windows, marks: Floats | None = None) -> Floats:
    """
    The sum of marks (by default how many there are) in each window, that of its first sample left
    out: a mark tells a sample from the one before it, which for the first of a series belongs to
    another series.
    """
    if not marked.size:
        return np.zeros(w.lo.size)
    lo, hi = marked.searchsorted(w.lo + 1), marked.searchsorted(w.hi)
    lo = np.minimum(lo, hi)
    if marks is None:
        return (hi - lo).astype(np.float64)
    return np.where(hi > lo, ragged.sums(marks, lo, hi), 0.0)


def _change(w: Windows, *, counter: bool, per_second: bool) -> Result:
    """`rate`, `increase` and `delta`, with Prometheus's extrapolation to the window's bounds."""
    there = w.counts > 1
    first = np.where(there, w.lo, 0)
    last = np.where(there, w.hi - 1, 0)
    values, times = w.series.values, w.series.times
    begin = at(values, first)
    result = at(values, last) - begin
    if counter:
        marked, marks = _fallen_from(w)
        result = result + _within(marked, w, marks)
    first_ms, last_ms = np.rint(at(times, first) * 1000), np.rint(at(times, last) * 1000)
    sampled = (last_ms - first_ms) / 1000
    average = sampled / np.maximum(w.counts - 1, 1)
    to_start = (first_ms - w.row_of_steps(w.starts_ms)) / 1000
    to_end = (w.row_of_steps(w.ends_ms) - last_ms) / 1000
    near = average * EXTRAPOLATION
    if not w.old:
        to_start = np.where(to_start >= near, average / 2, to_start)
    if counter:
        to_zero = np.where((result > 0) & (begin >= 0), sampled * (begin / result), to_start)
        to_start = np.where(to_zero < to_start, to_zero, to_start)
    if w.old:  # the zero point was looked for before the bound was judged too far
        to_start = np.where(to_start >= near, average / 2, to_start)
    to_end = np.where(to_end >= near, average / 2, to_end)
    factor = (sampled + to_start + to_end) / sampled
    if per_second:
        factor = factor / (w.row_of_steps(w.ends_ms - w.starts_ms) / 1000)
    return result * factor, there


def _instant_change(w: Windows, *, counter: bool) -> Result:
    """`irate` and `idelta`: the last two samples."""
    there = w.counts > 1
    last = np.where(there, w.hi - 1, 1)
    values, times = w.series.values, w.series.times
    if values.size < 2:
        return np.zeros(w.lo.size), there
    now, before = values[last], values[last - 1]
    change = np.where(counter & (now < before), now, now - before)
    if counter:
        change = change / (np.rint((times[last] - times[last - 1]) * 1000) / 1000)
    return change, there


def _changes(w: Windows) -> Result:
    values = w.series.values
    both_nan = np.isnan(values[1:]) & np.isnan(values[:-1])
    changed = np.flatnonzero((values[1:] != values[:-1]) & ~both_nan) + 1
    return _within(changed, w), w.hi > w.lo


def _resets(w: Windows) -> Result:
    return _within(_fallen_from(w)[0], w), w.hi > w.lo


FUNCTIONS: dict[str, Callable[..., Result]] = {
    "avg_over_time": _mean,
    "min_over_time": _over(ragged.smallest),
    "max_over_time": _over(ragged.largest),
    "sum_over_time": _over(ragged.sums),
    "count_over_time": _over(ragged.counts),
    "stddev_over_time": _over(ragged.deviations),
    "stdvar_over_time": _over(ragged.variances),
    "quantile_over_time": _quantile,
    "mad_over_time": _spread,
    "first_over_time": _first,
    "last_over_time": _last,
    "present_over_time": _present,
    "absent_over_time": _present,
    "ts_of_first_over_time": _time_of_first,
    "ts_of_last_over_time": _time_of_last,
    "ts_of_min_over_time": _time_of(ragged.smallest),
    "ts_of_max_over_time": _time_of(ragged.largest),
    "changes": _changes,
    "resets": _resets,
    "irate": lambda w: _instant_change(w, counter=True),
    "idelta": lambda w: _instant_change(w, counter=False),
    "rate": lambda w: _change(w, counter=True, per_second=True),
    "increase": lambda w: _change(w, counter=True, per_second=False),
    "delta": lambda w: _change(w, counter=False, per_second=False),
}
"""Each takes the windows and its scalar arguments by step."""
KEEP_NAME = frozenset({"last_over_time", "first_over_time"})
"""Functions whose result is still the metric."""
