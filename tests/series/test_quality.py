"""An exporter that serves an old reading again."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flatline.series.quality import Sampled, longest_still, stood_still

TIMES = np.arange(0.0, 1200.0, 10.0)


def noisy(seed: int) -> Sampled:
    return TIMES, 300 + np.random.default_rng(seed).normal(0, 5, TIMES.size)


def frozen(seed: int, start: float, end: float) -> Sampled:
    times, values = noisy(seed)
    held = values.copy()
    held[(times >= start) & (times <= end)] = held[times == start]
    return times, held


def test_a_host_that_stands_still_while_others_move_is_named() -> None:
    """From the last reading that was new to the first that is."""
    found = stood_still({"a": [noisy(1)], "b": [frozen(2, 300, 900)], "c": [noisy(3)]})

    assert list(found) == ["b"]
    start, end = found["b"]
    assert (start, end) == (300.0, 910.0)


def test_one_series_that_moves_shows_the_exporter_alive() -> None:
    """An idle GPU beside a busy one."""
    assert stood_still({"a": [noisy(1)], "b": [frozen(2, 0, 1190), noisy(4)]}) == {}


def test_where_all_stand_still_nothing_is_said() -> None:
    """A cluster at rest."""
    still = (TIMES, np.full(TIMES.size, 61.0))

    assert stood_still({"a": [still], "b": [still]}) == {}


@given(st.integers(0, 60), st.integers(0, 60))
def test_a_standstill_is_found_exactly_where_it_lasts(first: int, length: int) -> None:
    """And never one shorter than five minutes."""
    start, end = first * 10.0, min(1190.0, (first + length) * 10.0)
    found = longest_still([frozen(5, start, end)])

    if found is not None:
        assert found[0] == start
    assert (found is not None) == (min(end + 10.0, TIMES[-1]) - start >= 300.0)
