"""The arithmetic of coincidence, against numbers worked out by hand."""

from __future__ import annotations

from math import comb

import pytest

from flatline.triage.exact import multiplicity, tail


def test_one_stratum_is_fishers_exact_test() -> None:
    """3 of 5 failures and 1 of 40 successes on a host: (4C3 * 41C2 + 4C4 * 41C1) / 45C5."""
    p, smallest = tail([(45, 4, 5)], 3)
    assert p == pytest.approx((4 * comb(41, 2) + comb(41, 1)) / comb(45, 5))
    assert smallest == pytest.approx(comb(41, 1) / comb(45, 5))


def test_strata_without_a_failure_or_a_touch_add_nothing() -> None:
    """What is the same whatever happened there is no evidence."""
    assert tail([(45, 4, 5), (1000, 0, 9), (300, 30, 0)], 3) == pytest.approx(
        tail([(45, 4, 5)], 3)
    )


def test_a_stratum_that_failed_throughout_accuses_nobody() -> None:
    """Every job of a partition failed: of course those on this host did."""
    assert tail([(6, 4, 6), (100, 0, 3)], 4)[0] == pytest.approx(1.0)


def test_strata_are_convolved() -> None:
    """Two of one in two each: at least two hits is one in four."""
    assert tail([(2, 1, 1), (2, 1, 1)], 2)[0] == pytest.approx(0.25)


def test_large_numbers_stay_probabilities() -> None:
    """A month of a large cluster neither overflows nor exceeds one."""
    p, smallest = tail([(200_000, 900, 14_000)], 0)
    assert p == pytest.approx(1.0)
    assert 0.0 <= smallest <= 1.0


@pytest.mark.parametrize(
    ("smallest", "count"),
    [
        ([], 1),
        ([0.5, 0.6, 0.9], 1),
        ([0.001] * 7, 7),
        ([0.001, 0.02, 0.5, 0.5], 2),
        ([0.001, 0.04, 0.04], 2),
    ],
)
def test_tests_that_can_never_be_significant_are_not_counted(
    smallest: list[float], count: int
) -> None:
    """Tarone's K at 0.05: the least K with at most K of them below 0.05 / K."""
    assert multiplicity(smallest) == count
