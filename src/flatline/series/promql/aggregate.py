"""
Aggregations: one series for each group of series, or some series of each group.

Rows are put in order of their groups once; then each reduction is a few operations on whole
matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from flatline.errors import QueryRejected
from flatline.series.promql import ragged
from flatline.series.promql.ranking import best
from flatline.series.promql.tree import Aggregate
from flatline.series.promql.vector import (
    MAX_CELLS,
    Bools,
    Vector,
    empty,
    only,
    settled,
    spelled,
    without,
)
from flatline.series.storage import NAME, Floats, Ints, Labels, labels_of

K_LIMIT = float(1 << 62)


@dataclass(frozen=True, slots=True)
class Groups:
    """
    Series in order of their groups: group g has the rows `offsets[g]:offsets[g + 1]`.

    `values` are NaN and `present` is False where there is no sample; `counts` says how many
    there are in each group at each step.
    """

    labels: tuple[Labels, ...]
    offsets: Ints
    values: Floats
    present: Bools
    counts: Ints

    @property
    def begins(self) -> Ints:
        return self.offsets[:-1]

    @property
    def sizes(self) -> Ints:
        return np.diff(self.offsets)


def _grouped(vector: Vector, members: dict[Labels, list[int]]) -> Groups:
    order = np.fromiter((r for rows in members.values() for r in rows), np.int64, len(vector))
    offsets = np.concatenate(([0], np.cumsum([len(rows) for rows in members.values()])))
    offsets = offsets.astype(np.int64)
    if np.array_equal(order, np.arange(order.size)):
        present, values = vector.present, vector.values
    else:
        present, values = vector.present[order], vector.values[order]
    if not present.all():
        values = np.where(present, values, np.nan)
    counts = np.add.reduceat(present, offsets[:-1], axis=0, dtype=np.int64)
    return Groups(tuple(members), offsets, values, present, counts)


# --- reductions ---------------------------------------------------------------------------------


def _sums(groups: Groups, values: Floats) -> Floats:
    """Exact sums, or compensated ones in the order of the rows, absent ones as 0."""
    if not groups.present.all():
        values = np.where(groups.present, values, 0.0)
    steps = values.shape[1]
    sizes = groups.sizes
    if steps == 1:
        column = values[:, 0]
        return ragged.sums(column, groups.begins, groups.offsets[1:])[:, None]
    exact = ragged.grouped(values, groups.begins)
    if exact is not None:
        return exact
    total, lost = np.zeros((sizes.size, steps)), np.zeros((sizes.size, steps))
    for place in range(int(sizes.max())):
        live = np.flatnonzero(sizes > place)
        if live.size == sizes.size:
            total, lost = ragged.added(values[groups.begins + place], total, lost)
        else:
            term = values[groups.begins[live] + place]
            total[live], lost[live] = ragged.added(term, total[live], lost[live])
    return np.where(np.isinf(total), total, total + lost)


def _sum(groups: Groups) -> Floats:
    return _sums(groups, groups.values)


def _mean(groups: Groups) -> Floats:
    """Where the sum overflows, the values are divided before they are added up."""
    mean = _sum(groups) / groups.counts
    if np.isinf(mean).any():
        finite = np.where(groups.present, groups.values, 0.0)
        inside = np.logical_and.reduceat(np.isfinite(finite), groups.begins, axis=0)
        count = np.repeat(groups.counts, groups.sizes, axis=0)
        mean = np.where(np.isinf(mean) & inside, _sums(groups, finite / count), mean)
    return mean


def _running_mean(groups: Groups) -> Floats:
    """As Prometheus 2 had it: corrected by each value in turn."""
    mean, count = np.zeros(groups.counts.shape), np.zeros(groups.counts.shape)
    for live, value, there in _in_turn(groups):
        count[live] += there
        before = mean[live]
        after = before + (value / count[live] - before / count[live])
        mean[live] = np.where(there & ~ragged.still_infinite(before, value), after, before)
    return mean


def _running_variance(groups: Groups) -> Floats:
    """As Prometheus 2 had it (Welford's); that of one value is 0, be it infinite."""
    mean, count = np.zeros(groups.counts.shape), np.zeros(groups.counts.shape)
    total = np.zeros(groups.counts.shape)
    for live, value, there in _in_turn(groups):
        first = there & (count[live] == 0)
        count[live] += there
        apart = value - mean[live]
        after = np.where(first, value, mean[live] + apart / count[live])
        more = np.where(first, 0.0, apart * (value - after))
        total[live] += np.where(there, more, 0.0)
        mean[live] = np.where(there, after, mean[live])
    return total / groups.counts


def _in_turn(groups: Groups) -> Iterator[tuple[Ints, Floats, Bools]]:
    """The groups that have another member, its values, and where they are present."""
    for place in range(int(groups.sizes.max())):
        live = np.flatnonzero(groups.sizes > place)
        rows = groups.begins[live] + place
        yield live, groups.values[rows], groups.present[rows]


def _variance(groups: Groups) -> Floats:
    """In two passes over what differs from the group's first value: equals have exactly none."""
    present = groups.present
    rows = np.arange(len(present))[:, None]
    first = np.minimum.reduceat(np.where(present, rows, len(present)), groups.begins, axis=0)
    origin = np.take_along_axis(groups.values, np.minimum(first, len(present) - 1), axis=0)
    apart = groups.values - np.repeat(origin, groups.sizes, axis=0)
    mean = _sums(groups, apart) / groups.counts
    apart = apart - np.repeat(mean, groups.sizes, axis=0)
    out: Floats = _sums(groups, apart * apart) / groups.counts
    return out


def _extreme(how: np.ufunc) -> Callable[[Groups], Floats]:
    def reduction(groups: Groups) -> Floats:
        out: Floats = how.reduceat(groups.values, groups.begins, axis=0)
        return out

    return reduction


REDUCTIONS: dict[str, Callable[[Groups], Floats]] = {
    "sum": _sum,
    "avg": _mean,
    "min": _extreme(np.fmin),
    "max": _extreme(np.fmax),
    "count": lambda groups: groups.counts.astype(np.float64),
    "stddev": lambda groups: np.sqrt(_variance(groups)),
    "stdvar": _variance,
    "group": lambda groups: np.ones(groups.counts.shape),
}
OLD_REDUCTIONS = REDUCTIONS | {
    "avg": _running_mean,
    "stddev": lambda groups: np.sqrt(_running_variance(groups)),
    "stdvar": _running_variance,
}
PARAMETRIC = frozenset({"quantile", "topk", "bottomk", "count_values"})


def _quantile(groups: Groups, level: Floats) -> Floats:
    """Groups of one size at once, a row of values for each of their steps."""
    out = np.empty(groups.counts.shape)
    for size in np.unique(groups.sizes).tolist():
        chosen = np.flatnonzero(groups.sizes == size)
        block = max(1, ragged.BLOCK_CELLS // (size * level.size))
        for first in range(0, chosen.size, block):
            some = chosen[first : first + block]
            rows = groups.begins[some][:, None] + np.arange(size)
            grid = groups.values[rows].transpose(0, 2, 1).reshape(-1, size)
            count = groups.counts[some].reshape(-1)
            found = ragged.quantiles_of(np.tile(level, some.size), grid, count)
            out[some] = found.reshape(some.size, -1)
    return out


# --- the aggregation ----------------------------------------------------------------------------


def aggregate(expr: Aggregate, vector: Vector, param: Floats | str | None, *, old: bool) -> Vector:
    """What an aggregation makes of a vector; `param` is its scalar argument at each step, or
    the label of `count_values`."""
    if isinstance(param, str):
        return _values_counted(expr, vector, param)
    if expr.op in REDUCTIONS:
        if not len(vector):
            return vector
        groups = _grouped(vector, members_of(expr, vector))
        reduction = (OLD_REDUCTIONS if old else REDUCTIONS)[expr.op]
        return Vector(groups.labels, reduction(groups), groups.counts > 0)
    if param is None or expr.op not in PARAMETRIC:
        raise QueryRejected(f"the aggregation {expr.op} is not supported")
    if expr.op == "quantile":
        if not len(vector):
            return vector
        groups = _grouped(vector, members_of(expr, vector))
        return Vector(groups.labels, _quantile(groups, param), groups.counts > 0)
    wanted = _wanted(param)
    members = list(members_of(expr, vector).values())
    return best(vector, members, wanted, largest=expr.op == "topk", old=old)


def members_of(expr: Aggregate, vector: Vector) -> dict[Labels, list[int]]:
    """The rows of each group, groups in the order in which they come."""
    members: dict[Labels, list[int]] = {}
    if not expr.without and not expr.labels:
        return {(): list(range(len(vector)))} if len(vector) else {}
    names = frozenset((NAME, *expr.labels) if expr.without else expr.labels)
    choose = without if expr.without else only
    for row, labels in enumerate(vector.labels):
        members.setdefault(choose(labels, names), []).append(row)
    return members


def _wanted(param: Floats) -> Ints:
    """How many series topk keeps at each step; below 1 none. Raises where it is no count."""
    if np.isnan(param).any():
        raise QueryRejected("Parameter value is NaN")
    if (np.abs(param) >= K_LIMIT).any():
        raise QueryRejected("Scalar value overflows int64")
    return np.maximum(param, 0).astype(np.int64)


def _values_counted(expr: Aggregate, vector: Vector, label: str) -> Vector:
    """A series for each distinct value, the value written into a label."""
    steps = vector.values.shape[1]
    bits, codes = np.unique(vector.values[vector.present].view(np.uint64), return_inverse=True)
    texts = [spelled(value) for value in bits.view(np.float64).tolist()]
    coded = np.full(vector.values.shape, -1, dtype=np.int64)
    coded[vector.present] = codes.reshape(-1)
    names = frozenset((NAME, *expr.labels) if expr.without else (*expr.labels, label))
    counted: dict[Labels, Floats] = {}
    for row, labels in enumerate(vector.labels):
        for code in np.unique(coded[row]).tolist():
            if code < 0:
                continue
            valued = labels_of({**dict(labels), label: texts[code]})
            key = without(valued, names) if expr.without else only(valued, names)
            if key not in counted:
                counted[key] = np.zeros(steps)
                if len(counted) * steps > MAX_CELLS:
                    raise QueryRejected(f"count_values needs more than {MAX_CELLS} samples")
            counted[key] += coded[row] == code
    if not counted:
        return empty(steps)
    values = np.stack(list(counted.values()))
    return settled(Vector(tuple(counted), values, values > 0))
