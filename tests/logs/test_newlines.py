"""Newlines before any place of a block, counted in two ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flatline.logs.newlines import KIB, Newlines, _few, _many


@given(pieces=st.lists(st.sampled_from((b"\n", b"x" * 79 + b"\n", b"\n" * 700, b"y" * 1500))))
def test_both_ways_count_the_same(pieces: list[bytes]) -> None:
    """Whatever the block's length."""
    data = b"".join(pieces)
    assert _many(data) == _few(data)


@pytest.mark.parametrize("large", (False, True))
@pytest.mark.parametrize("row", (b"\n", b"a line of some length\n", b"none"))
def test_any_place_is_counted_up_to(row: bytes, large: bool) -> None:
    """Those of a block that holds nothing else do not overflow what is added at once."""
    data = row * (5 * KIB // len(row) + 3)
    counted = Newlines(data, large)
    for place in (0, 1, KIB - 1, KIB, KIB + 1, 4 * KIB, len(data) - 1, len(data)):
        assert counted.before(place) == data.count(b"\n", 0, place)
