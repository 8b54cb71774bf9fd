"""
Range functions that fit the samples of a window: straight lines, and exponential smoothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flatline.errors import QueryRejected
from flatline.series.promql import ragged
from flatline.series.promql.windows import Result, Windows, at
from flatline.series.storage import Floats, Ints


def _lines(w: Windows, origins_ms: Floats | None) -> tuple[Floats, Floats]:
    """
    Slope per second, and value at the origin (of no account if None), of the line with the
    least squares through each window.

    Samples are taken relative to the first of their window, so that neither the date nor a
    large constant costs digits; a window of equal values has a slope of exactly 0.
    """
    values, times_ms = w.series.values, np.rint(w.series.times * 1000)

    def reduction(index: Ints, begins: Ints) -> Floats:
        count = np.diff(np.append(begins, index.size))
        first = index[begins]
        x = (times_ms[index] - np.repeat(times_ms[first], count)) / 1000
        y = values[index] - np.repeat(values[first], count)
        sum_x, sum_y = np.add.reduceat(x, begins), np.add.reduceat(y, begins)
        together = np.add.reduceat(x * y, begins) - sum_x * sum_y / count
        slope = together / (np.add.reduceat(x * x, begins) - sum_x * sum_x / count)
        return np.stack((slope, sum_y / count + values[first], sum_x / count))

    slope, mean, middle = ragged.laid_out(reduction, w.lo, w.hi, 3)
    if origins_ms is None:
        return slope, mean
    first_ms = at(times_ms, np.where(w.hi > w.lo, w.lo, 0))
    return slope, mean + slope * ((origins_ms - first_ms) / 1000 - middle)


def _slope(w: Windows) -> Result:
    return _lines(w, None)[0], w.counts > 1


def _predicted(w: Windows, ahead_s: Floats) -> Result:
    """The line's value so many seconds after the step."""
    slope, here = _lines(w, w.row_of_steps(w.steps_ms))
    return slope * w.row_of_steps(ahead_s) + here, w.counts > 1


def _smoothed(w: Windows, smoothing: Floats, trend: Floats) -> Result:
    """Double exponential smoothing, a sample of every window at a time."""
    there = w.counts > 1
    used = (w.counts > 0).reshape(w.shape).any(axis=0)
    for factor, name in ((smoothing, "smoothing"), (trend, "trend")):
        wrong = factor[used & ((factor <= 0) | (factor >= 1))]
        if wrong.size:
            raise QueryRejected(f"invalid {name} factor {wrong[0]}: it lies between 0 and 1")
    sf, tf = w.row_of_steps(smoothing), w.row_of_steps(trend)
    live = np.flatnonzero(there)
    values, out = w.series.values, np.zeros(w.lo.size)
    if not live.size:
        return out, there
    now = values[w.lo[live]]
    before = np.zeros(live.size)
    rise = values[w.lo[live] + 1] - now
    step = 1
    while live.size:
        if step > 1:
            rise = tf[live] * (now - before) + (1 - tf[live]) * rise
        weighted = sf[live] * values[w.lo[live] + step]
        before, now = now, weighted + (1 - sf[live]) * (now + rise)
        out[live] = now
        step += 1
        more = w.lo[live] + step < w.hi[live]
        live, now, before, rise = live[more], now[more], before[more], rise[more]
    return out, there


FUNCTIONS: dict[str, Callable[..., Result]] = {
    "deriv": _slope,
    "predict_linear": _predicted,
    "double_exponential_smoothing": _smoothed,
}
