"""Functions of PromQL, computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from series_text import at, named, store

from flatline.errors import QueryRejected
from flatline.series.promql import ragged
from flatline.series.promql.evaluate import Settings, instant, kind, over, samples

OLD = Settings(compat=2)
BUCKETS = (
    'h_bucket{le="1"} 2',
    'h_bucket{le="2"} 6',
    'h_bucket{le="+Inf"} 8',
)


def test_a_subquery_takes_multiples_of_its_step() -> None:
    """Steps of 20 s within (40, 100]: 60, 80, 100; the sample a step sees is 4, 5, 6."""
    assert at("sum_over_time((a)[1m:20s])", 100, "a 0+1x10") == {"{}": 15}


def test_a_subquery_without_a_step_takes_a_minute() -> None:
    """The evaluation interval a server has unless told."""
    assert at("count_over_time((a)[5m:])", 300, "a 0+1x30") == {"{}": 5}


def test_a_subquery_may_stand_in_a_subquery() -> None:
    """The rate over a minute is constant, and so is the most of it."""
    found = at("max_over_time(avg_over_time(rate(a[1m])[1m:15s])[1m:15s])", 300, "a 0+15x30")

    assert found == {"{}": pytest.approx(1)}


def test_the_start_and_end_of_a_query_hold_inside_a_subquery() -> None:
    """`@ end()` is the end of the whole range."""
    found = over("last_over_time((a @ end())[1m:15s])", store("a 0+1x10"), 60, 120, 60)

    assert found.values.tolist() == [[8, 8]]


def test_a_quantile_is_interpolated_within_its_bucket() -> None:
    """Rank 4 of 8 lies half way through the 4 of (1, 2]."""
    assert at("histogram_quantile(0.5, h_bucket)", 0, *BUCKETS) == {"{}": 1.5}


def test_a_quantile_in_the_last_bucket_is_its_lower_bound() -> None:
    """Nothing is known of what lies beyond it."""
    assert at("histogram_quantile(0.99, h_bucket)", 0, *BUCKETS) == {"{}": 2}


def test_a_histogram_without_an_end_has_no_quantile() -> None:
    """Without +Inf the count is not known."""
    assert math.isnan(at("histogram_quantile(0.5, h_bucket)", 0, *BUCKETS[:2])["{}"])


def test_a_bucket_that_is_missing_at_a_step_is_left_out_there() -> None:
    """Rank 4 of 8 among (0, 1] and the last: the upper bound of the first."""
    lines = ('h_bucket{le="1"} 2 2', 'h_bucket{le="2"} 6 stale', 'h_bucket{le="+Inf"} 8 8')

    found = over("histogram_quantile(0.5, h_bucket)", store(*lines), 0, 15, 15)

    assert found.values.tolist() == [[1.5, 1]]


def test_counts_that_fall_are_lifted() -> None:
    """A bucket holds at least what the one below it holds."""
    lines = ('h_bucket{le="1"} 4', 'h_bucket{le="2"} 3', 'h_bucket{le="+Inf"} 8')

    assert at("histogram_quantile(0.5, h_bucket)", 0, *lines) == {"{}": 1}


def test_a_fraction_is_what_lies_between_two_bounds() -> None:
    """All of (0, 1], half of (1, 2]: 4 of 8."""
    assert at("histogram_fraction(0, 1.5, h_bucket)", 0, *BUCKETS) == {"{}": 0.5}


def test_labels_are_replaced_where_the_pattern_matches_whole() -> None:
    """`$1` is the group; a series that does not match stays as it is."""
    lines = ('a{h="n1"} 1', 'a{h="other"} 2')

    assert at('label_replace(a, "r", "rack$1", "h", "n(.)")', 0, *lines) == {
        "a{h=n1,r=rack1}": 1,
        "a{h=other}": 2,
    }


@pytest.mark.parametrize(
    ("template", "value"), [("$1x", ""), ("${1}x", "nx"), ("$$1", "$1"), ("$9", ""), ("$", "$")]
)
def test_templates_are_those_of_go(template: str, value: str) -> None:
    """`$1x` is a group of that name, of which there is none."""
    found = instant(f'label_replace(a, "t", "{template}", "h", "(.).*")', store('a{h="n1"} 1'), 0)

    assert dict(found.labels[0]).get("t", "") == value


def test_labels_that_become_the_same_are_refused() -> None:
    """Two samples of one series at one time have no meaning."""
    with pytest.raises(QueryRejected, match="same labelset"):
        at('label_replace(a, "h", "x", "", "")', 0, 'a{h="1"} 1', 'a{h="2"} 1')


def test_labels_are_joined() -> None:
    """A label that is not there is empty."""
    found = at('label_join(a, "k", "-", "g", "h", "x")', 0, 'a{h="1",g="2"} 5')

    assert found == {"a{g=2,h=1,k=2-1-}": 5}


def test_absence_has_the_labels_that_were_asked_for() -> None:
    """Those matched by equality, once."""
    assert at('absent(b{h="1",g=~"x",k="2",k!="3"})', 0, "a 1") == {"{h=1}": 1}
    assert at("absent(a)", 0, "a 1") == {}
    assert at('absent_over_time(a{h="1"}[1m])', 600, 'a{h="1"} 1') == {"{h=1}": 1}


def test_values_are_counted_by_their_spelling() -> None:
    """The value becomes a label."""
    lines = ('a{h="1"} 2.5', 'a{h="2"} 2.5', 'a{h="3"} 1e21')

    assert at('count_values("v", a)', 0, *lines) == {
        "{v=2.5}": 2,
        "{v=1000000000000000000000}": 1,
    }


def test_a_line_is_drawn_through_a_window() -> None:
    """1 per 15 s, and where it will be in a minute."""
    assert at("deriv(a[2m])", 120, "a 0+1x8") == {"{}": pytest.approx(1 / 15)}
    assert at("predict_linear(a[2m], 60)", 120, "a 0+1x8") == {"{}": pytest.approx(12)}


def test_a_large_constant_costs_a_slope_no_digits() -> None:
    """1e15 + 1 per step, at a date of today."""
    found = at("deriv(a[2m])", 120, "a 1000000000000000+1x8")

    assert found == {"{}": pytest.approx(1 / 15, rel=1e-12)}


def test_holt_winters_is_a_function_of_release_2() -> None:
    """Under release 3 it has another name and is experimental."""
    found = instant("holt_winters(a[1m], 0.5, 0.5)", store("a 0+1x8"), 60, OLD)

    assert named(found) == {"{}": pytest.approx(4)}
    with pytest.raises(QueryRejected, match="0 and 1"):
        instant("holt_winters(a[1m], 2, 0.5)", store("a 0+1x8"), 60, OLD)


def test_dates_are_utc() -> None:
    """2024-02-29 13:37:00 was a Thursday in a month of 29 days."""
    values = {
        name: at(f"{name}(vector(1709213820))", 0)["{}"]
        for name in ("year", "month", "day_of_month", "day_of_year", "days_in_month",
                     "day_of_week", "hour", "minute")
    }  # fmt: skip

    assert list(values.values()) == [2024, 2, 29, 60, 29, 4, 13, 37]


def test_the_date_of_the_step_needs_no_argument() -> None:
    """`hour()` is that of the evaluation."""
    assert at("hour()", 7200) == {"{}": 2}


def test_sort_goes_by_value_with_nan_last_either_way() -> None:
    """At one time; a range is sorted by labels."""
    lines = ('a{l="x"} 1', 'a{l="y"} NaN', 'a{l="z"} 3')

    assert list(at("sort(a)", 0, *lines)) == ["a{l=x}", "a{l=z}", "a{l=y}"]
    assert list(at("sort_desc(a)", 0, *lines)) == ["a{l=z}", "a{l=x}", "a{l=y}"]


def test_clamp_to_infinity_goes_before_nan() -> None:
    """As Go's `math.Min` and `math.Max` have it."""
    assert at("clamp_min(a, Inf)", 0, "a NaN") == {"{}": math.inf}
    assert at("clamp(a, 2, 1)", 0, "a 5") == {}


def test_a_power_of_minus_infinity_is_no_square_root() -> None:
    """IEEE 754: pow(-Inf, 0.5) is +Inf."""
    assert at("a ^ 0.5", 0, "a -Inf") == {"{}": math.inf}


@pytest.mark.parametrize(
    ("query", "expected"),
    [("a", "vector"), ("a[5m]", "matrix"), ("(a)[5m:]", "matrix"), ("1 + time()", "scalar"),
     ("-scalar(a)", "scalar"), ("1 + a", "vector"), ("('x')", "string"), ("pi()", "scalar")],
)  # fmt: skip
def test_the_kind_of_an_answer_is_told_from_the_query(query: str, expected: str) -> None:
    """As the HTTP API names it."""
    assert kind(query) == expected


def test_a_range_vector_is_its_samples() -> None:
    """Those of the window, stale markers left out."""
    found = samples("a[45s]", store("a 1 2 stale 4"), 45)

    assert found.times.tolist() == [15, 45]
    assert found.values.tolist() == [2, 4]


def test_ties_at_the_edge_go_as_in_a_heap() -> None:
    """The first of two equals leaves when a greater value comes."""
    lines = ('a{l="1"} 1', 'a{l="2"} 1', 'a{l="3"} 2')

    assert set(at("topk(2, a)", 0, *lines)) == {"a{l=3}", "a{l=2}"}


@pytest.mark.parametrize("whole", [True, False])
def test_overlapping_sums_are_those_of_each_window(whole: bool) -> None:
    """By spans or by prefixes, to the last digits of the exact sum."""
    rng = np.random.default_rng(3)
    values = np.rint(rng.normal(0, 1e6, 3000)) if whole else rng.normal(0, 1e6, 3000)
    lo = np.arange(0, 2500)
    hi = lo + 400

    exact = [math.fsum(values[a:b]) for a, b in zip(lo.tolist(), hi.tolist(), strict=True)]
    assert ragged.sums(values, lo, hi).tolist() == pytest.approx(exact, rel=1e-14, abs=1e-7)


def test_a_strange_value_stays_in_its_windows() -> None:
    """Infinity, NaN and 1e300 do not reach windows that do not hold them."""
    values = np.ones(2000)
    values[[100, 700, 1200]] = math.inf, math.nan, 1e300
    lo = np.arange(0, 1900)

    with np.errstate(all="ignore"):  # as the evaluator has it
        found = ragged.sums(values, lo, lo + 64)

    assert found[0] == 64
    assert found[60] == math.inf
    assert math.isnan(found[690])
    assert found[1150] == 1e300
    assert found[1201] == 64


def test_overlapping_extremes_are_those_of_each_window() -> None:
    """NaN only where there is nothing else."""
    rng = np.random.default_rng(4)
    values = rng.normal(0, 1, 2000)
    values[500:600] = math.nan
    lo = np.arange(0, 1900)

    found = ragged.largest(values, lo, lo + 64)

    expected = [np.fmax.reduce(values[a : a + 64]) for a in lo.tolist()]
    np.testing.assert_array_equal(found, expected)
