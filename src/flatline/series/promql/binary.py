"""
Operators between two expressions: arithmetic, comparison, and the set operators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flatline.errors import QueryRejected
from flatline.series.promql.tree import Binary, Matching
from flatline.series.promql.vector import (
    MAX_CELLS,
    Bools,
    Scalar,
    Vector,
    empty,
    nameless,
    only,
    settled,
    shown,
    without,
)
from flatline.series.storage import NAME, Floats, Labels, labels_of


def _power(base: Any, exponent: Any) -> Floats:
    """NumPy takes the square root for an exponent of 1/2, which -Inf has none of."""
    return np.where((base == -np.inf) & (exponent == 0.5), np.inf, np.power(base, exponent))


ARITHMETIC: dict[str, Callable[[Any, Any], Floats]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
    "^": _power,
    "atan2": np.arctan2,
}
COMPARISON: dict[str, Callable[[Any, Any], Bools]] = {
    "==": np.equal,
    "!=": np.not_equal,
    ">": np.greater,
    "<": np.less,
    ">=": np.greater_equal,
    "<=": np.less_equal,
}
SETS = frozenset({"and", "or", "unless"})


def combine(
    expr: Binary, left: Vector | Scalar, right: Vector | Scalar, *, old: bool = False
) -> Vector | Scalar:
    """The value of `left op right`; `old` as Prometheus 2 has it."""
    if expr.op not in ARITHMETIC and expr.op not in COMPARISON and expr.op not in SETS:
        raise QueryRejected(f"the operator {expr.op} is not supported")
    if isinstance(left, Scalar) and isinstance(right, Scalar):
        if expr.op in ARITHMETIC:
            return Scalar(ARITHMETIC[expr.op](left.values, right.values))
        return Scalar(COMPARISON[expr.op](left.values, right.values).astype(np.float64))
    if isinstance(left, Vector) and isinstance(right, Vector):
        if expr.op in SETS:
            return _set(expr, left, right)
        return _joined(expr, left, right, old=old)
    return _with_scalar(expr, left, right, old=old)


def _with_scalar(
    expr: Binary, left: Vector | Scalar, right: Vector | Scalar, *, old: bool
) -> Vector:
    vector = left if isinstance(left, Vector) else right
    assert isinstance(vector, Vector)
    values, kept = _apply(expr, left.values, right.values, vector.values)
    if expr.op in COMPARISON and not expr.returns_bool:
        return Vector(vector.labels, vector.values, vector.present & kept)
    if old and expr.op == "atan2":  # the one operator of release 2 that kept the name
        return Vector(vector.labels, values, vector.present)
    return settled(vector.with_values(values))


def _apply(expr: Binary, left: Floats, right: Floats, kept: Floats) -> tuple[Floats, Bools]:
    """Values of an operation, and where a filter keeps the sample; `kept` is what it keeps."""
    if expr.op in ARITHMETIC:
        values = ARITHMETIC[expr.op](left, right)
        return values, np.ones(values.shape, dtype=np.bool_)
    holds = COMPARISON[expr.op](left, right)
    if expr.returns_bool:
        return holds.astype(np.float64), np.ones(holds.shape, dtype=np.bool_)
    return kept, holds


# --- vectors with vectors -----------------------------------------------------------------------


def _signature(matching: Matching | None) -> Callable[[Labels], Labels]:
    if matching is not None and matching.on:
        return lambda labels: only(labels, matching.labels)
    ignored = (NAME, *(() if matching is None else matching.labels))
    return lambda labels: without(labels, ignored)


def _by_signature(vector: Vector, matching: Matching | None) -> dict[Labels, list[int]]:
    signature = _signature(matching)
    groups: dict[Labels, list[int]] = {}
    for row, labels in enumerate(vector.labels):
        groups.setdefault(signature(labels), []).append(row)
    return groups


def _joined(expr: Binary, left: Vector, right: Vector, *, old: bool) -> Vector:
    """Arithmetic or comparison of samples that share a signature."""
    steps = left.values.shape[1]
    if not len(left) or not len(right):
        return empty(steps)
    matching = expr.matching
    swapped = matching is not None and matching.card == "one-to-many"
    many, one = (right, left) if swapped else (left, right)
    one_rows = _by_signature(one, matching)
    live = many.present.any(axis=0)
    for signature, rows in one_rows.items():
        if len(rows) > 1 and ((one.present[rows].sum(axis=0) > 1) & live).any():
            side = "left" if swapped else "right"
            raise QueryRejected(
                f"found duplicate series for the match group {shown(signature)} on the {side}"
                " hand-side of the operation; many-to-many matching not allowed: matching"
                " labels must be unique on one side"
            )
    many_rows = _by_signature(many, matching)
    pairs = [(m, o) for s, rows in many_rows.items() for m in rows for o in one_rows.get(s, ())]
    if not pairs:
        return empty(steps)
    if len(pairs) * steps > MAX_CELLS:
        raise QueryRejected(f"joining the sides of {expr.op} needs more than {MAX_CELLS} samples")
    pairs.sort()
    m, o = np.asarray(pairs, dtype=np.int64).T
    lhs, rhs = (one.values[o], many.values[m]) if swapped else (many.values[m], one.values[o])
    values, kept = _apply(expr, lhs, rhs, lhs)
    matched = many.present[m] & one.present[o]
    if matching is None or matching.card == "one-to-one":
        _single(many_rows, m, matched & kept if old else matched)
    present = matched & kept
    drops = expr.returns_bool or (expr.op in ARITHMETIC and not (old and expr.op == "atan2"))
    named = [_result_labels(matching, many.labels[i], one.labels[j], drops) for i, j in pairs]
    return settled(Vector(tuple(named), values, present))


def _single(many_rows: dict[Labels, list[int]], pair_rows: Any, matched: Bools) -> None:
    """Raises QueryRejected where two samples of the left side match at one step; since
    Prometheus 3 even if a comparison then drops them."""
    for rows in many_rows.values():
        if len(rows) > 1:
            inside = matched[np.isin(pair_rows, rows)]
            if (inside.sum(axis=0) > 1).any():
                raise QueryRejected(
                    "multiple matches for labels: many-to-one matching must be explicit"
                    " (group_left/group_right)"
                )


def _result_labels(
    matching: Matching | None, many: Labels, one: Labels, drops_name: bool
) -> Labels:
    labels = nameless(many) if drops_name else many
    if matching is None:
        return labels
    if matching.card == "one-to-one":
        if matching.on:
            return only(labels, matching.labels)
        return without(labels, matching.labels)
    if matching.include:
        taken = dict(labels)
        other = dict(one)
        for name in matching.include:
            taken[name] = other.get(name, "")
        return labels_of(taken)
    return labels


def _set(expr: Binary, left: Vector, right: Vector) -> Vector:
    """`and`, `or`, `unless`: samples of one side by whether the other has their signature."""
    if expr.op == "or":
        absent = ~_covered(right, left, expr.matching)
        labels = (*left.labels, *right.labels)
        values = np.concatenate((left.values, right.values))
        present = np.concatenate((left.present, right.present & absent))
        return settled(Vector(labels, values, present))
    covered = _covered(left, right, expr.matching)
    return Vector(
        left.labels, left.values, left.present & (covered if expr.op == "and" else ~covered)
    )


def _covered(these: Vector, those: Vector, matching: Matching | None) -> Bools:
    """For each sample of `these`, whether `those` have one of the same signature at that step."""
    out = np.zeros(these.present.shape, dtype=np.bool_)
    groups = _by_signature(those, matching)
    for signature, rows in _by_signature(these, matching).items():
        others: Sequence[int] = groups.get(signature, ())
        if others:
            out[rows] = those.present[list(others)].any(axis=0)
    return out
