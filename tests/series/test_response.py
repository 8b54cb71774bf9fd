"""Answers as Prometheus's HTTP API writes them."""

from __future__ import annotations

import pytest
from series_text import store

from flatline.series.promql import response
from flatline.series.promql.evaluate import instant, over, samples
from flatline.series.storage import MemoryStore, series_of


@pytest.mark.parametrize(
    ("value", "text"),
    [(3.0, "3"), (0.1, "0.1"), (-0.0, "-0"), (1e20, "100000000000000000000"), (1e21, "1e+21"),
     (2e-6, "0.000002"), (1.5e-7, "1.5e-07"), (float("inf"), "+Inf"), (float("-inf"), "-Inf"),
     (float("nan"), "NaN"), (1 / 3, "0.3333333333333333"), (12345678.5, "12345678.5")],
)  # fmt: skip
def test_values_are_spelled_as_go_spells_them(value: float, text: str) -> None:
    """The shortest decimal that reads back; alone and among others."""
    data = MemoryStore(series_of([({"__name__": "a"}, [(0.0, 1.0), (15.0, value)])]))

    alone = response.at_once(instant("a", data, 15))
    whole = response.over_range(over("a", data, 0, 15, 15))

    assert alone["result"][0]["value"] == [15, text]
    assert whole["result"][0]["values"] == [(0, "1"), (15, text)]


def test_times_are_seconds_with_milliseconds_where_there_are_any() -> None:
    """And a series has no value where it has none."""
    found = response.over_range(over("a", store("a 1 _ 3", every=0.5), 0.5, 1.25, 0.25))

    assert found["result"] == [{"metric": {"__name__": "a"}, "values": [
        (0.5, "1"), (0.75, "1"), (1, "3"), (1.25, "3"),
    ]}]  # fmt: skip


def test_a_range_vector_is_a_matrix_of_its_own_times() -> None:
    """Those of the samples."""
    found = response.of_samples(samples("a[30s]", store("a 1 2 3"), 31))

    assert found["resultType"] == "matrix"
    assert found["result"][0]["values"] == [(15, "2"), (30, "3")]
