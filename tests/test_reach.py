"""`Reach` answers as looking at every stream one by one does."""

from __future__ import annotations

from bisect import bisect_right
from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flatline.tracks import Reach

streams = st.lists(
    st.tuples(st.sampled_from("abc"), st.lists(st.integers(0, 30), max_size=12).map(sorted)),
    max_size=8,
)


@given(streams, st.integers(-1, 31), st.sampled_from([None, "a", "b"]))
def test_reach_is_the_best_of_all_streams(
    made: list[tuple[str, list[int]]], value: int, without: str | None
) -> None:
    reach = Reach(made)
    others = [values for owner, values in made if owner != without]
    before = [bisect_right(values, value) for values in others]
    after = [len(values) - bisect_right(values, value) for values in others]
    assert reach.before(value, without) == max(before, default=None)
    assert reach.after(value, without) == max(after, default=None)


@pytest.mark.parametrize(
    ("stream", "before", "after"),
    [
        ([10.0, 20.0, 30.0, 40.0], 2, 2),
        ([nan, 20.0, 30.0, 40.0], 1, 2),
        ([10.0, nan, 30.0, 40.0], 1, 2),
        ([10.0, 20.0, 30.0, nan], None, None),
        ([nan, nan, nan, 40.0], None, None),
    ],
    ids=["all", "not its first", "one within", "not its last", "few"],
)
def test_points_on_either_side(stream: list[float], before: int | None, after: int | None) -> None:
    """A stream that goes on without dates cannot tell that nothing came after."""
    reach = Reach([("a.log", stream)])

    assert (reach.before(25.0), reach.after(25.0)) == (before, after)
    assert reach.after(25.0, without="a.log") is None
