"""Label matchers: RE2's meaning, in linear time."""

from __future__ import annotations

import time

import pytest

from flatline.errors import QueryRejected
from flatline.series.matching import Matcher, accepts


@pytest.mark.parametrize(
    ("pattern", "value", "holds"),
    [
        ("a|b", "b", True),
        ("n[0-9]+", "n12", True),
        ("n[0-9]+", "n12\n", False),
        (".*x", "line\nx", True),
        ("^a$", "a", True),
        ("(?i)gpu", "GPU", True),
        (r"\d{2,3}", "123", True),
        (r"[\s\]-]+", "] -", True),
        ("[^]a]", "]", False),
        ("", "", True),
        ("a|", "", True),
        ("x{", "x{", True),
        ("é.", "éx", True),
    ],
)
def test_patterns_mean_what_they_mean_in_prometheus(pattern: str, value: str, holds: bool) -> None:
    """Anchored at both ends, `.` takes a newline, `$` is the very end."""
    assert accepts(Matcher("l", "=~", pattern))(value) is holds
    assert accepts(Matcher("l", "!~", pattern))(value) is not holds


@pytest.mark.parametrize(
    "pattern",
    [r"(?=a)", r"(a)\1", "a++", "a**", "(?x) a", r"\pL", "[[:alpha:]]", "a{999}", "[a", r"\Qa\E"],
)
def test_what_the_two_languages_read_differently_is_refused(pattern: str) -> None:
    """By name, rather than matched another way."""
    with pytest.raises(QueryRejected, match="pattern"):
        accepts(Matcher("l", "=~", pattern))


def test_no_pattern_is_slow() -> None:
    """Nested repetition over a long value takes no exponential time."""
    test = accepts(Matcher("l", "=~", "(a+)+b"))
    begun = time.perf_counter()

    assert not test("a" * 50_000)
    assert time.perf_counter() - begun < 1.0
