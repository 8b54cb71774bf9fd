"""How far streams had come by a moment, where not all of their points are dated."""

from __future__ import annotations

from math import nan

import pytest

from flatline.tracks import Reach


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
