"""One query at one set of steps: the walk over its tree."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import numpy as np

from flatline.errors import QueryRejected, QueryTimedOut
from flatline.series.matching import Matcher
from flatline.series.promql import histograms, relabel, trends, windows
from flatline.series.promql.aggregate import PARAMETRIC, REDUCTIONS, aggregate
from flatline.series.promql.binary import combine
from flatline.series.promql.functions import CALENDAR, INSTANT, Instant, calendar, greater, lesser
from flatline.series.promql.ranking import ordered
from flatline.series.promql.settings import EXPERIMENTAL, SINCE_3, Settings
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
from flatline.series.storage import NAME, STALE_BITS, Floats, Ints, Labels, Series, Store, seconds

RANGES = {**windows.FUNCTIONS, **trends.FUNCTIONS}
MAX_SUBQUERY_STEPS = 1_000_000
NATIVE = frozenset(
    {
        "histogram_avg",
        "histogram_count",
        "histogram_sum",
        "histogram_stddev",
        "histogram_stdvar",
    }
)


def milliseconds(value: float) -> int:
    """A time or a step in whole milliseconds. Raises QueryRejected where it is none."""
    if not np.isfinite(value) or abs(value) > 1e13:
        raise QueryRejected(f"{value} is no time a query can have")
    return round(value * 1000)


class Evaluation:
    """
    A query at its steps; `bounds` are those of the whole query where this is a subquery of it,
    and `step_ms` its step, 0 for one time alone.
    """

    def __init__(
        self,
        store: Store,
        steps: Ints,
        step_ms: int,
        settings: Settings,
        bounds: tuple[int, int] | None = None,
    ) -> None:
        self.store = store
        self.steps = steps
        self.step_ms = step_ms
        self.settings = settings
        self.bounds = (int(steps[0]), int(steps[-1])) if bounds is None else bounds

    def value(self, expr: Expr) -> Value:
        """What the expression is worth at each step."""
        self._in_time()
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
                return self._selected(expr, self._times(expr.offset_ms, expr.at))[0]
            case Call():
                return self._called(expr)
            case Aggregate():
                return self._aggregated(expr)
            case Binary(left=left, right=right):
                sides = self._operand(left), self._operand(right)
                return combine(expr, *sides, old=self.settings.old)
            case Subquery():
                raise QueryRejected("a subquery has no value of its own: give it to a function")

    def _in_time(self) -> None:
        if monotonic() > self.settings.until:
            raise QueryTimedOut("the query took longer than it is allowed")

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

    def _string(self, expr: Expr) -> str:
        value = self.value(expr)
        if not isinstance(value, String):
            raise QueryRejected("a string was expected")
        return value.value

    def _negated(self, value: Value) -> Value:
        if isinstance(value, Scalar):
            return Scalar(-value.values)
        if isinstance(value, Vector):
            negative = value.with_values(-value.values)
            return _apart(negative) if self.settings.old else settled(negative)
        raise QueryRejected("a string has no negative")

    # --- selectors ---

    def _times(self, offset_ms: int, at: At | None) -> Ints:
        """The time each step looks at."""
        if at is None:
            steps = self.steps
        else:
            fixed = {"start": self.bounds[0], "end": self.bounds[1]}
            moment = fixed[at] if isinstance(at, str) else milliseconds(at)
            steps = np.full(self.steps.size, moment, dtype=np.int64)
        return steps - offset_ms

    def _fetch(self, expr: Selector, first_ms: int, last_ms: int) -> Series:
        matchers = expr.matchers
        if expr.name is not None:
            matchers = (Matcher(NAME, "=", expr.name), *matchers)
        series = self.store.select(matchers, seconds(first_ms), seconds(last_ms))
        self._afford(len(series))
        return series

    def _afford(self, series: int) -> None:
        if series * self.steps.size > MAX_CELLS:
            raise QueryRejected(f"the query needs more than {MAX_CELLS} samples at once")

    def _selected(
        self, expr: Selector, upper_ms: Ints, since_ms: Ints | None = None
    ) -> tuple[Vector, Floats]:
        """The newest sample of each series up to a time at each step, no older than the lookback
        before that (or another) time, and when it was taken."""
        if expr.range_ms is not None:
            raise QueryRejected("a range vector has no value of its own: give it to a function")
        lower_ms = upper_ms if since_ms is None else since_ms
        lower_ms = lower_ms - round(self.settings.lookback_s * 1000)
        series = self._fetch(expr, int(lower_ms.min()), int(upper_ms.max()))
        if not series.values.size:
            return empty(self.steps.size), np.empty((0, self.steps.size))
        lo, hi = windows.spans(
            series, lower_ms / 1000.0, upper_ms / 1000.0, closed=self.settings.old
        )
        there = hi > lo
        last = np.where(there, hi - 1, 0)
        values = series.values[last]
        there &= values.view(np.uint64) != STALE_BITS
        shape = (len(series), self.steps.size)
        vector = Vector(series.labels, values.reshape(shape), there.reshape(shape))
        return vector, series.times[last].reshape(shape)

    def windows(self, expr: Expr, asker: str) -> windows.Windows:
        """The windows of a range vector at every step."""
        ranged = inner(expr)
        if not isinstance(ranged, Subquery) and (
            not isinstance(ranged, Selector) or ranged.range_ms is None
        ):
            raise QueryRejected(f"{asker} needs a range vector")
        assert ranged.range_ms is not None
        ends = self._times(ranged.offset_ms, ranged.at)
        starts = ends - ranged.range_ms
        first, last = int(starts.min()), int(ends.max())
        if isinstance(ranged, Subquery):
            series = self._subquery(ranged, first, last)
        else:
            series = self._fetch(ranged, first, last)
            series = windows.trimmed(series, first / 1000.0, last / 1000.0).without_stale()
        lo, hi = windows.spans(series, starts / 1000.0, ends / 1000.0, closed=self.settings.old)
        return windows.Windows(series, lo, hi, starts, ends, self.steps, self.settings.old)

    def _subquery(self, expr: Subquery, first_ms: int, last_ms: int) -> Series:
        """The inner expression at every multiple of the step within the bounds, as series."""
        step = expr.step_ms or milliseconds(self.settings.subquery_step_s)
        begin = -(-first_ms // step) * step
        if not self.settings.old and begin == first_ms:
            begin += step
        if (last_ms - begin) // step > MAX_SUBQUERY_STEPS:
            raise QueryRejected(f"a subquery has more than {MAX_SUBQUERY_STEPS} steps")
        steps = np.arange(begin, last_ms + 1, step, dtype=np.int64)
        if not steps.size:
            return Series((), np.empty(0), np.empty(0), np.zeros(1, dtype=np.int64))
        below = Evaluation(self.store, steps, step, self.settings, self.bounds)
        value = below.value(expr.expr)
        if isinstance(value, Scalar):
            value = below.as_vector(value.values)
        if isinstance(value, String):
            raise QueryRejected("a subquery of a string has no value")
        self._afford(len(value))
        kept = _apart(value)
        times = np.broadcast_to(steps / 1000.0, kept.present.shape)[kept.present]
        offsets = np.concatenate(([0], np.cumsum(kept.present.sum(axis=1)))).astype(np.int64)
        return Series(kept.labels, times, kept.values[kept.present], offsets)

    # --- calls ---

    def _called(self, expr: Call) -> Value:
        name, args = expr.function, expr.args
        self._allowed(name)
        if name == "absent_over_time":
            return self._absent_over_time(args)
        if name in RANGES:
            return self._ranged(name, args)
        if name in _SPECIAL:
            return _SPECIAL[name](self, args)
        if name in INSTANT:
            return self._instant(INSTANT[name], args)
        if name in CALENDAR:
            return self._dated(name, args)
        if name in _SCALAR:
            return _SCALAR[name](self, args)
        raise QueryRejected(f"the function {name} is not supported")

    def _allowed(self, name: str) -> None:
        if name in NATIVE:
            raise QueryRejected(f"{name} reads native histograms, which are not supported")
        if self.settings.old:
            if name in SINCE_3:
                raise QueryRejected(f"unknown function with name {name!r} in Prometheus 2")
        elif name in EXPERIMENTAL and not self.settings.experimental:
            raise QueryRejected(
                f"the function {name} is experimental and not supported: Prometheus answers it"
                " only with --enable-feature=promql-experimental-functions"
            )

    def _ranged(self, name: str, args: tuple[Expr, ...]) -> Vector:
        """A function of a range vector and of scalars."""
        place = next((i for i, arg in enumerate(args) if _is_range(arg)), 0)
        scalars = [self._scalar(arg) for i, arg in enumerate(args) if i != place]
        found = self.windows(args[place], name)
        result = RANGES[name](found, *scalars)
        labels = found.series.labels
        if name not in windows.KEEP_NAME:
            labels = tuple(map(nameless, labels))
        values, present = result[0].reshape(found.shape), result[1].reshape(found.shape)
        return _apart(Vector(labels, values, present))

    def _instant(self, function: Instant, args: tuple[Expr, ...]) -> Vector:
        vector = self._vector(args[0])
        extra = [self._scalar(arg) for arg in args[1:]]
        values, kept = function(vector.values, *extra)
        named = vector.with_values(values)
        return settled(Vector(named.labels, named.values, named.present & kept))

    def _dated(self, name: str, args: tuple[Expr, ...]) -> Vector:
        """A part of the date; without an argument, of the step's."""
        if not args:
            return self.as_vector(calendar(name, (self.steps // 1000).astype(np.float64)))
        vector = self._vector(args[0])
        return settled(vector.with_values(calendar(name, vector.values)))

    def as_vector(self, values: Floats) -> Vector:
        """One series without labels, with a value at every step."""
        row = np.broadcast_to(values, self.steps.shape)[None, :]
        return Vector(((),), row, np.ones(row.shape, dtype=np.bool_))

    def _ordered(self, args: tuple[Expr, ...], *, descending: bool) -> Vector:
        return ordered(self._vector(args[0]), descending=descending)

    def _by_label(self, args: tuple[Expr, ...], *, descending: bool) -> Vector:
        vector = self._vector(args[0])
        names = [self._string(arg) for arg in args[1:]]

        def key(row: int) -> tuple[list[list[tuple[int, int | str]]], Labels]:
            pairs = dict(vector.labels[row])
            return [relabel.natural(pairs.get(name, "")) for name in names], vector.labels[row]

        return vector.rows(sorted(range(len(vector)), key=key, reverse=descending))

    def _timestamp(self, args: tuple[Expr, ...]) -> Vector:
        """When each sample was taken; of anything but a selector, the step itself."""
        argument = inner(args[0])
        if isinstance(argument, Selector):
            # Beside `@`, Prometheus (2 and 3) looks for the sample at that time without the
            # offset, among samples it has fetched with it.
            plain, moved = (self._times(ms, argument.at) for ms in (0, argument.offset_ms))
            looked = (moved, moved) if argument.at is None else (plain, moved)
            vector, times = self._selected(argument, np.minimum(*looked), np.maximum(*looked))
        else:
            vector = self._vector(argument)
            times = np.broadcast_to(self.steps / 1000.0, vector.values.shape)
        return settled(vector.with_values(times))

    def _absent(self, args: tuple[Expr, ...]) -> Vector:
        return self._missing(args[0], np.any(self._vector(args[0]).present, axis=0))

    def _absent_over_time(self, args: tuple[Expr, ...]) -> Vector:
        found = self.windows(args[0], "absent_over_time")
        return self._missing(args[0], np.any((found.counts > 0).reshape(found.shape), axis=0))

    def _missing(self, expr: Expr, seen: Bools) -> Vector:
        labels = relabel.of_absent(inner(expr))
        if seen.all():
            return empty(self.steps.size)
        return Vector((labels,), np.ones((1, seen.size)), ~seen[None, :])

    def _replaced(self, args: tuple[Expr, ...]) -> Vector:
        target, template, source, pattern = (self._string(arg) for arg in args[1:])
        old, vector = self.settings.old, self._vector(args[0])
        return settled(relabel.replaced(vector, target, template, source, pattern, old=old))

    def _joined(self, args: tuple[Expr, ...]) -> Vector:
        target, between, *sources = (self._string(arg) for arg in args[1:])
        old, vector = self.settings.old, self._vector(args[0])
        return settled(relabel.joined(vector, target, between, tuple(sources), old=old))

    def _quantile(self, args: tuple[Expr, ...]) -> Vector:
        level = self._scalar(args[0])
        outside = np.where(level < 0, -np.inf, np.where(level > 1, np.inf, np.nan))
        measure = histograms.quantile(level, old=self.settings.old)
        return histograms.each(self._vector(args[1]), measure, outside)

    def _fraction(self, args: tuple[Expr, ...]) -> Vector:
        measure = histograms.fraction(self._scalar(args[0]), self._scalar(args[1]))
        outside = np.full(self.steps.size, np.nan)
        return histograms.each(self._vector(args[2]), measure, outside)

    # --- scalars ---

    def _as_scalar(self, args: tuple[Expr, ...]) -> Scalar:
        vector = self._vector(args[0])
        single = vector.present.sum(axis=0) == 1
        total = np.where(vector.present, vector.values, 0.0).sum(axis=0)
        return Scalar(np.where(single, total, np.nan))

    def _constant(self, value: float) -> Scalar:
        return Scalar(np.full(self.steps.size, value))

    # --- aggregations ---

    def _aggregated(self, expr: Aggregate) -> Vector:
        if expr.op not in REDUCTIONS and expr.op not in PARAMETRIC:
            raise QueryRejected(f"the aggregation {expr.op} is not supported")
        param: Floats | str | None = None
        if expr.op == "count_values" and expr.param is not None:
            param = relabel.name_of(self._string(expr.param), old=self.settings.old)
        elif expr.param is not None:
            param = self._scalar(expr.param)
        return aggregate(expr, self._vector(expr.expr), param, old=self.settings.old)


def _is_range(expr: Expr) -> bool:
    bare = inner(expr)
    return isinstance(bare, Subquery) or (isinstance(bare, Selector) and bare.range_ms is not None)


def _apart(vector: Vector) -> Vector:
    """The series that have a sample. Raises QueryRejected where two have the same labels."""
    alive = vector.present.any(axis=1)
    return distinct(vector if alive.all() else vector.rows(np.flatnonzero(alive).tolist()))


_SPECIAL: dict[str, Callable[[Evaluation, tuple[Expr, ...]], Value]] = {
    "vector": lambda e, args: e.as_vector(e._scalar(args[0])),
    "timestamp": Evaluation._timestamp,
    "absent": Evaluation._absent,
    "sort": lambda e, args: e._ordered(args, descending=False),
    "sort_desc": lambda e, args: e._ordered(args, descending=True),
    "sort_by_label": lambda e, args: e._by_label(args, descending=False),
    "sort_by_label_desc": lambda e, args: e._by_label(args, descending=True),
    "label_replace": Evaluation._replaced,
    "label_join": Evaluation._joined,
    "histogram_quantile": Evaluation._quantile,
    "histogram_fraction": Evaluation._fraction,
}
_SCALAR: dict[str, Callable[[Evaluation, tuple[Expr, ...]], Scalar]] = {
    "scalar": Evaluation._as_scalar,
    "time": lambda e, args: Scalar(e.steps / 1000.0),
    "pi": lambda e, args: e._constant(np.pi),
    "start": lambda e, args: e._constant(e.bounds[0] / 1000),
    "end": lambda e, args: e._constant(e.bounds[1] / 1000),
    "range": lambda e, args: e._constant((e.bounds[1] - e.bounds[0]) / 1000),
    "step": lambda e, args: e._constant(e.step_ms / 1000),
    "min_of": lambda e, args: Scalar(lesser(e._scalar(args[0]), e._scalar(args[1]))),
    "max_of": lambda e, args: Scalar(greater(e._scalar(args[0]), e._scalar(args[1]))),
}
SCALARS = frozenset(_SCALAR)
"""Functions that give one number a step."""
KNOWN = frozenset({*RANGES, *_SPECIAL, *_SCALAR, *INSTANT, *CALENDAR})
"""Every function that can be answered, experimental ones among them."""
