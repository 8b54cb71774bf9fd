"""PromQL answers, computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from series_text import at, named, store

from flatline.errors import QueryRejected
from flatline.series.promql.evaluate import MAX_STEPS, Settings, instant, over
from flatline.series.storage import MemoryStore, Series, series_of


def test_a_window_is_open_on_the_left() -> None:
    """Prometheus 3: a sample exactly on the left bound is outside."""
    assert at("count_over_time(a[30s])", 60, "a 0+1x10") == {"{}": 2}


def test_prometheus_2_closes_the_left_end() -> None:
    """`--promql-compat 2` counts the sample on the left bound."""
    found = instant("count_over_time(a[30s])", store("a 0+1x10"), 60, Settings(compat=2))

    assert named(found) == {"{}": 3}


def test_a_sample_stands_for_less_than_five_minutes() -> None:
    """At exactly the lookback the series is gone."""
    assert at("a", 299, "a 7") == {"a{}": 7}
    assert at("a", 300, "a 7") == {}


def test_a_stale_marker_ends_a_series_at_once() -> None:
    """And range functions do not see it."""
    lines = ("a 1 2 stale",)

    assert at("a", 30, *lines) == {}
    assert at("sum_over_time(a[1m])", 30, *lines) == {"{}": 3}


def test_a_nan_is_a_value() -> None:
    """Only the stale marker ends a series; NaN is answered."""
    assert math.isnan(at("a", 0, "a NaN")["a{}"])


def test_rate_extrapolates_to_the_bounds_it_nearly_reaches() -> None:
    """Samples at 0..60 every 15 s, window (0, 60]: first at 15, 15 s from the bound."""
    assert at("increase(a[60s])", 60, "a 0+15x4") == {"{}": pytest.approx(60)}


def test_increase_does_not_extrapolate_below_zero() -> None:
    """A counter that starts at 1 was 0 a fifteenth of an interval before."""
    assert at("increase(a[60s])", 30, "a 1 16 31") == {"{}": pytest.approx(31)}


def test_a_counter_reset_adds_what_was_lost() -> None:
    """10, 20, 5: the rise is 10 and then 5."""
    assert at("increase(a[45s])", 30, "a 10 20 5")["{}"] == pytest.approx(
        15 * 45 / 30 * 25 / 25, 1
    )


def test_delta_takes_a_fall_as_a_fall() -> None:
    """No reset is guessed for a gauge."""
    assert at("delta(a[31s])", 30, "a 10 20 4")["{}"] < 0


def test_offset_and_at_move_the_window() -> None:
    """`@` fixes the time, `offset` moves it back."""
    lines = ("a 0+1x10",)

    assert at("a offset 30s", 150, *lines) == {"a{}": 8}
    assert at("a @ 45", 150, *lines) == {"a{}": 3}
    assert at("a @ 45 offset 15s", 150, *lines) == {"a{}": 2}


def test_matchers_are_anchored() -> None:
    """`n1` is not `n10`."""
    lines = ('a{h="n1"} 1', 'a{h="n10"} 2')

    assert at('a{h=~"n1"}', 0, *lines) == {"a{h=n1}": 1}
    assert at('a{h!~"n1."}', 0, *lines) == {"a{h=n1}": 1}


def test_an_absent_label_is_empty() -> None:
    """`l=""` selects series without the label."""
    assert at('a{l=""}', 0, 'a{l="x"} 1', "a 2") == {"a{}": 2}


def test_quantile_interpolates_between_ranks() -> None:
    """Of 1, 2, 4 the median is 2 and the 0.75 quantile 3."""
    lines = ('a{l="x"} 1', 'a{l="y"} 2', 'a{l="z"} 4')

    assert at("quantile(0.75, a)", 0, *lines) == {"{}": 3}
    assert at("quantile_over_time(0.75, a[1m])", 30, "a 1 2 4") == {"{}": 3}


def test_aggregations_group_by_and_without() -> None:
    """Grouping keeps exactly the labels it names, or all others."""
    lines = ('a{h="1",g="0"} 1', 'a{h="1",g="1"} 2', 'a{h="2",g="0"} 5')

    assert at("sum by (h) (a)", 0, *lines) == {"{h=1}": 3, "{h=2}": 5}
    assert at("max without (h) (a)", 0, *lines) == {"{g=0}": 5, "{g=1}": 2}
    assert at("count(a)", 0, *lines) == {"{}": 3}


def test_topk_keeps_labels_and_nan_last() -> None:
    """NaN is taken only where nothing else is left."""
    lines = ('a{l="x"} 1', 'a{l="y"} NaN', 'a{l="z"} 3')

    assert list(at("topk(2, a)", 0, *lines)) == ["a{l=z}", "a{l=x}"]
    assert list(at("bottomk(1, a)", 0, *lines)) == ["a{l=x}"]


def test_the_standard_deviation_of_equals_is_zero() -> None:
    """However badly the number itself is represented."""
    assert at("stddev_over_time(a[1h])", 150, "a 0.1x10") == {"{}": 0}


def test_sums_are_compensated() -> None:
    """1e100 + 1 - 1e100 is 1, over time and over series, short and long."""
    assert at("sum_over_time(a[1m])", 30, "a 1e100 1 -1e100") == {"{}": 1}
    lines = ('a{l="x"} 1e100', 'a{l="y"} 1', 'a{l="z"} -1e100')
    assert at("sum(a)", 0, *lines) == {"{}": 1}


def test_comparison_filters_and_bool_answers() -> None:
    """A filter keeps the metric's name and value; `bool` gives 0 or 1 without the name."""
    lines = ('a{l="x"} 1', 'a{l="y"} 3')

    assert at("a > 2", 0, *lines) == {"a{l=y}": 3}
    assert at("a > bool 2", 0, *lines) == {"{l=x}": 0, "{l=y}": 1}
    assert at("2 < a", 0, *lines) == {"a{l=y}": 3}


def test_vectors_match_one_to_one_on_labels() -> None:
    """Series without a partner are left out."""
    lines = ('a{h="1",g="0"} 6', 'b{h="1"} 2', 'b{h="3"} 1')

    assert at("a / on (h) b", 0, *lines) == {"{h=1}": 3}
    assert at("a / ignoring (g) b", 0, *lines) == {"{h=1}": 3}
    assert at("a / b", 0, *lines) == {}


def test_two_partners_are_refused() -> None:
    """As Prometheus refuses them, rather than taking the first."""
    lines = ('a{h="1"} 6', 'b{h="1",g="0"} 2', 'b{h="1",g="1"} 3')

    with pytest.raises(QueryRejected, match="many-to-many"):
        at("a / on (h) b", 0, *lines)
    with pytest.raises(QueryRejected, match="many-to-one matching must be explicit"):
        at("b / on (h) a", 0, *lines)


def test_many_to_one_has_to_be_asked_for() -> None:
    """`group_left` keeps the labels of the many and takes those it names from the one."""
    lines = ('a{h="1",r="x"} 6', 'b{h="1",g="0"} 2', 'b{h="1",g="1"} 3')

    found = at("b / on (h) group_left (r) a", 0, *lines)

    assert found == {"{g=0,h=1,r=x}": pytest.approx(1 / 3), "{g=1,h=1,r=x}": 0.5}


def test_set_operators_go_by_labels() -> None:
    """`and` keeps the left, `unless` what has no partner, `or` adds what the left lacks."""
    lines = ('a{h="1"} 1', 'a{h="2"} 2', 'b{h="2"} 9', 'b{h="3"} 8')

    assert at("a and on (h) b", 0, *lines) == {"a{h=2}": 2}
    assert at("a unless on (h) b", 0, *lines) == {"a{h=1}": 1}
    assert at("a or on (h) b", 0, *lines) == {"a{h=1}": 1, "a{h=2}": 2, "b{h=3}": 8}


def test_names_are_dropped_where_they_stop_being_true() -> None:
    """Two metrics that come out alike are an error, not a silent sum."""
    with pytest.raises(QueryRejected, match="same labelset"):
        at('rate({__name__=~"a|b"}[1m])', 30, "a 1 2 3", "b 1 2 3")


def test_scalar_of_anything_but_one_series_is_nan() -> None:
    """And `vector` goes the other way."""
    assert math.isnan(at("scalar(a)", 0, 'a{l="x"} 1', 'a{l="y"} 1')["{}"])
    assert at("vector(3) + scalar(a)", 0, "a 4") == {"{}": 7}


def test_timestamp_is_when_the_sample_was_taken() -> None:
    """Of a selector; of anything else it is the time of the step."""
    assert at("timestamp(a)", 100, "a 0 1") == {"{}": 15}
    assert at("timestamp(abs(a))", 100, "a 0 1") == {"{}": 100}


def test_round_takes_ties_upwards() -> None:
    """2.5 is 3 and -2.5 is -2."""
    assert at("round(a)", 0, 'a{l="x"} 2.5', 'a{l="y"} -2.5') == {"{l=x}": 3, "{l=y}": -2}
    assert at("clamp(a, 0, 2)", 0, "a 5") == {"{}": 2}


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("histogram_count(a)", "native histograms"),
        ("mad_over_time(a[5m])", "mad_over_time is experimental"),
        ("limitk(1, a)", "limitk"),
        ("info(a)", "info"),
        ("a + fill(0) b", "fill"),
        ("a[5m]", "range vector"),
        ("a[5m:]", "subquery"),
        ("holt_winters(a[5m], 0.5, 0.5)", "holt_winters"),
        ("nonsense(a)", "nonsense"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(query: str, name: str) -> None:
    """Never answered differently."""
    with pytest.raises(QueryRejected, match=name):
        at(query, 0, "a 1")


def test_a_range_has_a_row_a_series_and_a_column_a_step() -> None:
    """What is not there is NaN and not present."""
    found = over("a", store('a{l="y"} 0+1x2', 'a{l="x"} _ _ 5'), 0, 30, 15)

    assert [dict(labels)["l"] for labels in found.labels] == ["x", "y"]
    assert found.present.tolist() == [[False, False, True], [True, True, True]]
    assert found.values[1].tolist() == [0, 1, 2]
    assert found.times.tolist() == [0, 15, 30]


def test_a_range_agrees_with_its_instants() -> None:
    """Every step is answered as if it had been asked alone."""
    data = store('a{l="x"} 0+7x20 3+2x20', 'a{l="y"} 5 _x7 stale 1+0.5x30')
    for query in ("rate(a[1m])", "a", "max_over_time(a[50s])", "sum(a) > 20", "topk(1, a)"):
        whole = over(query, data, 0, 600, 40)
        for step, time in enumerate(whole.times.tolist()):
            alone = instant(query, data, time)
            there = {
                labels: whole.values[row, step]
                for row, labels in enumerate(whole.labels)
                if whole.present[row, step]
            }
            values = {labels: alone.values[row, 0] for row, labels in enumerate(alone.labels)}
            assert there == values, (query, time)


def test_a_bound_is_met_exactly_at_any_date() -> None:
    """Times are whole milliseconds: 0.1 + 0.2 does not move a sample out of its window."""
    start = 1_700_000_000.1
    data = series_of([({"__name__": "a"}, [(start + 0.1 * i, i) for i in range(20)])])

    found = instant("count_over_time(a[1s])", MemoryStore(data), start + 1.5)

    assert named(found) == {"{}": 10}


@pytest.mark.parametrize(
    ("start", "end", "step"), [(0, 10, 0), (10, 0, 1), (0, MAX_STEPS + 1, 1), (0, math.inf, 1)]
)
def test_impossible_ranges_are_refused(start: float, end: float, step: float) -> None:
    """No step, no end, or more points than Prometheus gives."""
    with pytest.raises(QueryRejected):
        over("a", store("a 1"), start, end, step)


def test_an_empty_store_answers_with_nothing() -> None:
    """No series is an answer, not an error."""
    empty = MemoryStore(Series((), np.empty(0), np.empty(0), np.zeros(1, dtype=np.int64)))

    assert named(instant("sum(rate(a[5m])) / sum(b)", empty, 0)) == {}
