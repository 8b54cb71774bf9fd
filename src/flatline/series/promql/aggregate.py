"""
Aggregations: one series for each group of series, or the largest and smallest of a group.
"""

from __future__ import annotations

import numpy as np

from flatline.errors import QueryRejected
from flatline.series.promql import ragged
from flatline.series.promql.tree import Aggregate
from flatline.series.promql.vector import (
    Bools,
    Vector,
    empty,
    only,
    without,
)
from flatline.series.storage import NAME, Floats, Ints, Labels

REDUCTIONS: dict[str, ragged.Reduction] = {
    "sum": ragged.sums,
    "avg": ragged.means,
    "min": ragged.smallest,
    "max": ragged.largest,
    "count": ragged.counts,
    "stddev": ragged.deviations,
    "stdvar": ragged.variances,
    "group": lambda values, lo, hi: np.ones(lo.size),
}
PARAMETRIC = frozenset({"quantile", "topk", "bottomk"})
K_LIMIT = float(1 << 62)


def aggregate(expr: Aggregate, vector: Vector, param: Floats | None) -> Vector:
    """What an aggregation makes of a vector; `param` is its scalar argument at each step."""
    wanted = None
    if expr.op in ("topk", "bottomk") and param is not None:
        wanted = _wanted(param)
    if not len(vector):
        return vector
    groups: dict[Labels, list[int]] = {}
    for row, labels in enumerate(vector.labels):
        groups.setdefault(_group(labels, expr), []).append(row)
    if expr.op in REDUCTIONS:
        return _reduced(groups, vector, REDUCTIONS[expr.op])
    if param is None or expr.op not in PARAMETRIC:
        raise QueryRejected(f"the aggregation {expr.op} is not supported")
    if expr.op == "quantile":
        levels = np.tile(param, len(groups))
        return _reduced(groups, vector, lambda v, lo, hi: ragged.quantiles(levels, v, lo, hi))
    assert wanted is not None
    return _best(groups, vector, wanted, largest=expr.op == "topk")


def _group(labels: Labels, expr: Aggregate) -> Labels:
    if expr.without:
        return without(labels, (NAME, *expr.labels))
    return only(labels, expr.labels)


def _reduced(
    groups: dict[Labels, list[int]], vector: Vector, reduction: ragged.Reduction
) -> Vector:
    """Each group's present values at each step as one run, reduced."""
    steps = vector.values.shape[1]
    values, there, counts = [], [], []
    for rows in groups.values():
        values.append(vector.values[rows].T.ravel())
        present = vector.present[rows].T
        there.append(present.ravel())
        counts.append(present.sum(axis=1))
    flat = np.concatenate(values)[np.concatenate(there)]
    hi: Ints = np.cumsum(np.concatenate(counts)).astype(np.int64)
    lo = np.concatenate((np.zeros(1, dtype=np.int64), hi[:-1]))
    shape = (len(groups), steps)
    result = reduction(flat, lo, hi).reshape(shape)
    return Vector(tuple(groups), result, (hi > lo).reshape(shape))


def _wanted(param: Floats) -> Ints:
    """How many series topk keeps at each step; below 1 none. Raises where it is no count."""
    if np.isnan(param).any():
        raise QueryRejected("Parameter value is NaN")
    if (np.abs(param) >= K_LIMIT).any():
        raise QueryRejected("Scalar value overflows int64")
    return np.maximum(param, 0).astype(np.int64)


def _best(
    groups: dict[Labels, list[int]], vector: Vector, wanted: Ints, *, largest: bool
) -> Vector:
    """The first `wanted` of each group by value, NaN behind every number; ties stay in order."""
    keep = np.zeros(vector.present.shape, dtype=np.bool_)
    order: list[int] = []
    for rows in groups.values():
        index = np.asarray(rows)
        values, present = vector.values[index], vector.present[index]
        ranks = _ranks(-values if largest else values, present)
        keep[index] = present & (ranks < wanted)
        order += index[np.argsort(ranks[:, -1], kind="stable")].tolist()
    if vector.values.shape[1] > 1:
        order = list(range(len(vector)))
    alive = [row for row in order if keep[row].any()]
    if not alive:
        return empty(vector.values.shape[1])
    return Vector(tuple(vector.labels[r] for r in alive), vector.values[alive], keep[alive])


def _ranks(keys: Floats, present: Bools) -> Ints:
    unknown = np.isnan(keys)
    order = np.lexsort((np.where(unknown, 0.0, keys), unknown, ~present), axis=0)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(keys.shape[0])[:, None], axis=0)
    return ranks
