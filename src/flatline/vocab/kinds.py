"""
What a canonical expression is in: which labels its series have, and which unit its values.
"""

from __future__ import annotations

from flatline.series.promql.tree import (
    Aggregate,
    Binary,
    Call,
    Expr,
    Negation,
    Number,
    Paren,
    Selector,
    Subquery,
    Text,
)
from flatline.signals import SIGNALS

LINEAR = frozenset(
    {
        "avg_over_time",
        "min_over_time",
        "max_over_time",
        "sum_over_time",
        "last_over_time",
        "stddev_over_time",
        "quantile_over_time",
        "delta",
        "idelta",
        "increase",
        "rate",
        "irate",
        "deriv",
        "predict_linear",
    }
)
"""Functions of a range whose result scales with its samples, for a factor above zero."""
COUNTING = frozenset({"count_over_time", "present_over_time", "changes", "resets", "timestamp"})
"""Functions whose result does not change with the unit of the samples."""
NOT_OF_MEANS = frozenset(
    {
        "min_over_time",
        "max_over_time",
        "stddev_over_time",
        "quantile_over_time",
        "changes",
        "resets",
    }
)
"""Functions whose mean over the parts of a device is not that of the device's mean."""
PER_SECOND = frozenset({"rate", "irate", "deriv"})
SAME_UNIT = frozenset(
    {"abs", "ceil", "floor", "round", "clamp", "clamp_min", "clamp_max", "scalar", "sort"}
    | {"sort_desc"}
)
_COMPARISON = frozenset({"==", "!=", ">", "<", ">=", "<="})


def labels_of_result(expr: Expr) -> frozenset[str] | None:
    """The canonical labels of a vector's series; None for a scalar or a string."""
    match expr:
        case Number() | Text():
            return None
        case Paren(expr=inside) | Negation(expr=inside) | Subquery(expr=inside):
            return labels_of_result(inside)
        case Selector(name=name):
            signal = SIGNALS.get(name or "")
            return frozenset() if signal is None else frozenset(signal.labels)
        case Aggregate():
            of_each = labels_of_result(expr.expr) or frozenset()
            if expr.op in ("topk", "bottomk"):
                return of_each
            return of_each - set(expr.labels) if expr.without else frozenset(expr.labels)
        case Binary():
            return _joined(expr)
        case Call(function=function, args=args):
            if function in ("scalar", "time"):
                return None
            if function == "vector":
                return frozenset()
            found = [labels for arg in args if (labels := labels_of_result(arg)) is not None]
            return found[0] if found else None


def _joined(expr: Binary) -> frozenset[str] | None:
    left, right = labels_of_result(expr.left), labels_of_result(expr.right)
    if left is None or right is None:
        return right if left is None else left
    if expr.op == "or":
        return left | right
    matching = expr.matching
    if expr.op in ("and", "unless") or matching is None:
        return left
    if matching.card == "one-to-one":
        chosen = frozenset(matching.labels)
        return chosen if matching.on else left - chosen
    many = left if matching.card == "many-to-one" else right
    return many | frozenset(matching.include)


def unit_of(expr: Expr) -> str:
    """The unit of the values, "" where it is none of ours."""
    match expr:
        case Paren(expr=inside) | Negation(expr=inside) | Subquery(expr=inside):
            return unit_of(inside)
        case Selector(name=name):
            signal = SIGNALS.get(name or "")
            return "" if signal is None else signal.unit
        case Aggregate():
            return "count" if expr.op in ("count", "group") else unit_of(expr.expr)
        case Binary():
            return _unit_of_binary(expr)
        case Call():
            return _unit_of_call(expr)
        case _:
            return ""


def _unit_of_call(expr: Call) -> str:
    if expr.function in ("time", "timestamp"):
        return "seconds"
    if expr.function in COUNTING:
        return "count"
    units = [unit_of(arg) for arg in expr.args if not isinstance(arg, Number)]
    unit = units[0] if units else ""
    if expr.function in PER_SECOND:
        return f"{unit}/s" if unit else ""
    return unit if expr.function in LINEAR | SAME_UNIT else ""


def _unit_of_binary(expr: Binary) -> str:
    left, right = unit_of(expr.left), unit_of(expr.right)
    if expr.op in _COMPARISON:
        return "flag" if expr.returns_bool else left or right
    if expr.op in ("and", "or", "unless"):
        return left
    if expr.op in ("+", "-"):
        return left or right
    if expr.op == "/" and left and left == right:
        return "ratio"
    if expr.op in ("*", "/", "%") and isinstance(expr.right, Number):
        return left
    if expr.op == "*" and isinstance(expr.left, Number):
        return right
    return ""
