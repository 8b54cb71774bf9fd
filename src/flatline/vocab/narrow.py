"""A query in the exporters' own names, narrowed to the hosts a run held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from flatline.series.matching import Matcher
from flatline.series.promql.tree import (
    Aggregate,
    Binary,
    Call,
    Expr,
    Negation,
    Paren,
    Selector,
    Subquery,
)

Extra = Callable[[Selector], tuple[Matcher, ...]]
"""The matchers a selector is to have besides its own."""


def narrowed(expr: Expr, extra: Extra) -> Expr:
    """The same query, each of its selectors with what `extra` says."""

    def of(part: Expr) -> Expr:
        return narrowed(part, extra)

    match expr:
        case Selector():
            return replace(expr, matchers=(*expr.matchers, *extra(expr)))
        case Paren() | Negation() | Subquery():
            return replace(expr, expr=of(expr.expr))
        case Call():
            return replace(expr, args=tuple(map(of, expr.args)))
        case Aggregate():
            param = None if expr.param is None else of(expr.param)
            return replace(expr, expr=of(expr.expr), param=param)
        case Binary():
            return replace(expr, left=of(expr.left), right=of(expr.right))
        case _:
            return expr
