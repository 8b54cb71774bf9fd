"""
Text to a query, through the `promql-parser` package.

The package parses PromQL but is not safe on its own: thousands of chained operators overflow
its stack and end the process, it reads a negative `@` as 0, and it unescapes raw strings.  So
the text is scanned first: size and nesting are bounded, string literals are decoded by Go's
rules and written again in one plain form, and a negative `@` is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any

import promql_parser as parser

from flatline.errors import QueryRejected
from flatline.series.matching import Matcher, Op
from flatline.series.promql.tree import (
    Aggregate,
    At,
    Binary,
    Call,
    Cardinality,
    Expr,
    Matching,
    Negation,
    Number,
    Paren,
    Selector,
    Subquery,
    Text,
    quoted,
)

CODE_CHARS = 16_384
STRING_CHARS = 1 << 20
OPERATORS = 256
DEPTH = 64
"""Bounds of a query: none of ours comes near, and the parser's own stack holds far more."""

_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*)
      | (?P<open>[(\[{]) | (?P<close>[)\]}])
      | (?P<at>@\s*(?P<minus>-)?)
      | (?P<operator>[-+*/%^<>=!]+ | \b(?:and|or|unless|atan2)\b)
      | (?P<quote>["'`])
      | (?P<rest>[^#()\[\]{}@+*/%^<>=!"'`\w-]+ | \w+)""",
    re.VERBOSE | re.IGNORECASE,
)
_ESCAPE = re.compile(
    r"""\\(?:(?P<plain>[abfnrtv\\'"])|x(?P<hex>[0-9a-fA-F]{2})|(?P<octal>[0-7]{3})
      |u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|(?P<bad>.|$))""",
    re.VERBOSE | re.DOTALL,
)
_RENAMED = {
    "holt_winters": "double_exponential_smoothing",
    "double_exponential_smoothing": "double_exponential_smoothing_of_3",
}
_PLAIN = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OPS: dict[str, Op] = {
    "MatchOp.Equal": "=",
    "MatchOp.NotEqual": "!=",
    "MatchOp.Re": "=~",
    "MatchOp.NotRe": "!~",
}
_CARDS: dict[str, Cardinality] = {
    "VectorMatchCardinality.OneToOne": "one-to-one",
    "VectorMatchCardinality.ManyToOne": "many-to-one",
    "VectorMatchCardinality.OneToMany": "one-to-many",
    "VectorMatchCardinality.ManyToMany": "many-to-many",
}


@lru_cache(maxsize=1024)
def parse(text: str, compat: int = 3) -> Expr:
    """
    The query. Raises QueryRejected where it is no PromQL, or too large to be looked at.

    With `compat` 2, `holt_winters` is the function that Prometheus 3 has renamed.
    """
    plain = _scanned(text, _RENAMED if compat == 2 else {})
    try:
        parsed = parser.parse(plain)
    except ValueError as fault:
        raise QueryRejected(f"{_shown(text)} is no PromQL: {fault}") from fault
    return _tree(parsed)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 200 else text[:200] + "…")


# --- before the parser --------------------------------------------------------------------------


def _scanned(text: str, renamed: Mapping[str, str]) -> str:
    """The text with comments gone, strings in plain form and words renamed."""
    out: list[str] = []
    at = code = strings = operators = depth = deepest = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise QueryRejected(f"{_shown(text)} has {text[at]!r} where PromQL has none")
        kind = found.lastgroup
        at = found.end()
        piece = found[0]
        if kind == "quote":
            value, at = _string(text, at, piece)
            strings += len(value)
            piece = quoted(value)
        elif kind == "comment":
            piece = " "
        elif kind in ("at", "minus") and found["minus"]:
            raise QueryRejected("a negative @ time is not supported")
        else:
            code += len(piece)
            operators += len(piece) if kind == "operator" else 0
            depth += (kind == "open") - (kind == "close")
            deepest = max(deepest, depth)
            piece = renamed.get(piece, piece)
        out.append(piece)
    if code > CODE_CHARS or strings > STRING_CHARS or operators > OPERATORS or deepest > DEPTH:
        raise QueryRejected(f"the query {_shown(text)} is too large")
    return "".join(out)


def _string(text: str, start: int, quote: str) -> tuple[str, int]:
    """The value of the literal that opened before `start`, and where it ends."""
    at = start
    while at < len(text) and text[at] != quote:
        if text[at] == "\n" and quote != "`":
            break
        at += 2 if text[at] == "\\" and quote != "`" else 1
    if at >= len(text) or text[at] != quote:
        raise QueryRejected(f"{_shown(text)} has a string that is not closed")
    raw = text[start:at]
    if quote == "`":
        return raw, at + 1
    return _ESCAPE.sub(_unescaped, raw), at + 1


def _unescaped(found: re.Match[str]) -> str:
    if found["plain"]:
        return _PLAIN.get(found["plain"], found["plain"])
    digits = found["hex"] or found["short"] or found["long"]
    code = int(digits, 16) if digits else int(found["octal"], 8) if found["octal"] else -1
    is_byte = found["hex"] is not None or found["octal"] is not None
    if code < 0 or code > 0x10FFFF or 0xD800 <= code < 0xE000 or (is_byte and code > 0x7F):
        raise QueryRejected(f"the escape {found[0]!r} in a string is not supported")
    return chr(code)


# --- after it -----------------------------------------------------------------------------------


def _tree(node: Any) -> Expr:
    """The parser's node as ours."""
    convert = _NODES.get(type(node))
    if convert is None:
        raise QueryRejected(f"{type(node).__name__} is not supported")
    return convert(node)


def _subquery(node: Any) -> Subquery:
    step_ms = None if node.step is None else _ms(node.step)
    return Subquery(_tree(node.expr), _ms(node.range), step_ms, _ms(node.offset), _at(node.at))


def _ms(value: timedelta | None) -> int:
    return 0 if value is None else round(value / timedelta(milliseconds=1))


def _at(modifier: Any) -> At | None:
    if modifier is None:
        return None
    if modifier.type == parser.AtModifierType.Start:
        return "start"
    if modifier.type == parser.AtModifierType.End:
        return "end"
    return float(modifier.at.timestamp())


def _selector(node: Any, range_ms: int | None) -> Selector:
    if node.matchers.or_matchers:
        raise QueryRejected("`or` between label matchers is not supported")
    matchers = [Matcher(m.name, _OPS[str(m.op)], m.value) for m in node.matchers.matchers]
    name = node.name
    if name is None:
        exact = [m for m in matchers if m.name == "__name__" and m.op == "="]
        if len(exact) == 1:
            name = exact[0].value
            matchers.remove(exact[0])
    return Selector(name, tuple(matchers), range_ms, _ms(node.offset), _at(node.at))


def _aggregate(node: Any) -> Aggregate:
    modifier = node.modifier
    return Aggregate(
        op=str(node.op),
        expr=_tree(node.expr),
        param=None if node.param is None else _tree(node.param),
        labels=() if modifier is None else tuple(modifier.labels),
        without=modifier is not None and modifier.type == parser.AggModifierType.Without,
    )


def _binary(node: Any) -> Binary:
    modifier = node.modifier
    returns_bool = modifier is not None and bool(modifier.return_bool)
    matching = None
    if modifier is not None:
        fill = modifier.fill_values
        if fill is not None and (fill.lhs is not None or fill.rhs is not None):
            raise QueryRejected("fill() between vectors is not supported")
        how = modifier.matching
        card = _CARDS[str(modifier.card)]
        if how is not None or card in ("many-to-one", "one-to-many"):
            matching = Matching(
                on=how is not None and how.type == parser.LabelModifierType.Include,
                labels=() if how is None else tuple(how.labels),
                card=card,
                include=tuple(modifier.group_labels or ()),
            )
    return Binary(str(node.op), _tree(node.lhs),
                  _tree(node.rhs), returns_bool, matching)  # fmt: skip


_NODES: dict[type, Callable[[Any], Expr]] = {
    parser.NumberLiteral: lambda node: Number(float(node.val)),
    parser.StringLiteral: lambda node: Text(node.val),
    parser.VectorSelector: lambda node: _selector(node, None),
    parser.MatrixSelector: lambda node: _selector(node.vector_selector, _ms(node.range)),
    parser.Call: lambda node: Call(node.func.name, tuple(map(_tree, node.args))),
    parser.AggregateExpr: _aggregate,
    parser.BinaryExpr: _binary,
    parser.UnaryExpr: lambda node: Negation(_tree(node.expr)),
    parser.ParenExpr: lambda node: Paren(_tree(node.expr)),
    parser.SubqueryExpr: _subquery,
}
