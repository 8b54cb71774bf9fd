"""
Label matchers, with the regular expressions Prometheus accepts and no others.

A pattern is anchored at both ends and matched in linear time by Hyperscan, whatever it is: no
pattern and no label value of a hostile file can make it slow.  Where the two languages differ
(RE2 as Prometheus uses it, PCRE as Hyperscan reads it), the construct is translated or refused
by name; none is matched differently.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock
from typing import Literal

from flatline.errors import QueryRejected

Op = Literal["=", "!=", "=~", "!~"]

REPEATS = 200
"""Largest count of `{n,m}` that is compiled: RE2 stops at 1000, but each state costs here."""
_ALTERNATIVES = re.compile(r"[\w:/ @%,;=<>~!#&'\"-]*(?:\|[\w:/ @%,;=<>~!#&'\"-]*)*", re.ASCII)
_SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$])")
_SAFE_ESCAPES = frozenset("dDwWtnrf.*+?()[]{}|^$\\/-")
_SPACE = {"s": r"[\t\n\f\r ]", "S": r"[^\t\n\f\r ]"}
_COUNT = re.compile(r"\{(\d+)(,?)(\d*)\}")
_GROUP = re.compile(r"\(\?(?:P<\w+>|(?:[is]+(?:-[is]+)?|-[is]+)?:|[is]+(?:-[is]+)?\))", re.ASCII)


@dataclass(frozen=True, slots=True)
class Matcher:
    """`name op "value"`; a label that is not there has the value ""."""

    name: str
    op: Op
    value: str


def quoted(text: str) -> str:
    """The pattern of one text."""
    return _SPECIAL.sub(r"\\\1", text)


def one_of(label: str, values: Iterable[str]) -> Matcher:
    """What a label must be that has one of these values."""
    distinct = sorted(set(values))
    if len(distinct) == 1:
        return Matcher(label, "=", distinct[0])
    return Matcher(label, "=~", "|".join(map(quoted, distinct)))


def none_of(label: str, values: Iterable[str]) -> Matcher:
    """What it must be to have none of them."""
    found = one_of(label, values)
    return replace(found, op="!=" if found.op == "=" else "!~")


def accepts(matcher: Matcher) -> Callable[[str], bool]:
    """Whether a label value satisfies the matcher. Raises QueryRejected for its pattern."""
    if matcher.op == "=":
        return lambda value: value == matcher.value
    if matcher.op == "!=":
        return lambda value: value != matcher.value
    test = _pattern(matcher.value)
    if matcher.op == "=~":
        return test
    return lambda value: not test(value)


@lru_cache(maxsize=512)
def _pattern(pattern: str) -> Callable[[str], bool]:
    if _ALTERNATIVES.fullmatch(pattern):
        return frozenset(pattern.split("|")).__contains__
    return _compiled(f"\\A(?:{translated(pattern)})\\z", pattern)


def _compiled(anchored: str, pattern: str) -> Callable[[str], bool]:
    import hyperscan  # here, because most matchers need no pattern

    flags = (
        hyperscan.HS_FLAG_DOTALL
        | hyperscan.HS_FLAG_UTF8
        | hyperscan.HS_FLAG_ALLOWEMPTY
        | hyperscan.HS_FLAG_SINGLEMATCH
    )
    database = hyperscan.Database()
    try:
        database.compile(
            expressions=[anchored.encode("utf-8", "replace")], ids=[0], elements=1, flags=[flags]
        )
    except hyperscan.error as fault:
        raise QueryRejected(f"the pattern {pattern!r} cannot be matched: {fault}") from fault

    scanning = Lock()  # a compiled pattern has one scratch space

    def test(value: str) -> bool:
        found: list[int] = []
        with scanning:
            database.scan(
                value.encode("utf-8", "replace"),
                match_event_handler=lambda *_: found.append(1),
            )
        return bool(found)

    return test


def translated(pattern: str, end: str = r"\z") -> str:
    """The pattern as PCRE that means what RE2 means by it; `end` stands for the text's end."""
    out: list[str] = []
    at = 0
    if not pattern.isascii() and re.search(r"\(\?[s-]*i", pattern):
        raise QueryRejected(f"the pattern {pattern!r} folds the case of non-ASCII text")
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            out.append(_escape(pattern, at))
            at += 2
        elif char == "[":
            text, at = _class(pattern, at)
            out.append(text)
        elif char == "^":
            out.append(r"\A")
            at += 1
        elif char == "$":
            out.append(end)
            at += 1
        elif char == "(":
            text = _group(pattern, at)
            out.append(text)
            at += len(text)
        elif char in "*+?" or (char == "{" and _COUNT.match(pattern, at)):
            text, at = _repeat(pattern, at)
            out.append(text)
        else:
            out.append("\\{" if char == "{" else char)
            at += 1
    return "".join(out)


def _escape(pattern: str, at: int) -> str:
    char = pattern[at + 1 : at + 2]
    if char in _SPACE:
        return _SPACE[char]
    if char in _SAFE_ESCAPES and char:
        return "\\" + char
    raise QueryRejected(f"the pattern {pattern!r} uses \\{char}, which is not supported")


def _group(pattern: str, at: int) -> str:
    if not pattern.startswith("(?", at):
        return "("
    found = _GROUP.match(pattern, at)
    if found is None:
        raise QueryRejected(
            f"the pattern {pattern!r} uses {pattern[at : at + 4]!r}, which is not supported"
        )
    return found[0]


def _repeat(pattern: str, at: int) -> tuple[str, int]:
    """One repetition with its lazy mark; a second one on top of it is refused, as RE2 does."""
    found = _COUNT.match(pattern, at)
    if found is None:
        text = pattern[at]
    else:
        text = found[0]
        if max(int(found[1]), int(found[3] or 0)) > REPEATS:
            raise QueryRejected(f"the pattern {pattern!r} repeats more than {REPEATS} times")
    at += len(text)
    if pattern[at : at + 1] == "?":
        at += 1
    if pattern[at : at + 1] in ("*", "+", "?") or _COUNT.match(pattern, at):
        raise QueryRejected(f"the pattern {pattern!r} repeats a repetition")
    return text, at


def _class(pattern: str, at: int) -> tuple[str, int]:
    """A bracket expression and where it ends; its members are spelled so that PCRE agrees."""
    out = ["["]
    at += 1
    if pattern[at : at + 1] == "^":
        out.append("^")
        at += 1
    first = True
    while at < len(pattern) and (first or pattern[at] != "]"):
        first = False
        char = pattern[at]
        if char == "[":
            if pattern[at + 1 : at + 2] == ":":
                raise QueryRejected(f"the pattern {pattern!r} uses [: :], which is not supported")
            out.append("\\[")
        elif char == "\\":
            out.append(_escape_in_class(pattern, at))
            at += 1
        else:
            out.append("\\]" if char == "]" else char)
        at += 1
    if at >= len(pattern):
        raise QueryRejected(f"the pattern {pattern!r} has a [ that is not closed")
    return "".join(out) + "]", at + 1


def _escape_in_class(pattern: str, at: int) -> str:
    text = _escape(pattern, at)
    if pattern[at + 1] == "S":
        raise QueryRejected(f"the pattern {pattern!r} uses \\S in [ ], which is not supported")
    return text[1:-1] if pattern[at + 1] == "s" else text
