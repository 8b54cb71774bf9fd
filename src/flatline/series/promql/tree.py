"""
A PromQL query as values, and its text.

The parser's own objects stop at `parse`: everything else reads, rewrites and renders these.
Durations are whole milliseconds.  `render` writes text that Prometheus reads back as the same
query.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from flatline.series.matching import Matcher

At = float | Literal["start", "end"]
Cardinality = Literal["one-to-one", "many-to-one", "one-to-many", "many-to-many"]

_LEGACY_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_LEGACY_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms"))
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Number:
    value: float


@dataclass(frozen=True, slots=True)
class Text:
    value: str


@dataclass(frozen=True, slots=True)
class Selector:
    """An instant vector, or a range vector where `range_ms` is given. The metric, if named by
    equality, is `name`; any other matcher on it stands in `matchers`."""

    name: str | None
    matchers: tuple[Matcher, ...] = ()
    range_ms: int | None = None
    offset_ms: int = 0
    at: At | None = None


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    op: str
    expr: Expr
    param: Expr | None = None
    labels: tuple[str, ...] = ()
    without: bool = False


@dataclass(frozen=True, slots=True)
class Matching:
    """How two vectors are joined: `on` these labels, or ignoring them."""

    on: bool
    labels: tuple[str, ...]
    card: Cardinality = "one-to-one"
    include: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Binary:
    """`matching` is None where one side is a scalar, and where vectors match on all labels."""

    op: str
    left: Expr
    right: Expr
    returns_bool: bool = False
    matching: Matching | None = None


@dataclass(frozen=True, slots=True)
class Negation:
    expr: Expr


@dataclass(frozen=True, slots=True)
class Paren:
    expr: Expr


@dataclass(frozen=True, slots=True)
class Subquery:
    expr: Expr
    range_ms: int
    step_ms: int | None = None
    offset_ms: int = 0
    at: At | None = None


Expr = Number | Text | Selector | Call | Aggregate | Binary | Negation | Paren | Subquery


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside one."""
    match expr:
        case Call(args=args):
            return args
        case Aggregate(expr=inner, param=param):
            return (inner,) if param is None else (param, inner)
        case Binary(left=left, right=right):
            return left, right
        case Negation(expr=inner) | Paren(expr=inner) | Subquery(expr=inner):
            return (inner,)
        case _:
            return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and everything inside it, outermost first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def inner(expr: Expr) -> Expr:
    """The expression without the parentheses around it."""
    while isinstance(expr, Paren):
        expr = expr.expr
    return expr


# --- back to text -----------------------------------------------------------------------------


def render(expr: Expr) -> str:
    """The query as text, on one line."""
    match expr:
        case Number(value=value):
            return number(value)
        case Text(value=value):
            return quoted(value)
        case Selector():
            return _selector(expr)
        case Call(function=function, args=args):
            return f"{function}({', '.join(map(render, args))})"
        case Aggregate():
            return _aggregate(expr)
        case Binary():
            return f"{render(expr.left)} {expr.op}{_modifier(expr)} {render(expr.right)}"
        case Negation(expr=inside):
            return f"-{render(inside)}"
        case Paren(expr=inside):
            return f"({render(inside)})"
        case Subquery():
            step = "" if expr.step_ms is None else duration(expr.step_ms)
            text = f"{render(expr.expr)}[{duration(expr.range_ms)}:{step}]"
            return text + _shift(expr.offset_ms, expr.at)


def number(value: float) -> str:
    """A number literal; whole ones below 1e15 without a point."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return repr(value)


def quoted(text: str) -> str:
    """A string literal in double quotes."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text) + '"'


def duration(milliseconds: int) -> str:
    """`1h30m`; the sign is kept."""
    sign, rest = ("-", -milliseconds) if milliseconds < 0 else ("", milliseconds)
    parts = []
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return sign + ("".join(parts) or "0s")


def label(name: str) -> str:
    """A label name, quoted where it is not one Prometheus 2 knew."""
    return name if _LEGACY_LABEL.fullmatch(name) else quoted(name)


def _selector(expr: Selector) -> str:
    inside = [f"{label(m.name)}{m.op}{quoted(m.value)}" for m in expr.matchers]
    name = expr.name or ""
    if name and not _LEGACY_METRIC.fullmatch(name):
        inside.insert(0, quoted(name))
        name = ""
    text = name + ("{" + ",".join(inside) + "}" if inside else "")
    if expr.range_ms is not None:
        text += f"[{duration(expr.range_ms)}]"
    return text + _shift(expr.offset_ms, expr.at)


def _shift(offset_ms: int, at: At | None) -> str:
    text = ""
    if at is not None:
        text += f" @ {at}()" if isinstance(at, str) else f" @ {at:.3f}"
    if offset_ms:
        text += f" offset {duration(offset_ms)}"
    return text


def _aggregate(expr: Aggregate) -> str:
    args = [render(expr.expr)] if expr.param is None else [render(expr.param), render(expr.expr)]
    how = ""
    if expr.labels or expr.without:
        word = "without" if expr.without else "by"
        how = f" {word} ({', '.join(map(label, expr.labels))}) "
    return f"{expr.op}{how}({', '.join(args)})"


def _modifier(expr: Binary) -> str:
    text = " bool" if expr.returns_bool else ""
    matching = expr.matching
    if matching is not None:
        word = "on" if matching.on else "ignoring"
        text += f" {word} ({', '.join(map(label, matching.labels))})"
        if matching.card in ("many-to-one", "one-to-many"):
            side = "left" if matching.card == "many-to-one" else "right"
            text += f" group_{side} ({', '.join(map(label, matching.include))})"
    return text
