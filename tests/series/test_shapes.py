"""Spread, phases and meetings: properties that hold whatever the numbers."""

from __future__ import annotations

import random
from itertools import pairwise
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flatline.series.alignment import meet
from flatline.series.phases import GAP_BESIDE, Phase, _together, kuiper, phases
from flatline.series.spread import MANY, apart, bar, deviations, mad
from flatline.series.standing import medians, standing

LEVELS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=80)


def noisy(*parts: tuple[int, float], seed: int = 0, noise: float = 0.01) -> list[float]:
    made = random.Random(seed)
    return [level * made.gauss(1, noise) for count, level in parts for _ in range(count)]


# --- spread ---


@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_a_mad_does_not_depend_on_where_or_which_way(values: list[float]) -> None:
    """Mirrored values have the same spread."""
    assert mad([-value for value in values]) == pytest.approx(mad(values))


@given(st.lists(st.floats(90, 110), min_size=5, max_size=40), st.floats(1e4, 1e9))
def test_one_wild_value_stands_apart_alone(usual: list[float], wild: float) -> None:
    """However wild it is: it does not widen the spread it is measured by."""
    values = dict(enumerate([*usual, wild]))

    assert list(apart(values, ratio=1.5)) == [len(usual)]


@given(st.lists(st.floats(0, 1e6), max_size=3))
def test_too_few_peers_have_no_usual_value(values: list[float]) -> None:
    """Three of which one differs prove nothing."""
    assert deviations(dict(enumerate(values))) == {}


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=30))
def test_a_value_is_compared_with_the_others_alone(values: list[float]) -> None:
    """Its own is not among those whose median it is held against."""
    for at, (usual, _) in deviations(dict(enumerate(values))).items():
        assert usual == pytest.approx(median(values[:at] + values[at + 1 :]))


@given(
    st.integers(1, 3 * MANY), st.integers(0, 1 << 30), st.sampled_from((0.9, 1.05)),
    st.sampled_from((0.0, 0.5)),
)  # fmt: skip
def test_a_fleet_at_once_is_judged_as_one_by_one(
    size: int, seed: int, ratio: float, floor: float
) -> None:
    """Ties, unknown values and a spread of none among them."""
    made = np.random.default_rng(seed)
    values = np.round(made.normal(100, made.choice([0.0, 0.3, 3]), size))
    values[made.random(size) < 0.05] = made.choice([60.0, 101.0, 140.0, np.nan, np.inf])
    known = {at: value for at, value in enumerate(values.tolist()) if np.isfinite(value)}

    assert standing(values, ratio=ratio, floor=floor) == [*apart(known, ratio=ratio, floor=floor)]


@given(st.lists(st.lists(st.floats(-1e6, 1e6) | st.just(float("nan")), min_size=4, max_size=4),
                min_size=1, max_size=6))  # fmt: skip
def test_medians_are_of_what_is_known(rows: list[list[float]]) -> None:
    """A row of nothing has none."""
    known = [[value for value in row if value == value] for row in rows]
    usual = [median(row) if row else float("nan") for row in known]

    np.testing.assert_array_equal(medians(np.array(rows)), usual)


def test_the_bar_rises_with_how_many_are_compared() -> None:
    """A hundred thousand GPUs have a five-sigma one by chance."""
    assert bar(8) == bar(100) == 5.0
    assert bar(1_000_000) > 5.5


def test_chance_alone_seldom_stands_apart() -> None:
    """Of 400 healthy fleets of 64 at most a few name anyone."""
    made = random.Random(1)
    named = sum(
        bool(apart({n: made.gauss(100, 3) for n in range(64)}, ratio=1.05)) for _ in range(400)
    )

    assert named <= 8


# --- phases ---


@given(LEVELS)
def test_phases_cover_the_series_without_holes(values: list[float]) -> None:
    """In order, each beginning where the last ended."""
    found = phases(values)

    assert found[0].first == 0
    assert found[-1].last == len(values)
    assert all(a.last == b.first for a, b in pairwise(found))


@given(LEVELS, st.floats(0.1, 1000))
def test_phases_do_not_depend_on_the_unit(values: list[float], factor: float) -> None:
    """Tokens a second or a minute: the cuts are the same."""
    whole = [round(value) for value in values]
    cuts = [p.first for p in phases([float(v) for v in whole])]

    assert [p.first for p in phases([v * 2.0 for v in whole])] == cuts


def test_drop_recovery_and_drop_are_four_phases() -> None:
    """As a run has them whose links fail one after the other."""
    found = phases(noisy((24, 3293), (30, 2620), (9, 3288), (33, 2520)))

    assert [len(phase) for phase in found] == [24, 30, 9, 33]
    assert [round(p.level, -1) for p in found] == pytest.approx([3290, 2620, 3290, 2520], abs=30)


def test_a_dip_in_the_middle_is_found() -> None:
    """Where a test for one change alone would see nothing."""
    assert [len(p) for p in phases(noisy((20, 100), (12, 80), (20, 100)))] == [20, 12, 20]


def test_single_spikes_are_no_phase() -> None:
    """Checkpoints every ten steps."""
    values = [20.0 if n % 10 == 9 else 100.0 + n % 3 for n in range(100)]

    assert len(phases(values)) == 1


BETWEEN = ((9, 100), (1, 96), (5, 60), (1, 65), (9, 100), (1, 72), (5, 60), (1, 84), (9, 100),
           (1, 77), (5, 60), (1, 91), (9, 100))  # fmt: skip
"""Dips of which each border has a point that was read while the level changed."""


@pytest.mark.parametrize(
    ("parts", "lengths"),
    [
        (((10, 100), (6, 80), (10, 100)), [10, 6, 10]),
        (((18, 100), (8, 80)), [18, 8]),
        (((10, 100), (6, 130), (10, 100)), [10, 6, 10]),
        (((10, 100), (1, 91), (6, 80), (1, 88), (10, 100)), [11, 7, 10]),
        (((10, 100), (3, 80), (13, 100)), [26]),  # too short to be a phase
        (((80, 100), (6, 80), (80, 100)), [166]),  # too small a part
        (((8, 100), (5, 80), (8, 100), (5, 80), (8, 100)), [8, 5, 8, 5, 8]),
        (((4, 100), (3, 80), (4, 100), (3, 80), (12, 100)), [26]),  # two that are too short
        (((4, 100), (4, 80)) * 3, [24]),  # as many of few points come by chance
        (BETWEEN, [10, 6, 9, 6, 10, 6, 10]),
        (((1, 20), (7, 100), (4, 70), (7, 100), (5, 70), (6, 100)), [8, 4, 7, 5, 6]),  # compiles
        (((7, 100), (4, 70), (4, 100), (1, 30), (3, 100), (5, 70), (6, 100)), [7, 4, 8, 5, 6]),
        (((1, 20), (7, 100), (3, 70), (8, 100), (3, 70), (8, 100)), [30]),  # each too short
        (((7, 100), (4, 70), (4, 100), (1, 75), (3, 100), (6, 100)), [25]),  # not as far
    ],
)
def test_few_points_that_stand_apart_are_a_phase(
    parts: tuple[tuple[int, float], ...], lengths: list[int]
) -> None:
    """Too few for their sum to stray far, but one after the other and far off."""
    assert [len(phase) for phase in phases(noisy(*parts, noise=0.004))] == lengths


@pytest.mark.parametrize("beside", [0.0, GAP_BESIDE])
def test_noise_that_wanders_is_cut_no_more_often(beside: float) -> None:
    """By the points that stand apart: what wanders has some at every level."""
    made = random.Random(4)
    stood = 0
    for _ in range(300):
        at, values = 0.0, []
        for _ in range(40):
            at = 0.8 * at + made.gauss(0, 0.02)
            values.append(100 * (1 + at))
        stood += bool(_together(values, 0.01, 4, beside))

    assert stood <= 6


def test_noise_is_seldom_cut() -> None:
    """Of 300 steady series at most a handful."""
    cut = sum(len(phases(noisy((60, 100), seed=n, noise=0.05))) > 1 for n in range(300))

    assert cut <= 6


def test_a_change_too_small_to_matter_is_none() -> None:
    """One per cent, however certain."""
    assert len(phases(noisy((50, 100), (50, 99), noise=0.0001))) == 1


def test_nothing_has_no_phases() -> None:
    """And a constant has one."""
    assert phases([]) == ()
    assert phases([5.0] * 30) == (Phase(0, 30, 5.0),)


@given(st.floats(0, 10), st.floats(0, 10))
def test_straying_further_is_less_likely(a: float, b: float) -> None:
    """Beyond where the formula holds at all."""
    low, high = sorted((a, b))
    if low >= 1:
        assert kuiper(high) <= kuiper(low)


# --- meetings ---

BITS = st.lists(st.booleans(), min_size=4, max_size=60)


@given(BITS)
def test_a_series_meets_itself_wholly(bits: list[bool]) -> None:
    """With a chance that is never below one turn in all."""
    met = meet(bits, bits)

    if met is None:
        assert all(bits) or not any(bits)
    else:
        assert (met.precision, met.recall) == (1.0, 1.0)
        assert met.chance >= 1 / len(bits)


@given(BITS, st.integers(0, 59))
def test_turning_both_changes_nothing(bits: list[bool], turn: int) -> None:
    """Chance depends on how they lie to one another alone."""
    other = [not bit for bit in bits[1:]] + [bits[0]]
    at = turn % len(bits)
    turned = meet(bits[at:] + bits[:at], other[at:] + other[:at])

    assert turned == meet(bits, other)


def test_what_always_holds_meets_nothing() -> None:
    """A link that loses packets all the time explains no phase."""
    assert meet([True] * 9, [False] * 4 + [True] * 5) is None


def test_phases_that_coincide_are_unlikely_by_chance() -> None:
    """Two low phases, both covered: no other turn does as well."""
    low = [False] * 24 + [True] * 30 + [False] * 9 + [True] * 33
    met = meet(low, low)

    assert met is not None
    assert met.chance == pytest.approx(1 / 96)
