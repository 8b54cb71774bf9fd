"""`Reach` answers as looking at every stream one by one does."""

from __future__ import annotations

from bisect import bisect_right

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
