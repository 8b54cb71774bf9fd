"""Patterns widened for raw bytes: nothing that matches is missed, little that does not is kept."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flatline.errors import CatalogueError
from flatline.logs.prefilter import prefilter


def proposes(pattern: str, raw: bytes) -> bool:
    one = prefilter(pattern)
    flags = re.MULTILINE | (re.IGNORECASE if one.caseless else re.NOFLAG)
    return re.search(one.pattern.encode(), raw, flags) is not None


@pytest.mark.parametrize(
    ("pattern", "widened"),
    (
        (r"NCCL WARN .*", r"NCCL\x20WARN\x20"),
        (r".*Killed", r"Killed"),
        (r"(?P<n>\d+)% done(?: .{0,40})?", r"[0-9]\x25\x20done"),
        (r"ab{2,5}", r"ab{2}"),
        (r"^.*foo.*$", r"foo"),
        (r"x(?=y)(?!z)", r"x"),
        (r"a(?:b|c\d*)", r"a(?:b|c)"),
        (r"━+\d", r"\xe2\x94\x81[0-9]"),
    ),
)
def test_what_may_be_left_out_is_left_out(pattern: str, widened: str) -> None:
    """An engine that reports every end of a match has one to report."""
    assert prefilter(pattern).pattern == widened


@pytest.mark.parametrize(
    "raw", (b"Killed", b"3: Killed", b"[rank1]: Killed  ", b"a\n[default0]:Killed\nb")
)
def test_an_anchor_holds_behind_a_label(raw: bytes) -> None:
    """A label stands before what `^` means, blanks may stand before `$`."""
    assert proposes(r"^Killed$", raw)


@pytest.mark.parametrize("raw", (b"notKilled", b"Killed by", b"3: was_Killed"))
def test_an_anchor_still_discriminates(raw: bytes) -> None:
    """Not everything is a label."""
    assert not proposes(r"^Killed$", raw)


@pytest.mark.parametrize(
    "pattern", (r"a.*b", r"a\s+b", r"a[^x]b", r"a\Wb", r"a\Db", r"(?s)a.b", r"a(\S*)\s*\1b")
)
def test_no_match_reaches_over_a_line_break(pattern: str) -> None:
    """Neither over a newline nor over a carriage return."""
    assert not proposes(pattern, b"a\nb")
    assert not proposes(pattern, b"a\rb")


@pytest.mark.parametrize(
    "pattern", (r"a.b", r"a[^x]b", r"a\Sb", r"^a.{1,2}b$", r"a[é━]b", r"a(?:━|x)b", r"a\w*.b")
)
def test_a_character_may_be_several_bytes(pattern: str) -> None:
    """What `.` matches in the text it matches in the bytes."""
    for text in ("a━b", "aéb"):
        if re.search(pattern, text, re.ASCII):
            assert proposes(pattern, text.encode())


def test_case_is_ignored_where_the_pattern_ignores_it() -> None:
    """For the whole pattern or a part of it."""
    assert proposes(r"(?i)out of memory", b"Out Of Memory")
    assert proposes(r"a(?i:bc)d", b"aBCd")
    assert not proposes(r"a(?i:bc)d", b"ABCd")


@pytest.mark.parametrize(
    ("pattern", "why"),
    (
        (r"a*", "empty text"),
        (r"^$", "empty text"),
        (r"(?=.*x)", "empty text"),
        (r"a\nb", "one line"),
        (r"[\r\n]", "one line"),
        (r"(unclosed", "unterminated"),
    ),
)
def test_what_cannot_be_scanned_for_is_refused(pattern: str, why: str) -> None:
    """With the pattern and the reason."""
    with pytest.raises(CatalogueError, match=why):
        prefilter(pattern)


PIECES = st.sampled_from(
    (r"a", r"b", r"ab", r"\d", r"\d+", r"\w+", r"\s", r"\s*", r".", r".*", r".{1,3}", r"[^b]",
     r"[ab:]", r"(a|bc)", r"(?:a|b)?", r"\b", r"(?i:A)", r"b{2,3}", r"\S+", r": ",
     r"(?:\d+,)*", r"é")
)  # fmt: skip
PATTERNS = st.builds(
    lambda start, pieces, end: start + "".join(pieces) + end,
    st.sampled_from(("", "^", "(?i)", r"\b")),
    st.lists(PIECES, min_size=1, max_size=6),
    st.sampled_from(("", "$", r"\b")),
)
TEXTS = st.text(st.sampled_from("aAbBc1 2:,é━_\t"), max_size=24).map(str.rstrip)


@given(PATTERNS, TEXTS)
def test_nothing_that_matches_is_missed(pattern: str, text: str) -> None:
    """For any pattern that is not refused and any line, label or not."""
    try:
        prefilter(pattern)
    except CatalogueError:
        return
    if re.search(pattern, text, re.ASCII):
        assert proposes(pattern, text.encode())
        assert proposes(pattern, b"before\n12: " + text.encode() + b"  \nafter")
