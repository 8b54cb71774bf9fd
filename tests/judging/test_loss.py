"""The shape of a loss, told from its points."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.facts import Facts
from flatline.judging.loss import Curve, curve
from flatline.model import Attempt, Place, Progress
from flatline.tracks import Track

NAN = math.nan


def drawn(
    losses: Sequence[float],
    grads: Sequence[float | None] = (),
    skipped: frozenset[int] = frozenset(),
    falling: bool = True,
    every: int = 1,
    epochs: bool = False,
) -> Curve | None:
    """The curve of these losses, printed one a line."""
    track = Track("train.log", Place(), None, "plain")
    for i, loss in enumerate(losses):
        grad = grads[i] if grads else None
        point = Progress("train", step=i * every, loss=loss, grad_norm=grad, skipped=i in skipped,
                         falling=falling, epoch=float(i) if epochs else None)  # fmt: skip
        track.add(point, i + 1, None, 0)
    return curve(Facts(targets=("run",), tracks=(track,), attempts=(Attempt(0, "failed"),)))


def shape(*args: object, **more: object) -> str:
    found = drawn(*args, **more)  # type: ignore[arg-type]
    assert found is not None
    return found.shape


def descent(n: int = 120, noise: float = 0.0, seed: int = 1) -> list[float]:
    """From 4 towards 1, each point scattered by a share of its height."""
    chance = random.Random(seed)
    return [(1 + 3 * math.exp(-i / 25)) * (1 + noise * chance.gauss(0, 1)) for i in range(n)]


@pytest.mark.parametrize("noise", [0.0, 0.03, 0.12, 0.25])
@pytest.mark.parametrize("seed", range(4))
def test_a_noisy_descent_is_falling(noise: float, seed: int) -> None:
    """Batches scatter; their level falls."""
    assert shape(descent(noise=noise, seed=seed)) == "falling"


def test_two_non_finite_points_to_the_end_are_divergence() -> None:
    """It begins at the first of them, and the last good level is told."""
    found = drawn([*descent(50), NAN, math.inf, NAN])

    assert found is not None
    assert (found.shape, found.onset and found.onset.step, found.count) == ("non-finite", 50, 3)
    assert found.best == pytest.approx(min(descent(50)))


def test_one_non_finite_point_at_the_end_is_not_yet() -> None:
    """It can be a step that the loss scaler skips."""
    assert shape([*descent(50), NAN]) == "falling"


def test_non_finite_points_that_recover_are_none() -> None:
    """However many they were."""
    assert shape([*descent(30), *[NAN] * 10, *descent(120)[30:]]) == "falling"


def test_skipped_steps_are_no_points() -> None:
    """A loss scaler that finds its scale prints infinite losses for steps it does not take."""
    losses = [*[math.inf] * 8, *descent(60), math.inf, math.inf]

    assert shape(losses, skipped=frozenset([*range(8), 68, 69])) == "falling"


def test_a_gradient_that_stays_non_finite_is_divergence() -> None:
    """Though the loss is printed as finite."""
    assert shape(descent(40), [1.0] * 36 + [NAN] * 4) == "non-finite"


def test_a_spike_that_recovers_is_none() -> None:
    """Ten points at five times the level, and back."""
    losses = descent(160, noise=0.03)
    losses[100:110] = [5.0] * 10

    assert shape(losses) == "falling"


def test_a_spike_that_stays_is_told_from_where_it_left() -> None:
    """The onset is where the curve left its best level for good."""
    found = drawn([*descent(100, noise=0.02), *[3.5, 3.6] * 20])

    assert found is not None
    assert (found.shape, found.onset and found.onset.step) == ("spiked", 100)


def test_a_small_rise_is_no_spike() -> None:
    """A fifth above the best level is within what healthy curves do."""
    assert shape([*descent(100), *[1.25] * 40]) != "spiked"


def test_noise_near_zero_is_no_spike() -> None:
    """Where the loss is nearly nothing, its noise doubles it."""
    chance = random.Random(3)
    losses = [4 * math.exp(-i / 8) + 0.004 * chance.random() for i in range(200)]

    assert shape(losses) == "falling"


def test_an_end_above_its_beginning_never_fell() -> None:
    """A loss that only climbs is a counter or a divergence from the first step."""
    assert shape([1 + 0.1 * i for i in range(40)]) == "never-fell"


def test_a_flat_loss_without_gradient_is_dead() -> None:
    """And a flat one with a gradient is unclear: it may be a plateau."""
    flat = [2.303] * 30

    assert shape(flat, [0.0] * 30) == "flat-no-gradient"
    assert shape(flat, [0.7] * 30) != "flat-no-gradient"
    assert shape(flat) not in ("flat-no-gradient", "spiked", "never-fell")


def test_few_points_show_no_fault() -> None:
    """Four points may stand in any order."""
    assert shape([1.0, 1.5, 2.0, 3.0]) == "unclear"


def test_negative_losses_are_not_measured_by_ratio() -> None:
    """A log-likelihood below zero has no level to be half above."""
    assert shape([-0.1 * i for i in range(60)]) == "falling"


def test_a_number_that_is_not_meant_to_fall_is_not_judged() -> None:
    """Rewards and policy losses have no such shape."""
    assert drawn([*descent(40), *[9.0] * 40], falling=False) is None


def test_without_a_loss_there_is_no_curve() -> None:
    """Steps alone say nothing of it."""
    track = Track("train.log", Place(), None, "plain")
    track.add(Progress("train", step=1), 1, None, 0)

    assert curve(Facts(targets=("run",), tracks=(track,))) is None
    assert curve(Facts(targets=("run",))) is None


def test_a_climb_to_the_very_end_is_late_divergence() -> None:
    """Thirty points that rise to twice the best level; a few that do so are not enough."""
    fallen = descent(150, noise=0.02)
    climb = [fallen[-1] * (1 + 0.03 * i) for i in range(30)]
    found = drawn([*fallen, *climb])

    assert found is not None
    assert found.shape == "rising-at-end"
    assert shape([*fallen, *climb[:5]]) == "falling"


@pytest.mark.parametrize("dead", [0.0, 6.9078])
def test_a_leap_to_one_number_for_good_is_dead(dead: float) -> None:
    """Zero, or what a model says that answers alike to everything."""
    found = drawn([*descent(60, noise=0.05), *[dead] * 40])

    assert found is not None
    assert (found.shape, found.onset and found.onset.step) == ("dead-plateau", 60)


def test_a_few_zeros_after_real_losses_are_dead() -> None:
    """What half precision prints once it has overflowed; with a gradient it is something else."""
    losses = [1.9, 1.8, *[0.0] * 6]

    assert shape(losses) == "dead-plateau"
    assert shape(losses, [0.7] * 8) != "dead-plateau"


def test_a_loss_of_nought_throughout_is_told() -> None:
    """Weakly: a rank that holds no loss may print it so."""
    assert shape([0.0] * 12) == "zero-throughout"
    assert shape([0.0] * 12, [0.4] * 12) == "unclear"


def test_a_loss_that_nears_nought_is_not_dead() -> None:
    """Printed to four digits it ends in zeros, which it reached in small steps."""
    assert shape([round(4 * math.exp(-i / 12), 4) for i in range(200)]) == "falling"


def test_a_display_that_repeats_itself_is_not_dead() -> None:
    """It shows the last loss at each step until there is a new one."""
    shown = [loss for loss in descent(20, noise=0.1) for _ in range(10)]

    assert shape([*shown, *shown[-1:] * 10]) != "dead-plateau"


@pytest.mark.parametrize("seed", range(6))
def test_noise_without_a_trend_is_unclear(seed: int) -> None:
    """That its last stretch lies a hair below its first shows nothing."""
    chance = random.Random(seed)

    assert shape([1.9 + chance.gauss(0, 0.1) for _ in range(300)]) == "unclear"


def test_a_fall_at_the_very_beginning_counts() -> None:
    """A long flat stretch behind it does not make it a row without a trend."""
    chance = random.Random(5)

    assert shape([9.0, 6.0, 4.0, *(2.5 + chance.gauss(0, 0.1) for _ in range(400))]) == "falling"


def test_an_explosion_needs_few_points() -> None:
    """Two values a thousand times above all before; one of them may be a spike."""
    found = drawn([0.62, 1.01, 225_192.6, 1.76e10])

    assert found is not None
    assert (found.shape, found.onset and found.onset.step) == ("spiked", 2)
    assert shape([0.62, 1.01, 0.7, 225_192.6]) == "unclear"


def test_a_step_up_that_falls_again_is_told_apart() -> None:
    """A change of data does it as well as a divergence that half recovers."""
    again = [loss + 2.0 for loss in descent(120, noise=0.02, seed=2)]
    found = drawn([*descent(120, noise=0.02), *again])

    assert found is not None
    assert (found.shape, found.onset and found.onset.step) == ("stepped-up", 120)


@pytest.mark.parametrize(
    ("up", "told"),
    [
        (lambda i: 7.6, "stuck"),
        (lambda i: 7.6 + 0.8 * math.exp(-i / 2), "stuck"),
        (lambda i: 7.6 - 0.004 * i, "unclear"),
        (lambda i: 6.4, "falling"),
        (lambda i: 5.1 + 2.5 * min(1.0, i / 60), "unclear"),
        (lambda i: 7.6 if i < 40 else 5.1, "falling"),
    ],
    ids=["at once", "it overshot", "falls again", "too little", "by and by", "comes back"],
)
def test_a_leap_that_is_not_made_good(up: Callable[[int], float], told: str) -> None:
    """From 5.1 to 7.6 nats, no half more, and level since; data that is changed falls on."""
    dice = random.Random(8)
    down = [5.1 + 6.8 * math.exp(-i / 30) + dice.gauss(0, 0.02) for i in range(150)]
    found = drawn([*down, *(up(i) + dice.gauss(0, 0.02) for i in range(100))])

    assert found is not None
    assert found.shape == told
    assert told != "stuck" or (found.onset is not None and found.onset.step == 150)


@pytest.mark.parametrize(
    ("up", "told"),
    [
        (lambda i: 2.88 + 3 * math.exp(-i / 5), True),
        (lambda i: 2.88 + 3 * min(i / 6, math.exp(-(i - 6) / 5)), True),
        (lambda i: 2.88, False),
        (lambda i: 2.88 + 0.7 * math.exp(-i / 5), False),
        (lambda i: 2.88 + 3 * math.exp(-i / 5) - 0.0015 * i, False),
        (lambda i: 2.55 + 3 * math.exp(-i / 5), False),
        (lambda i: 2.88 + 3 * math.exp(-(((i - 40) / 12) ** 2)), False),
    ],
    ids=["at once", "within some", "no peak", "a low peak", "falls again", "comes back", "later"],
)
def test_a_peak_that_leaves_a_loss_by_little_higher(
    up: Callable[[int], float], told: bool
) -> None:
    """From 2.5 to 2.9 of 3.0 it began at, level since: other data bring no peak of twice that."""
    dice = random.Random(8)
    down = [2.5 + 0.55 * math.exp(-i / 60) + dice.gauss(0, 0.01) for i in range(220)]
    found = drawn([*down, *(up(i) + dice.gauss(0, 0.01) for i in range(100))])

    assert found is not None
    assert (found.shape == "stuck") is told


def test_a_loss_that_sinks_without_bound() -> None:
    """Binary cross-entropy with four classes; a likelihood below zero is none such."""
    assert shape([0.7, -38, -4.7e4, -1.7e6, -1.4e7, -6.7e7, -2.1e8]) == "unbounded"
    assert shape([2.0, 0.5, -1.0, -2.5, -3.0, -3.2, -3.3]) != "unbounded"


def test_a_row_that_climbs_throughout() -> None:
    """About a sixth, with noise; not after a fall, nor within the scatter."""
    noise = random.Random(4)
    climb = [3.5 + 0.025 * i + noise.gauss(0, 0.1) for i in range(26)]
    assert shape(climb) == "risen"
    assert shape([6.0, 5.0, 4.2, *climb]) != "risen"
    assert shape([3.5 + 0.004 * i + noise.gauss(0, 0.1) for i in range(26)]) != "risen"


def test_a_short_row_that_leaves_its_level() -> None:
    """At once and to its end; one that comes back, or had no level, shows nothing."""
    held = [2.776, 2.773, 2.768]
    assert shape([*held, 7.34, 8.72, 7.65, 7.1, 6.8]) == "spiked"
    assert shape([*held, 7.34, 8.72, 7.65]) != "spiked"
    assert shape([*held, 7.34, 4.1, 2.9, 2.8]) != "spiked"
    assert shape([3.6, 2.7, 2.2, 7.34, 8.72, 7.65, 7.1]) != "spiked"


def test_a_few_points_far_apart_have_fallen() -> None:
    """Neighbours scatter by tens of percent at most; near misses stay unclear."""
    assert shape([12.4, 6.2], every=10) == "falling"
    assert shape([12.4, 6.2], every=9) == "unclear"  # too few steps to have learnt anything
    assert shape([2.6, 2.2], every=10) == "unclear"
    assert shape([12.4, 3.0, 6.2], every=10) == "unclear"  # not the lowest: on its way up


def test_a_short_row_that_climbs_at_every_point() -> None:
    """It has left its level; a sum that is printed as it grows has not, nor one with a dip."""
    assert shape([6.4, 6.6, 7.3, 9.1, 10.2]) == "risen"
    assert shape([0.7, 1.4, 2.0, 2.7, 3.4]) == "unclear"
    assert shape([6.4, 6.6, 6.5, 9.1, 10.2]) == "unclear"
    assert shape([6.4, 6.6, 6.7, 6.9, 7.0]) == "unclear"


def test_a_jump_in_mid_run_that_stays_is_seen() -> None:
    """The stretch with the lowest median may hold the jump itself; and an end above the whole
    beginning's level has not fallen, though the very first values stood higher."""
    chance = random.Random(3)
    down = [4.5 + 6 * math.exp(-i / 110) + chance.gauss(0, 0.05) for i in range(330)]
    up = [9.4 + 0.9 * math.exp(-i / 60) + chance.gauss(0, 0.12) for i in range(230)]

    assert shape([*down, *up]) == "stepped-up"
    assert shape([*down, *(loss - 2.4 for loss in up)]) == "unclear"


def test_a_rise_at_the_beginning_that_falls_ever_since_is_no_divergence() -> None:
    """Though the end lies above the first point; where it stays up there it is one."""
    up = [1.0, 2.8, 4.6, 7.0, 7.9]
    down = [7.0 - 0.18 * i for i in range(19)]

    assert shape([*up, *down]) == "unclear"
    assert shape([*up, *(7.4 + 0.2 * (i % 3) for i in range(19))]) == "spiked"


def test_ln_2_in_every_epoch_is_a_model_that_cannot_tell() -> None:
    """Over batches it may be the beginning of a preference loss, which starts there."""
    even = [0.6932, 0.6931, 0.6932, 0.6930, 0.6932, 0.6931]

    assert shape(even, epochs=True) == "undecided"
    assert shape(even) == "unclear"
    assert shape([*even, 0.6903], epochs=True) == "unclear"
    assert shape([1.3863, 1.3862, 1.3864, 1.3863, 1.3861], epochs=True) == "undecided"
    assert shape([1.3883, 1.3882, 1.3884, 1.3883, 1.3881], epochs=True) == "unclear"


def test_a_few_losses_that_fell_and_then_stay_far_above_the_first() -> None:
    """What only grows, or rose before it ever fell, is a sum or a term that is phased in."""
    climbed = [1.64, 1.44, 3.2, 6.35, 5.53, 4.9, 4.92, 4.66]

    assert shape(climbed) == "spiked"
    assert shape([1.64, 1.7, 3.2, 6.35, 5.53, 4.9, 4.92, 4.66]) != "spiked"
    assert shape([1.64, 1.44, 3.2, 6.35, 1.5, 4.9, 1.6, 1.4]) != "spiked"


def test_a_few_losses_that_fell_in_single_file_and_turned_back() -> None:
    """Half of the way at the least, for five points; not those that scatter, nor by and by."""
    down = [9.8, 8.1, 6.9, 6.2, 5.9, 5.6]
    up = [7.1, 8.2, 8.8, 9.1, 9.2, 9.15, 9.2, 9.3]

    assert shape([*down, *up]) == "spiked"
    assert shape([*down, *up[:4]]) != "spiked"
    assert shape([*down, *up[:5], 6.0, 9.2, 9.3]) != "spiked"
    assert shape([*down, 6.1, 6.6, 7.1, 7.6, 8.1, 8.6, 9.1, 9.2, 9.3, 9.4, 9.5]) != "spiked"
    assert shape([9.8, 6.9, 8.1, 5.9, 6.2, 5.6, *up]) != "spiked"
    assert shape([*down, *(one - 2 for one in up)]) != "spiked"


def test_a_learning_rate_of_nought() -> None:
    """A rate that is only displayed as nought shows by a loss that falls."""
    chance = random.Random(3)
    flat = [6.2 + 0.02 * chance.gauss(0, 1) for _ in range(40)]

    def of(losses: Sequence[float], rate: float) -> str:
        track = Track("train.log", Place(), None, "plain")
        for i, loss in enumerate(losses):
            track.add(Progress("train", step=i, loss=loss, lr=rate), i + 1, None, 0)
        found = curve(Facts(targets=("r",), tracks=(track,), attempts=(Attempt(0, "completed"),)))
        assert found is not None
        return found.shape

    assert of(flat, 0.0) == "flat-no-rate"
    assert of(flat, 1e-5) == "unclear"
    assert of(descent(), 0.0) == "falling"


@pytest.mark.parametrize(("level", "told"), [(64.0, "stepped-up"), (4.0, "falling")])
def test_a_run_that_goes_on_far_above_its_parents_first_loss(level: float, told: str) -> None:
    """Worse than a model that knew nothing; one that only lost what it knew is another matter.
    A loss that falls from there may be of other data."""
    track = Track("train.log", Place(), None, "plain")
    for i, loss in enumerate(descent(60)):
        track.add(Progress("train", step=i, loss=loss), i + 1, None, 0)
    for i in range(60):
        loss = level * (2 - i / 60)
        track.add(Progress("train", step=60 + i, loss=loss), 61 + i, None, 1)
    attempts = (Attempt(0, "completed"), Attempt(1, "completed"))
    found = curve(Facts(targets=("run",), tracks=(track,), attempts=attempts))

    assert found is not None
    assert found.shape == told
    assert found.onset is None or found.onset.step == 60


@pytest.mark.parametrize("noise", [0.0, 3.0])
def test_a_next_stage_is_not_the_run_before_gone_wrong(noise: float) -> None:
    """One that made all its planned steps had come to its end."""
    stages = [Track(f"stage{n}.log", Place(), None, "plain") for n in (1, 2)]
    chance = random.Random(5)
    for i, loss in enumerate(descent(60)):
        stages[0].add(Progress("train", step=i, planned=60, loss=loss), i + 1, None, 0)
    for i in range(60):
        loss = 64.0 + noise * chance.gauss(0, 1) - (0.0 if noise else i / 3)
        stages[1].add(Progress("train", step=60 + i, planned=120, loss=loss), i + 1, None, 1)
    attempts = (Attempt(0, "completed"), Attempt(1, "completed"))

    def seen() -> str:
        found = curve(Facts(targets=("run",), tracks=tuple(stages), attempts=attempts))
        assert found is not None
        return found.shape

    assert seen() == ("unclear" if noise else "falling")
    stages[0].planned = None
    assert seen() == ("spiked" if noise else "stepped-up")


def test_a_few_losses_that_climb_in_small_steps_are_a_term_phased_in() -> None:
    assert shape([0.5, 0.3, 0.2, 0.6, 1.1, 1.6, 2.0, 2.4, 2.6, 3.0]) != "spiked"


@pytest.mark.parametrize(
    ("rate", "code"), [("0.00e+00", "E1"), ("0.0", "E1"), ("0.0000", None), ("0.000000", None)]
)
def test_a_rate_of_a_few_decimals_shows_no_nought(
    tmp_path: Path, rate: str, code: str | None
) -> None:
    """Nor a small one: a fine-tuned model's loss is flat and noisy from the first step."""
    chance = random.Random(3)
    rows = (f"step {n}/500 loss {2 + 0.3 * chance.random():.4f} lr {rate}\n" for n in range(1, 90))
    (tmp_path / "train.log").write_text("".join(rows))

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


def test_a_loss_that_ends_in_the_very_number_of_chance() -> None:
    """ln 1000 to five decimals; four show ln 2 through the warm-up of a preference loss, and what
    was lower once has learnt."""
    chance = [6.91203, 6.9053, 6.9059, 6.9065, *[6.90776] * 6]

    assert shape(chance) == "undecided"
    assert shape([6.91, 6.4, 6.2, *[6.90776] * 6]) != "undecided"
    assert shape([6.91203, 6.9053, 6.9059, 6.9065, *[6.9066] * 6]) == "unclear"
    assert shape([0.6931] * 12) == "unclear"
    assert shape([0.69315] * 12) == "unclear"
    assert shape([0.69315] * 20) == "undecided"


def noise(first: float, seed: int, n: int = 90) -> list[float]:
    """What a diffusion model's steps draw about a level, after so low a first one."""
    chance = random.Random(seed)
    return [first, *(0.11 * math.exp(0.35 * chance.gauss(0, 1)) for _ in range(n))]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("first", [0.012, 0.026])
def test_one_low_draw_begins_no_rise(first: float, seed: int) -> None:
    """However few of the later ones are as low."""
    losses = [max(loss, 1.2 * first) for loss in noise(first, seed)]
    losses[0] = first

    assert shape(losses) != "spiked"


def test_a_level_far_beyond_all_scatter_is_a_rise() -> None:
    chance = random.Random(3)

    assert shape([2.1, *(31.0 * (1 + 0.05 * chance.gauss(0, 1)) for _ in range(60))]) == "spiked"
