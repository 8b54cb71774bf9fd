"""What every pattern needs for the scan to stay fast: a text, and no count before it."""

from __future__ import annotations

from collections.abc import Iterable
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser
from typing import Any

import pytest

from flatline import parsers, signatures
from flatline.logs.prefilter import prefilter

LEAST = 4
"""Bytes.  The first text of a length, and of two or three above all, takes a group of the engine's
from those of eight bytes: a tenth of its time in all logs."""
LET_THROUGH = {
    r"[0-9]:[ -?]{2}'\]": "its two bytes close a list of texts, which few lines hold",
    r"\] [ -?]{3}%\|": "its two bytes stand in bars alone",
    r"[0-9.]G  [0-9.naif]": "its digits are spelled out",
    r"\b(?:[Rr]ank|RANK)=": "its letters of either case are spelled out",
    r"\b(?:ep_ret|epret)": "both are spelled out",
    r"(?i:\b(?:running|starting|": "what stands behind two bytes of `val` is spelled out",
    r"(?:\bgc: |": "its two bytes, in capitals, are a word of its own",
    r"[0-9]+/[0-9]+ +[0-9.]+G   +": "G and three blanks are its text",
}
"""By their beginnings: measured, and found to cost nothing."""


def text_of(items: Iterable[tuple[Any, Any]]) -> tuple[int, bool]:
    """The longest text that every match holds, in bytes, and whether a count of any length stands
    before the first of `LEAST`."""
    longest = run = 0
    counted = late = False
    for op, value in items:
        text, inner = 0, False
        run = run + 1 if op is sre.LITERAL else 0
        if op is sre.LITERAL:
            text = run
        elif op is sre.SUBPATTERN:
            text, inner = text_of(value[-1])
        elif op is sre.BRANCH:
            each = [text_of(branch) for branch in value[1]]
            text, inner = min(one for one, _ in each), any(one for _, one in each)
        elif op is sre.MAX_REPEAT and value[0] > 0:
            text, inner = text_of(value[2])
        if longest < LEAST:
            late = late or inner or (counted and text >= LEAST)
            counted = counted or (op is sre.MAX_REPEAT and value[1] is sre.MAXREPEAT)
        longest = max(longest, text)
    return longest, late


@pytest.mark.parametrize(
    ("pattern", "found"),
    (
        (r"\[ *[0-9]+\] +[0-9]+ \|\| [A-Z]: ", (4, True)),
        (r"[0-9] \|\| [A-Z]: ", (4, False)),
        (r"epoch +train_loss", (10, False)),
        (r"[0-9]+%\|", (2, False)),
        (r"(?:one|three) .*x", (3, False)),
        (r"(?:of|three)+ .*more", (4, True)),
    ),
)
def test_the_text_of_a_pattern_is_found(pattern: str, found: tuple[int, bool]) -> None:
    """And the counts before it."""
    assert text_of(_parser.parse(prefilter(pattern).pattern)) == found


def test_every_pattern_has_a_text_without_a_count_before_it() -> None:
    """An automaton that may begin anywhere runs over everything."""
    slow = set()
    known = [one.pattern for one in signatures.load()]
    known += [trigger for one in parsers.line_formats() for trigger in one.TRIGGERS]
    for pattern in known:
        longest, late = text_of(_parser.parse(prefilter(pattern).pattern))
        if longest < LEAST or late:
            slow.add(next((one for one in LET_THROUGH if pattern.startswith(one)), pattern))

    assert slow == set(LET_THROUGH)
