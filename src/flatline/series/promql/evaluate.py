"""
A query's answer over a store: every step at once, one array operation a node.

Semantics are Prometheus 3's for float samples: windows open on the left, five minutes of
lookback, staleness markers, names dropped where the server drops them by default.  With
`compat=2` they are those of Prometheus 2, as its release 2.42 has them.  Native histograms do
not occur in what is read here.  Whatever is not supported raises QueryRejected and names itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from flatline.errors import QueryRejected
from flatline.series.promql.evaluation import SCALARS, Evaluation, milliseconds
from flatline.series.promql.parse import parse
from flatline.series.promql.settings import DEFAULTS, LOOKBACK_S, Settings
from flatline.series.promql.tree import (
    Binary,
    Call,
    Expr,
    Negation,
    Number,
    Selector,
    Subquery,
    Text,
    inner,
)
from flatline.series.promql.vector import Bools, Scalar, String, distinct
from flatline.series.storage import Floats, Ints, Labels, Series, Store

__all__ = [
    "DEFAULTS",
    "LOOKBACK_S",
    "MAX_STEPS",
    "Kind",
    "Matrix",
    "Settings",
    "instant",
    "kind",
    "over",
    "samples",
]
MAX_STEPS = 11_000
"""Most steps from the first point to the last (`web/api/v1` of Prometheus refuses more)."""
Kind = Literal["vector", "scalar", "matrix", "string"]


@dataclass(frozen=True, slots=True)
class Matrix:
    """
    An answer: `values[i, j]` of series i at `times[j]`, where `present[i, j]`; elsewhere NaN.

    `scalar` marks a query that has one number a step and no series.
    """

    labels: tuple[Labels, ...]
    times: Floats
    values: Floats
    present: Bools
    scalar: bool = False


def kind(query: str | Expr, settings: Settings = DEFAULTS) -> Kind:
    """What the query is worth at one time, told from its text."""
    expr = inner(_parsed(query, settings))
    match expr:
        case Subquery() | Selector(range_ms=int()):
            return "matrix"
        case Text():
            return "string"
        case Number():
            return "scalar"
        case Call(function=name) if name in SCALARS:
            return "scalar"
        case Negation(expr=inside):
            return kind(inside)
        case Binary(left=left, right=right) if kind(left) == kind(right) == "scalar":
            return "scalar"
        case _:
            return "vector"


def instant(query: str | Expr, store: Store, at: float, settings: Settings = DEFAULTS) -> Matrix:
    """The query at one time, in seconds since 1970; series keep the order the query gives."""
    return _answer(query, store, np.array([milliseconds(at)], dtype=np.int64), 0, settings)


def over(
    query: str | Expr,
    store: Store,
    start: float,
    end: float,
    step_s: float,
    settings: Settings = DEFAULTS,
) -> Matrix:
    """The query at start, start + step, … up to end; series sorted by their labels."""
    first, last, step = milliseconds(start), milliseconds(end), milliseconds(step_s)
    if step <= 0 or last < first:
        raise QueryRejected("a range needs a step above zero and an end not before its start")
    if (last - first) // step > MAX_STEPS:
        raise QueryRejected(f"the range has more than {MAX_STEPS} steps")
    steps = np.arange(first, last + 1, step, dtype=np.int64)
    answer = _answer(query, store, steps, step, settings)
    order = sorted(range(len(answer.labels)), key=lambda row: answer.labels[row])
    labels = tuple(answer.labels[row] for row in order)
    return Matrix(labels, answer.times, answer.values[order], answer.present[order], answer.scalar)


def samples(query: str | Expr, store: Store, at: float, settings: Settings = DEFAULTS) -> Series:
    """
    The samples of a range vector at one time: those of the window of each series that has any.

    Raises QueryRejected for a query of another kind.
    """
    expr = inner(_parsed(query, settings))
    steps = np.array([milliseconds(at)], dtype=np.int64)
    with np.errstate(all="ignore"):
        found = Evaluation(store, steps, 0, settings).windows(expr, "the query")
    rows = np.flatnonzero(found.hi > found.lo).tolist()
    order = sorted(rows, key=lambda row: found.series.labels[row])
    parts = [slice(found.lo[row], found.hi[row]) for row in order]
    none = np.empty(0)
    return Series(
        tuple(found.series.labels[row] for row in order),
        np.concatenate([none, *(found.series.times[part] for part in parts)]),
        np.concatenate([none, *(found.series.values[part] for part in parts)]),
        np.cumsum([0, *(part.stop - part.start for part in parts)]).astype(np.int64),
    )


def _parsed(query: str | Expr, settings: Settings) -> Expr:
    return parse(query, settings.compat) if isinstance(query, str) else query


def _answer(
    query: str | Expr, store: Store, steps: Ints, step_ms: int, settings: Settings
) -> Matrix:
    expr = _parsed(query, settings)
    with np.errstate(all="ignore"):
        value = Evaluation(store, steps, step_ms, settings).value(expr)
    times = steps / 1000.0
    if isinstance(value, Scalar):
        values = np.broadcast_to(value.values, steps.shape)[None, :]
        return Matrix(((),), times, values, np.ones(values.shape, dtype=np.bool_), scalar=True)
    if isinstance(value, String):
        raise QueryRejected("a query that is only a string has no number")
    alive = np.flatnonzero(value.present.any(axis=1)).tolist()
    kept = distinct(value.rows(alive)) if len(alive) < len(value) else distinct(value)
    values = np.where(kept.present, kept.values, np.nan)
    return Matrix(kept.labels, times, values, kept.present)
