"""
A query's answer over a store: every step at once, one array operation a node.

Semantics are Prometheus 3's for float samples: windows open on the left, five minutes of
lookback, staleness markers, names dropped where the server drops them by default.  Native
histograms do not occur in what is read here.  Whatever is not supported raises QueryRejected
and names itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from flatline.errors import QueryRejected
from flatline.series.matching import Matcher
from flatline.series.promql import windows
from flatline.series.promql.aggregate import PARAMETRIC, REDUCTIONS, aggregate
from flatline.series.promql.binary import combine
from flatline.series.promql.functions import INSTANT, Instant
from flatline.series.promql.parse import parse
from flatline.series.promql.tree import (
    Aggregate,
    At,
    Binary,
    Call,
    Expr,
    Negation,
    Number,
    Paren,
    Selector,
    Subquery,
    Text,
    inner,
)
from flatline.series.promql.vector import (
    MAX_CELLS,
    Bools,
    Scalar,
    String,
    Value,
    Vector,
    distinct,
    empty,
    nameless,
    settled,
)
from flatline.series.storage import NAME, STALE_BITS, Floats, Ints, Labels, Series, Store

LOOKBACK_S = 300.0
"""How long a sample stands for its series (`--query.lookback-delta` of Prometheus)."""
MAX_STEPS = 11_000
"""Most points a series may have in an answer (`web/api/v1` of Prometheus refuses more)."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How an engine is set up; `left_closed` is the window of Prometheus 2."""

    lookback_s: float = LOOKBACK_S
    left_closed: bool = False


DEFAULTS = Settings()


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


def instant(query: str | Expr, store: Store, at: float, settings: Settings = DEFAULTS) -> Matrix:
    """The query at one time, in seconds since 1970; series keep the order the query gives."""
    return _answer(query, store, np.array([_ms(at)], dtype=np.int64), settings)


def over(
    query: str | Expr,
    store: Store,
    start: float,
    end: float,
    step_s: float,
    settings: Settings = DEFAULTS,
) -> Matrix:
    """The query at start, start + step, … up to end; series sorted by their labels."""
    first, last, step = _ms(start), _ms(end), _ms(step_s)
    if step <= 0 or last < first:
        raise QueryRejected("a range needs a step above zero and an end not before its start")
    if (last - first) // step + 1 > MAX_STEPS:
        raise QueryRejected(f"the range has more than {MAX_STEPS} steps")
    answer = _answer(query, store, np.arange(first, last + 1, step, dtype=np.int64), settings)
    order = sorted(range(len(answer.labels)), key=lambda row: answer.labels[row])
    labels = tuple(answer.labels[row] for row in order)
    return Matrix(labels, answer.times, answer.values[order], answer.present[order], answer.scalar)


def _ms(value: float) -> int:
    if not np.isfinite(value) or abs(value) > 1e13:
        raise QueryRejected(f"{value} is no time a query can have")
    return round(value * 1000)


def _answer(query: str | Expr, store: Store, steps: Ints, settings: Settings) -> Matrix:
    expr = parse(query) if isinstance(query, str) else query
    with np.errstate(all="ignore"):
        value = _Evaluation(store, steps, settings).value(expr)
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


class _Evaluation:
    """One query at one set of steps."""

    def __init__(self, store: Store, steps: Ints, settings: Settings) -> None:
        self.store = store
        self.steps = steps
        self.settings = settings

    def value(self, expr: Expr) -> Value:
        """What the expression is worth at each step."""
        match expr:
            case Number(value=number):
                return Scalar(np.full(self.steps.size, number))
            case Text(value=text):
                return String(text)
            case Paren(expr=inside):
                return self.value(inside)
            case Negation(expr=inside):
                return self._negated(self.value(inside))
            case Selector():
                return self._selected(expr)[0]
            case Call():
                return self._called(expr)
            case Aggregate():
                return self._aggregated(expr)
            case Binary(left=left, right=right):
                return combine(expr, self._operand(left), self._operand(right))
            case Subquery():
                raise QueryRejected("subqueries are not supported")

    def _operand(self, expr: Expr) -> Vector | Scalar:
        value = self.value(expr)
        if isinstance(value, String):
            raise QueryRejected("a string cannot stand there")
        return value

    def _vector(self, expr: Expr) -> Vector:
        value = self.value(expr)
        if not isinstance(value, Vector):
            raise QueryRejected("an instant vector was expected")
        return value

    def _scalar(self, expr: Expr) -> Floats:
        value = self.value(expr)
        if not isinstance(value, Scalar):
            raise QueryRejected("a scalar was expected")
        return np.broadcast_to(value.values, self.steps.shape)

    def _negated(self, value: Value) -> Value:
        if isinstance(value, Scalar):
            return Scalar(-value.values)
        if isinstance(value, Vector):
            return settled(value.with_values(-value.values))
        raise QueryRejected("a string has no negative")

    # --- selectors ---

    def _times(self, offset_ms: int, at: At | None) -> Ints:
        """The time each step looks at."""
        if at is None:
            steps = self.steps
        else:
            fixed = {"start": int(self.steps[0]), "end": int(self.steps[-1])}
            moment = fixed[at] if isinstance(at, str) else _ms(at)
            steps = np.full(self.steps.size, moment, dtype=np.int64)
        return steps - offset_ms

    def _fetch(self, expr: Selector, first_ms: int, last_ms: int) -> Series:
        matchers = expr.matchers
        if expr.name is not None:
            matchers = (Matcher(NAME, "=", expr.name), *matchers)
        series = self.store.select(matchers, first_ms / 1000.0, last_ms / 1000.0)
        if len(series) * self.steps.size > MAX_CELLS:
            raise QueryRejected(f"the query needs more than {MAX_CELLS} samples at once")
        return series

    def _selected(self, expr: Selector) -> tuple[Vector, Floats]:
        """The newest sample of each series at each step, and when it was taken."""
        if expr.range_ms is not None:
            raise QueryRejected("a range vector has no value of its own: give it to a function")
        upper_ms = self._times(expr.offset_ms, expr.at)
        lower_ms = upper_ms - round(self.settings.lookback_s * 1000)
        series = self._fetch(expr, int(lower_ms.min()), int(upper_ms.max()))
        if not series.values.size:
            return empty(self.steps.size), np.empty((0, self.steps.size))
        lo, hi = windows.spans(
            series, lower_ms / 1000.0, upper_ms / 1000.0, closed=self.settings.left_closed
        )
        there = hi > lo
        last = np.where(there, hi - 1, 0)
        values = series.values[last]
        there &= values.view(np.uint64) != STALE_BITS
        shape = (len(series), self.steps.size)
        vector = Vector(series.labels, values.reshape(shape), there.reshape(shape))
        return vector, series.times[last].reshape(shape)

    def _windows(self, expr: Expr, function: str) -> windows.Windows:
        selector = inner(expr)
        if isinstance(selector, Subquery):
            raise QueryRejected("subqueries are not supported")
        if not isinstance(selector, Selector) or selector.range_ms is None:
            raise QueryRejected(f"{function} needs a range vector")
        ends = self._times(selector.offset_ms, selector.at)
        starts = ends - selector.range_ms
        series = self._fetch(selector, int(starts.min()), int(ends.max())).without_stale()
        lo, hi = windows.spans(
            series, starts / 1000.0, ends / 1000.0, closed=self.settings.left_closed
        )
        return windows.Windows(series, lo, hi, starts, ends)

    # --- calls ---

    def _called(self, expr: Call) -> Value:
        name, args = expr.function, expr.args
        if name in windows.FUNCTIONS:
            found = self._windows(args[0], name)
            return self._windowed(name, found, windows.FUNCTIONS[name](found))
        if name == "quantile_over_time":
            found = self._windows(args[1], name)
            result = windows.quantile_over_time(self._scalar(args[0]), found)
            return self._windowed(name, found, result)
        if name in _SPECIAL:
            return _SPECIAL[name](self, args)
        if name in INSTANT:
            return self._instant(INSTANT[name], args)
        raise QueryRejected(f"the function {name} is not supported")

    def _windowed(self, name: str, found: windows.Windows, result: windows.Result) -> Vector:
        labels = found.series.labels
        if name not in windows.KEEP_NAME:
            labels = tuple(map(nameless, labels))
        values, present = result[0].reshape(found.shape), result[1].reshape(found.shape)
        alive = np.flatnonzero(present.any(axis=1)).tolist()
        return distinct(Vector(labels, values, present).rows(alive))

    def _instant(self, function: Instant, args: tuple[Expr, ...]) -> Vector:
        vector = self._vector(args[0])
        extra = [self._scalar(arg) for arg in args[1:]]
        values, kept = function(vector.values, *extra)
        named = vector.with_values(values)
        return settled(Vector(named.labels, named.values, named.present & kept))

    def _as_scalar(self, args: tuple[Expr, ...]) -> Value:
        vector = self._vector(args[0])
        single = vector.present.sum(axis=0) == 1
        total = np.where(vector.present, vector.values, 0.0).sum(axis=0)
        return Scalar(np.where(single, total, np.nan))

    def _as_vector(self, args: tuple[Expr, ...]) -> Value:
        values = self._scalar(args[0])[None, :]
        return Vector(((),), values, np.ones(values.shape, dtype=np.bool_))

    def _time(self, args: tuple[Expr, ...]) -> Value:
        return Scalar(self.steps / 1000.0)

    def _timestamp(self, args: tuple[Expr, ...]) -> Value:
        """When each sample was taken; of anything but a selector, the step itself."""
        argument = inner(args[0])
        if isinstance(argument, Selector):
            vector, times = self._selected(argument)
        else:
            vector = self._vector(argument)
            times = np.broadcast_to(self.steps / 1000.0, vector.values.shape)
        return settled(vector.with_values(times))

    def _aggregated(self, expr: Aggregate) -> Vector:
        if expr.op not in REDUCTIONS and expr.op not in PARAMETRIC:
            raise QueryRejected(f"the aggregation {expr.op} is not supported")
        param = None if expr.param is None else self._scalar(expr.param)
        return aggregate(expr, self._vector(expr.expr), param)


_SPECIAL: dict[str, Callable[[_Evaluation, tuple[Expr, ...]], Value]] = {
    "scalar": _Evaluation._as_scalar,
    "vector": _Evaluation._as_vector,
    "time": _Evaluation._time,
    "timestamp": _Evaluation._timestamp,
}
