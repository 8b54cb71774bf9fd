"""The pace asked at the moments that a counter names."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime

from flatline.judging.anchored import MOST, Anchored, anchored, unlike
from flatline.judging.throughput import Pace
from flatline.judging.timeline import Timeline

COUNT, LENGTH_S, EACH = 80, 60, 3
BEGIN = 1_700_000_000
When = Callable[[int], bool]


def asked(
    level: Callable[[int], float], lit: dict[str, When], noise: float = 0.01, seed: int = 1
) -> Anchored | None:
    """Eighty stretches of three steps each; `level` and the bursts go by the stretch."""
    dice = random.Random(seed)
    times = [BEGIN + 20.0 * (n + 1) for n in range(EACH * COUNT)]
    values = [0.05 * level(n // EACH) * dice.lognormvariate(0, noise) for n in range(len(times))]
    cut = Timeline(*(datetime.fromtimestamp(BEGIN + s, UTC) for s in (0, COUNT * LENGTH_S)),
                   LENGTH_S)  # fmt: skip
    assert len(cut.ends) == COUNT
    marks = {name: [when(at) for at in range(COUNT)] for name, when in lit.items()}
    return anchored(Pace(tuple(times), tuple(values), "steps/s", "x"), cut, marks)


def late(at: int) -> bool:
    return at >= 44


def dips(at: int) -> bool:
    return at in {5, 6, 11, 18, 19, 26, 33, 34, 41, 47, 48, 55, 61, 68, 69, 75}


def test_an_onset_at_which_the_pace_falls_by_four_percent() -> None:
    found = asked(lambda at: 0.96 if late(at) else 1.0, {"a": late})

    assert found is not None
    assert found.places == ("a",)
    assert 0.03 < found.lower < 0.05
    assert found.begins == BEGIN + 44 * LENGTH_S


def test_many_short_dips_below_the_noise_of_the_steps() -> None:
    """What each of them is too small for, all of them show: and more than one onset does."""
    found = asked(lambda at: 0.94 if dips(at) else 1.0, {"a": dips}, noise=0.04)
    once = asked(lambda at: 0.96 if late(at) else 1.0, {"a": late})

    assert found is not None
    assert once is not None
    assert once.strength < found.strength <= found.most <= MOST < 0.8


def test_a_place_that_bursts_at_other_times_is_not_named() -> None:
    """Nor does it hide the one that bursts in the dips."""
    other = lambda at: dips(at + 3)  # noqa: E731
    level = lambda at: 0.93 if dips(at) else 1.0  # noqa: E731

    found = asked(level, {"a": dips, "b": other})

    assert found is not None
    assert found.places == ("a",)
    assert asked(level, {"b": other}) is None


def test_two_places_with_their_own_dips_are_both_named() -> None:
    early = lambda at: at < 40 and dips(at)  # noqa: E731
    after = lambda at: at >= 40 and dips(at)  # noqa: E731

    found = asked(lambda at: 0.92 if dips(at) else 1.0, {"a": early, "b": after})

    assert found is not None
    assert set(found.places) == {"a", "b"}


def test_both_ends_of_a_link_are_one_try() -> None:
    """An onset is met by chance in one of eighty: three tries more would leave no room for it."""
    level = lambda at: 0.96 if late(at) else 1.0  # noqa: E731
    ends = {name: late for name in "abcd"}

    found = asked(level, ends, noise=0.003)

    assert found is not None
    assert found.places == tuple("abcd")


def test_a_drift_of_the_pace_is_no_ones() -> None:
    """It is as low just before a burst as in it."""
    for begins in (10, 30, 44, 60):
        when = lambda at, begins=begins: at >= begins  # noqa: E731
        assert asked(lambda at: 1.0 - 0.04 * at / COUNT, {"a": when}, noise=0.003) is None


def test_a_fall_elsewhere_is_no_ones() -> None:
    """Ten stretches before the burst, or after its beginning."""
    for falls in (34, 54):
        level = lambda at, falls=falls: 0.96 if at >= falls else 1.0  # noqa: E731
        assert asked(level, {"a": late}) is None


def test_a_short_dip_at_the_onset_of_a_burst_that_goes_on() -> None:
    """The rest of the burst is as fast as before: it costs nothing."""
    assert asked(lambda at: 0.94 if 44 <= at < 50 else 1.0, {"a": late}) is None


def test_less_than_counts_is_nothing_however_sure() -> None:
    assert asked(lambda at: 0.99 if late(at) else 1.0, {"a": late}, noise=0.001) is None


def test_bursts_nearly_always_or_hardly_ever_are_refused() -> None:
    """Nothing is left to compare with, or too little to compare."""
    assert asked(lambda at: 0.9 if at > 4 else 1.0, {"a": lambda at: at > 4}) is None
    assert asked(lambda at: 0.9 if at == 40 else 1.0, {"a": lambda at: at == 40}) is None


def test_a_faster_pace_in_the_bursts_is_no_slow_down() -> None:
    assert asked(lambda at: 1.04 if late(at) else 1.0, {"a": late}) is None


def test_noise_that_wanders_seldom_meets_a_burst() -> None:
    """Of 200 runs with a burst of each of three places: `lab/anchored_chance.py` counts more."""
    found = 0
    for seed in range(200):
        dice = random.Random(seed)
        state, levels = 0.0, []
        for _ in range(COUNT):
            state = 0.9 * state + dice.gauss(0, 0.01)
            levels.append(1.0 + state)
        lit: dict[str, When] = {}
        for name in "abc":
            begin, length = dice.randrange(70), dice.randrange(4, 40)
            lit[name] = lambda at, begin=begin, length=length: begin <= at < begin + length
        found += asked(levels.__getitem__, lit, noise=0.02, seed=seed) is not None
    assert found <= 6


def test_kinds_that_burst_alike_are_one() -> None:
    """A queue makes the pressure that is measured beside it."""
    on, off = [False] * 11 + [True] * 19, [True] * 9 + [False] * 21

    assert unlike([[on], [[*on[1:], True]]]) == 1
    assert unlike([[on], [off]]) == 2
    assert unlike([[on], [on, off]]) == 2
    assert unlike([]) == 0
