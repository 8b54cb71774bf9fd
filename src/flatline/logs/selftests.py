"""What a program prints while it tests itself: errors that a test which passed was about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_TEST = (
    r"(?:self|unit|smoke|sanity|integration|regression|health|pre-?flight|loop-?back|fault|error)"
    r"[ _-]?(?:tests?|checks?|injection|drill)|pre-?flight|doctests?|tests|fire drill"
)
_LASTING = (
    r"(?:threads?|servers?|endpoints?|loops?|services?|daemons?|monitors?|probes?|ports?|every)\b"
)
"""What answers for as long as the program runs is no test that begins and passes."""
_BEGINS = re.compile(
    rf"\b(?:run|runs|running|start|starting|started|begin|beginning|executing|performing|entering)\b"
    rf".{{0,60}}?\b(?P<test>{_TEST})\b(?! {_LASTING})"
    rf"|\b(?P<told>{_TEST})\b.{{0,60}}?(?:\b(?:begins?|begun|starts?|started|starting|running)\b|(?:\.{{3}}|:)$)"
    rf"|^\W{{2,80}}(?P<headed>{_TEST})\b[^.:]{{0,60}}\W{{2,80}}$"
    r"|^=+ test session starts =+$|^\[ RUN {6}\] ",
    re.IGNORECASE,
)
_PASSED = re.compile(
    rf"\b(?P<test>{_TEST})\b.{{0,80}}?(?:\b(?:passed|passes|pass(?=\W*$)|succeeded|successful|successfully)\b"
    r"|\bOK\b|\bas expected\b)"
    r"|\ball (?:\d{1,6} )?(?:\w{1,20} )?(?:tests|checks) (?:have )?(?:passed|succeeded|OK)\b"
    r"|^=+ .{0,80}\b\d{1,6} passed\b.{0,80} =+$|^\[ {7}OK \] |^OK(?: \(.{1,60}\))?$",
    re.IGNORECASE,
)
_FAILED = re.compile(r"\b[1-9]\d* (?:failed|errors?|failures?)\b|\bfail(?:s|ed|ures?)?\b(?!: 0)"
                     r"|\bnot (?:pass|ok)", re.IGNORECASE)  # fmt: skip
_PART = re.compile(r"\b(\d{1,6})(?:/| of (?:the )?)(\d{1,6})\b")
_STEP = re.compile(r"\bstep[ =:]{0,3}\d|\d/\d+ \[|\bloss[ =:]{1,3}\d", re.IGNORECASE)

_ITEM = re.compile(r"\.py(?:::\S{1,200})? (?:PASSED|XFAIL|XPASS|SKIPPED|[.xsX]{1,80}(?: |$))")
"""One of pytest's tests, within its session."""

ENDED = re.compile(
    r"\bexit(?:ed)? (?:with )?(?:exit )?(?:code|status):? ?[1-9]|\bexitcode ?: -?[1-9]",
    re.IGNORECASE,
)
"""What a launcher says of a program that failed."""

_MAY_BEGIN = (b"test", b"check", b"drill", b"inject", b"flight", b"[ run")
"""One of these stands in every line by which a test begins."""


def may_begin(lines: Sequence[bytes]) -> bool:
    """Whether a test may begin in one of these lines; told in a tenth of the time of looking."""
    low = b"\n".join(lines).lower()
    return any(word in low for word in _MAY_BEGIN)


def within_a_test(above: Iterable[str], below: Iterable[str]) -> bool:
    """Whether a line between others, the nearest first, was printed by a test of the program that
    is seen to begin and to pass: one that met the error in earnest does not pass."""
    begun = _first(_BEGINS, _PASSED, above)
    passed = _first(_PASSED, _BEGINS, below) if begun is not None else None
    if begun is None or passed is None or _FAILED.search(passed.string):
        return False
    if any(int(some) < int(all_) for some, all_ in _PART.findall(passed.string)):
        return False
    names = _name(begun), _name(passed)
    return "" in names or names[0] == names[1]


def _first(wanted: re.Pattern[str], other: re.Pattern[str], lines: Iterable[str]) -> (
    re.Match[str] | None
):  # fmt: skip
    """The nearest line of one kind, where none of another and no step stands before it."""
    for text in lines:
        if _ITEM.search(text):
            continue
        if found := wanted.search(text):
            return found
        if other.search(text) or _STEP.search(text):
            return None
    return None


def _name(found: re.Match[str]) -> str:
    """What kind of test it was; "" where the line does not say."""
    said = next((name for name in found.groupdict().values() if name), "")
    return re.sub(r"[ _-]|s$", "", said.lower())
