"""
Classic histograms: quantiles and fractions from series of cumulative buckets (label `le`).

Histograms with the same bounds are computed together, a bound at a time.  At a step where some
buckets of a histogram have no sample, the others are taken alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from flatline.series.promql.vector import Bools, Vector, empty, nameless, settled, without
from flatline.series.storage import Floats, Labels

BOUND = "le"
NEARLY = 1e-12
"""Counts that differ by less, relative to their sum, count as equal (`smallDeltaTolerance` in
prometheus/promql/quantile.go)."""
NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Buckets:
    """
    Cumulative counts `counts[bound, column]` under rising upper bounds, the last of them +Inf.

    A column is one histogram at one step; `steps` says which.
    """

    bounds: Floats
    counts: Floats
    steps: Floats


Measure = Callable[[Buckets], Floats]


def quantile(level: Floats, *, old: bool) -> Measure:
    """The quantile `level` (one a step) of each column."""

    def measure(buckets: Buckets) -> Floats:
        at = level[buckets.steps.astype(np.int64)]
        rising = _envelope(buckets.counts) if old else _rising(buckets.counts)
        found = _quantiles(at, buckets.bounds, rising)
        found = np.where(at < 0, -np.inf, np.where(at > 1, np.inf, found))
        return np.where(np.isnan(at), NAN, found)

    return measure


def fraction(lower: Floats, upper: Floats) -> Measure:
    """The share of observations between two bounds (one pair a step) of each column."""

    def measure(buckets: Buckets) -> Floats:
        steps = buckets.steps.astype(np.int64)
        low, high = lower[steps], upper[steps]
        whole = buckets.counts[-1]
        share = (_rank(high, buckets) - _rank(low, buckets)) / whole
        share = np.where(low >= high, 0.0, share)
        return np.where((whole == 0) | np.isnan(low) | np.isnan(high), NAN, share)

    return measure


def each(vector: Vector, measure: Measure, outside: Floats) -> Vector:
    """
    A measure of every histogram in a vector of buckets.

    Series without a bound that is a number are left out.  Where the largest bound is not +Inf,
    the answer is `outside`, one a step.
    """
    steps = vector.values.shape[1]
    histograms: dict[Labels, list[tuple[float, int]]] = {}
    for row, labels in enumerate(vector.labels):
        bound = _bound(labels)
        if bound is not None:
            histograms.setdefault(without(labels, (BOUND,)), []).append((bound, row))
    alike: dict[tuple[float, ...], list[tuple[Labels, list[int]]]] = {}
    for labels, pairs in histograms.items():
        pairs.sort()
        key = tuple(bound for bound, _ in pairs)
        alike.setdefault(key, []).append((nameless(labels), [row for _, row in pairs]))
    if not alike:
        return empty(steps)
    named, values, present = [], [], []
    for bounds, members in alike.items():
        rows = np.array([rows for _, rows in members], dtype=np.int64).T
        counts = vector.values[rows].reshape(len(bounds), -1)
        there = vector.present[rows].reshape(len(bounds), -1)
        found = _columns(np.array(bounds), counts, there, measure, outside)
        named += [labels for labels, _ in members]
        values.append(found.reshape(len(members), steps))
        present.append(there.any(axis=0).reshape(len(members), steps))
    return settled(Vector(tuple(named), np.concatenate(values), np.concatenate(present)))


def _bound(labels: Labels) -> float | None:
    text = next((value for name, value in labels if name == BOUND), "")
    if "_" in text or text != text.strip():
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _columns(
    bounds: Floats, counts: Floats, there: Bools, measure: Measure, outside: Floats
) -> Floats:
    """The measure of each column, those with the same buckets at once."""
    steps = np.tile(np.arange(outside.size), counts.shape[1] // outside.size).astype(np.float64)
    out = np.full(counts.shape[1], NAN)
    if there.all():
        kinds, which = there[:, :1], np.zeros(counts.shape[1], dtype=np.int64)
    else:
        kinds, which = np.unique(there, axis=1, return_inverse=True)
        which = which.reshape(-1)
    for kind in range(kinds.shape[1]):
        rows, columns = np.flatnonzero(kinds[:, kind]), np.flatnonzero(which == kind)
        if not rows.size:
            continue
        at = steps[columns]
        if bounds[rows[-1]] != np.inf:
            out[columns] = outside[at.astype(np.int64)]
            continue
        distinct, first = np.unique(bounds[rows], return_index=True)
        merged = np.add.reduceat(counts[np.ix_(rows, columns)], first, axis=0)
        out[columns] = measure(Buckets(distinct, merged, at))
    return out


def _rising(counts: Floats) -> Floats:
    """Counts that never fall; one that differs by rounding alone is taken as equal."""
    out = counts.copy()
    for row in range(1, len(out)):
        before, now = out[row - 1], out[row]
        near = np.abs(now - before) < NEARLY * (np.abs(now) + np.abs(before))
        out[row] = np.where(near | (now < before), before, now)
    return out


def _envelope(counts: Floats) -> Floats:
    """Counts that never fall, as Prometheus 2 made them."""
    out = counts.copy()
    most = out[0]
    for row in range(1, len(out)):
        out[row] = np.where(out[row] < most, most, out[row])
        most = np.where(out[row] > most, out[row], most)
    return out


def _quantiles(at: Floats, bounds: Floats, counts: Floats) -> Floats:
    """Interpolated within the first bucket whose count reaches the rank."""
    if len(bounds) < 2:
        return np.full(at.size, NAN)
    whole = counts[-1]
    rank = at * whole
    reached = counts[:-1] >= rank
    bucket = np.where(reached.any(axis=0), reached.argmax(axis=0), len(bounds) - 1)
    columns = np.arange(at.size)
    below = np.maximum(bucket - 1, 0)
    begin = np.where(bucket > 0, bounds[below], 0.0)
    under = np.where(bucket > 0, counts[below, columns], 0.0)
    share = (rank - under) / (counts[bucket, columns] - under)
    out = begin + (bounds[bucket] - begin) * share
    out = np.where((bucket == 0) & (bounds[0] <= 0), bounds[0], out)
    out = np.where(bucket == len(bounds) - 1, bounds[-2], out)
    return np.where(whole == 0, NAN, out)


def _rank(value: Floats, buckets: Buckets) -> Floats:
    """How many observations lie below a value, interpolated within its bucket; none are taken
    from a bucket without end."""
    bounds, counts = buckets.bounds, buckets.counts
    bucket = np.minimum(np.searchsorted(bounds, value, "right"), len(bounds) - 1)
    columns = np.arange(value.size)
    below = np.maximum(bucket - 1, 0)
    low = np.where(bucket > 0, bounds[below], 0.0 if bounds[0] > 0 else -np.inf)
    under = np.where(bucket > 0, counts[below, columns], 0.0)
    here = counts[bucket, columns]
    share = np.where(bounds[bucket] == np.inf, 0.0, (value - low) / (bounds[bucket] - low))
    rank = np.where(low == -np.inf, here, under + (here - under) * share)
    rank = np.where(value <= low, under, rank)
    rank = np.where(value == np.inf, counts[-1], rank)
    least: Floats = np.minimum(rank, counts[-1])
    return least
