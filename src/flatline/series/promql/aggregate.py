"""
Aggregations: one series for each group of series, or some series of each group.

Rows are put in order of their groups once; then each reduction is a few operations on whole
matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from flatline.errors import QueryRejected
from flatline.series.promql import ragged
from flatline.series.promql.ranking import best
from flatline.series.promql.tree import Aggregate
from flatline.series.promql.vector import Vector, empty, only, settled, without
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
    present: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
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
    """Compensated sums in the order of the rows, absent ones as 0."""
    values = np.where(groups.present, values, 0.0)
    steps = values.shape[1]
    sizes = groups.sizes
    if steps == 1:
        column = values[:, 0]
        return ragged.sums(column, groups.begins, groups.offsets[1:])[:, None]
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


def aggregate(
    expr: Aggregate, vector: Vector, param: Floats | str | None, *, old: bool
) -> Vector:
    """What an aggregation makes of a vector; `param` is its scalar argument at each step, or
    the label of `count_values`."""
    if isinstance(param, str):
        return _values_counted(expr, vector, param)
    if expr.op in REDUCTIONS:
        if not len(vector):
            return vector
        groups = _grouped(vector, members_of(expr, vector))
        return Vector(groups.labels, REDUCTIONS[expr.op](groups), groups.counts > 0)
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
    spelled = [_spelled(value) for value in bits.view(np.float64).tolist()]
    coded = np.full(vector.values.shape, -1, dtype=np.int64)
    coded[vector.present] = codes.reshape(-1)
    names = frozenset((NAME, *expr.labels) if expr.without else (*expr.labels, label))
    counted: dict[Labels, Floats] = {}
    for row, labels in enumerate(vector.labels):
        for code in np.unique(coded[row]).tolist():
            if code < 0:
                continue
            valued = labels_of({**dict(labels), label: spelled[code]})
            key = without(valued, names) if expr.without else only(valued, names)
            if key not in counted:
                counted[key] = np.zeros(steps)
            counted[key] += coded[row] == code
    if not counted:
        return empty(steps)
    values = np.stack(list(counted.values()))
    return settled(Vector(tuple(counted), values, values > 0))


def _spelled(value: float) -> str:
    """The shortest decimal that reads back as the value, never with an exponent."""
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return np.format_float_positional(value, unique=True, trim="-")
