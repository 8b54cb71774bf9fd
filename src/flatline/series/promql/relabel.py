"""
Functions of labels alone: `label_replace`, `label_join`, and the labels of what is absent.
"""

from __future__ import annotations

import re
from functools import lru_cache

from flatline.errors import QueryRejected
from flatline.series.matching import Matcher, accepts, translated
from flatline.series.promql.tree import Selector
from flatline.series.promql.vector import Vector
from flatline.series.storage import NAME, Labels, labels_of

_LEGACY = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_REFERENCE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<braced>\w+)\}|(?P<bare>\w+))", re.ASCII)


def name_of(label: str, *, old: bool) -> str:
    """A label's name, refused where it cannot be one."""
    if not label or (old and not _LEGACY.fullmatch(label)):
        raise QueryRejected(f"invalid label name {label!r}")
    return label


def replaced(
    vector: Vector, target: str, template: str, source: str, pattern: str, *, old: bool
) -> Vector:
    """
    Each series with `target` set to the template where `source` matches the pattern whole.

    Raises QueryRejected for a pattern or label name that cannot be.
    """
    name_of(target, old=old)
    expression = _expression(pattern)
    matches = accepts(Matcher(source, "=~", pattern))
    made: dict[str, str | None] = {}
    out = []
    for labels in vector.labels:
        pairs = dict(labels)
        value = pairs.get(source, "")
        if value not in made:
            found = expression.fullmatch(value) if matches(value) else None
            made[value] = None if found is None else _expanded(template, found)
        new = made[value]
        out.append(labels if new is None else labels_of({**pairs, target: new}))
    return Vector(tuple(out), vector.values, vector.present)


@lru_cache(maxsize=256)
def _expression(pattern: str) -> re.Pattern[str]:
    """The pattern for its groups; that RE2 takes it, `accepts` has seen."""
    accepts(Matcher("", "=~", pattern))
    try:
        text = translated(pattern, end=r"\Z")
        return re.compile(f"(?:{text})", re.DOTALL | re.ASCII)
    except (re.error, RecursionError, OverflowError) as fault:
        raise QueryRejected(f"the pattern {pattern!r} cannot be matched: {fault}") from fault


def _expanded(template: str, found: re.Match[str]) -> str:
    """Go's `Expand`: `$1`, `${1}`, `$name`; what was not matched is empty."""

    def part(reference: re.Match[str]) -> str:
        if reference["dollar"]:
            return "$"
        name = reference["braced"] or reference["bare"]
        if name.isdecimal() and (name == "0" or name[0] != "0"):
            number = int(name[:9])
            return (found[number] or "") if number <= found.re.groups else ""
        return (found[name] or "") if name in found.re.groupindex else ""

    return _REFERENCE.sub(part, template)


def joined(
    vector: Vector, target: str, between: str, sources: tuple[str, ...], *, old: bool
) -> Vector:
    """Each series with `target` set to the values of other labels, joined."""
    for label in (target, *sources):
        name_of(label, old=old)
    out = []
    for labels in vector.labels:
        pairs = dict(labels)
        value = between.join(pairs.get(source, "") for source in sources)
        out.append(labels_of({**pairs, target: value}))
    return Vector(tuple(out), vector.values, vector.present)


def of_absent(expr: object) -> Labels:
    """The labels a selector says its series would have; none for any other expression."""
    if not isinstance(expr, Selector):
        return ()
    pairs: dict[str, str] = {}
    seen: set[str] = set()
    for matcher in expr.matchers:
        if matcher.name == NAME:
            continue
        if matcher.op == "=" and matcher.name not in seen:
            pairs[matcher.name] = matcher.value
            seen.add(matcher.name)
        else:
            pairs.pop(matcher.name, None)
    return labels_of(pairs)


def natural(text: str) -> list[tuple[int, int | str]]:
    """A key by which `n2` stands before `n10`."""
    parts = re.split(r"(\d+)", text)
    return [(0, int(p)) if p.isdecimal() else (1, p) for p in parts if p]
