"""Bursts of hosts beside the slow phases of a run."""

from __future__ import annotations

import random

from flatline.judging.bursts import CHANCE, align

LOW = [False] * 16 + [True] * 20 + [False] * 6 + [True] * 17
NEVER = [False] * len(LOW)


def during(*spans: tuple[int, int]) -> list[bool]:
    return [any(a <= at < b for a, b in spans) for at in range(len(LOW))]


def test_hosts_that_make_up_the_slow_phases_are_found_together() -> None:
    """Each in its own phase; the one that burst longest first."""
    found = align({"a": during((42, 59)), "b": during((16, 36)), "c": NEVER}, LOW)

    assert found is not None
    assert found.hosts == ("b", "a")
    assert found.recall == 1.0


def test_a_border_may_be_off_by_a_stretch() -> None:
    """Windows and clocks are not the same everywhere."""
    assert align({"a": during((15, 35), (43, 59))}, LOW) is not None


def test_bursts_in_fast_time_as_well_slow_nothing() -> None:
    """They explain the slow phases no better than the fast ones."""
    assert align({"a": during((0, 10), (16, 36), (36, 42))}, LOW) is None


def test_a_part_of_the_slow_time_is_not_enough() -> None:
    """Something else must have slowed the rest."""
    assert align({"a": during((16, 24))}, LOW) is None


def test_a_run_that_is_slow_throughout_has_nothing_to_compare() -> None:
    """Nor one that never is."""
    assert align({"a": during((0, 59))}, [True] * len(LOW)) is None
    assert align({"a": during((5, 9))}, NEVER) is None


def test_a_host_that_always_bursts_explains_no_run_that_is_mostly_slow() -> None:
    """Whatever lies in nine tenths of a run meets what fills it."""
    low = [False] * 5 + [True] * 54

    assert align({"a": [True] * len(low)}, low) is None
    assert align({"a": [True] * 50 + [False] * 9}, low) is None


def test_phases_at_even_distances_are_no_chance() -> None:
    """A congestion that comes back every half hour meets its own slow phases alone."""
    low = ([False] * 8 + [True] * 8) * 4

    assert align({"a": low}, low) is not None


def test_stretches_without_a_pace_are_left_out() -> None:
    """Before the first step and after the last."""
    gaps: list[bool | None] = [None] * 5
    found = align({"a": [False] * 5 + during((16, 36), (42, 59))}, [*gaps, *LOW])

    assert found is not None


def test_chance_seldom_finds_a_host_among_many() -> None:
    """Sixty hosts with a random burst each, in forty runs: choosing the best of them counts."""
    made = random.Random(3)
    found = 0
    for _ in range(40):
        lit = {}
        for host in range(60):
            begin = made.randrange(len(LOW) - 8)
            lit[str(host)] = during((begin, begin + made.randrange(2, 24)))
        found += align(lit, LOW) is not None
    assert found <= 4


def test_short_phases_that_a_host_meets_exactly_are_no_chance() -> None:
    """Five of two windows in twenty-one, in four of which a host bursts and at one more border:
    with phases of any length a random cut does as well more often, as it is slow for longer."""
    low = [mark == "S" for mark in "....SS..SS..SS..S..SS"]
    lit = [mark == "x" for mark in "....x.x.xx..xx..xx.xx"]

    found = align({"a": lit}, low, rare=True)

    assert found is not None
    assert found.chance < CHANCE
    assert align({"a": [mark == "x" for mark in ".x..xx..x..x.x..x.x.."]}, low) is None


def test_one_fall_that_one_host_alone_goes_with_to_the_end() -> None:
    """A border off by a stretch, and a second half that is covered whole: of the random cuts that
    lie within it few leave as little of the burst outside."""
    low = [False] * 21 + [True] * 25
    lit = [False] * 20 + [True] * 26

    found = align({"a": lit}, low, rare=True)

    assert found is not None
    assert found.chance <= 0.03
    assert align({"a": lit}, low) is None
    assert align({"a": [False] * 12 + [True] * 34}, low, rare=True) is None
