"""Ragged arrays, and stores of them."""

from __future__ import annotations

import numpy as np

from flatline.series.matching import Matcher
from flatline.series.storage import STALE, STALE_BITS, MemoryStore, labels_of, series_of

ROWS = [
    ({"__name__": "a", "host": "n1"}, [(0.0, 1.0), (15.0, 2.0)]),
    ({"__name__": "b", "host": "n1", "gpu": "0"}, []),
    ({"__name__": "a", "host": "n2"}, [(0.0, 3.0)]),
]


def test_a_series_is_a_slice_between_offsets() -> None:
    """One that has no samples is empty, and the next begins where it ends."""
    series = series_of(ROWS)

    assert series.offsets.tolist() == [0, 2, 2, 3]
    assert series.values.tolist() == [1, 2, 3]


def test_the_stale_marker_keeps_its_bits() -> None:
    """It is told from any other NaN by them, and stripped for range functions."""
    series = series_of([({"__name__": "a"}, [(0.0, 1.0), (1.0, STALE), (2.0, float("nan"))])])

    assert int(series.values.view(np.uint64)[1]) == STALE_BITS
    assert len(series.without_stale().values) == 2


def test_a_store_selects_by_every_matcher() -> None:
    """In the order the series came."""
    store = MemoryStore(series_of(ROWS))

    found = store.select((Matcher("__name__", "=", "a"), Matcher("host", "!=", "n1")), 0, 1)

    assert found.labels == (labels_of({"__name__": "a", "host": "n2"}),)


def test_a_store_knows_what_it_holds() -> None:
    """Metrics with the labels seen on them, and the time they span."""
    store = MemoryStore(series_of(ROWS))

    assert store.names() == {"a": {"host"}, "b": {"host", "gpu"}}
    assert store.span == (0.0, 15.0)
