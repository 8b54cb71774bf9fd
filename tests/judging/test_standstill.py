"""Losses that never move, and what only looks as if they did not."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.standstill import flat_from_start, frozen, leapt_at
from flatline.model import Place, Progress
from flatline.tracks import Track

NAN = math.nan


def track(
    losses: Sequence[float], every: int = 100, first: int = 0, epoch: float | None = None
) -> Track:
    made = Track("train.log", Place(), None, "plain")
    for i, loss in enumerate(losses):
        at = None if epoch is None else epoch + i / 10
        point = Progress("train", step=first + i * every, loss=loss, epoch=at)
        made.add(point, i + 1, None, 0)
    return made


def flat(losses: Sequence[float], every: int = 100, first: int = 0) -> bool:
    return flat_from_start(track(losses, every, first), list(enumerate(losses)))


def level(mean: float, scatter: float, n: int = 40) -> list[float]:
    chance = random.Random(5)
    return [mean * (1 + scatter * chance.gauss(0, 1)) for _ in range(n)]


def test_one_number_in_every_epoch() -> None:
    assert frozen([6.0419, *[6.0588] * 6])
    assert frozen([9.731205, 9.731211, 9.731207, 9.731199, 9.731214])


@pytest.mark.parametrize(
    "losses",
    [
        [0.0123] * 8,  # three digits: a loss that has come down
        [6.0588] * 4,
        [6.0419, 6.0588, 6.0588, 6.0581, 6.0588, 6.0588, 6.0588],
        [4.1, 3.2, 2.6, *[2.5123] * 5],
        [0.0] * 8,
    ],
)
def test_what_is_not_one_number(losses: list[float]) -> None:
    assert not frozen(losses)


def test_a_leap_to_one_number() -> None:
    """87.3365 is what Caffe's softmax loss prints once its inputs are no numbers."""
    assert leapt_at([9.25, *[87.3365] * 9]) == 1
    assert leapt_at([9.25, 8.75, *[87.3365] * 9]) == 2


@pytest.mark.parametrize(
    "losses",
    [
        [9.25, *[87.3365] * 5],
        [2.1, 2.1, 2.1, *[4.125] * 9],  # a display repeats the last number
        [9.25, *[9.3365] * 9],
        [9.25, *[2.3365] * 9],
        [9.25, *[12.5] * 9],  # three digits
        [87.3365] * 9,
    ],
)
def test_what_is_no_leap(losses: list[float]) -> None:
    assert leapt_at(losses) is None


@pytest.mark.parametrize("scatter", [0.0005, 0.005, 0.02])
def test_a_level_from_the_very_beginning(scatter: float) -> None:
    assert flat(level(2.3026, scatter))


def test_levels_that_prove_nothing() -> None:
    """Too short a stretch, one from the middle of a run, noise of diffusion, a slow descent."""
    assert not flat(level(2.3, 0.005), every=10)
    assert not flat(level(2.3, 0.005), first=50_000)
    assert not flat(level(0.12, 0.4))
    assert not flat([2.3 - 0.002 * i + x for i, x in enumerate(level(0.001, 0.5))])
    assert not flat(level(2.3, 0.005, n=12))
    losses = level(2.3, 0.005)
    assert not flat_from_start(track(losses, every=1, epoch=7.0), list(enumerate(losses)))


def verdict(folder: Path, *lines: str) -> tuple[str | None, float]:
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    found = diagnose(collect(Request((str(folder),))))
    return found.code, found.confidence


def steps(*losses: float) -> list[str]:
    return [f"Iteration {20 * n}, loss = {loss}" for n, loss in enumerate(losses)]


def test_a_log_that_ends_with_its_first_lost_loss(tmp_path: Path) -> None:
    """Of a run that scales no loss; one that goes on, or scales, may have skipped that step."""
    code, confidence = verdict(tmp_path, *steps(5.70, 5.71, 5.69, NAN))
    assert code == "E1"
    assert confidence < 0.8
    assert verdict(tmp_path, *steps(5.70, 5.71, 5.69, NAN, 5.7))[0] is None
    scaled = [line + ", loss scale = 32768" for line in steps(5.70, 5.71, 5.69, NAN)]
    assert verdict(tmp_path, *scaled)[0] is None
    told = "Using 16bit Automatic Mixed Precision (AMP)", *steps(5.70, 5.71, 5.69, NAN)
    assert verdict(tmp_path, *told)[0] is None
    assert verdict(tmp_path, *steps(5.70, 5.71, 5.69, NAN), "a", "b", "c", "d")[0] is None


def test_batches_that_scatter_around_a_low_first_one(tmp_path: Path) -> None:
    """What comes after is above twice the first value, and no higher than what came before."""
    noisy = [0.124, 0.448, 0.03, 0.089, 0.126, 0.31, 0.12, 0.2, 0.303, 0.278, 0.25, 0.354, 0.29]
    assert verdict(tmp_path, *steps(*noisy))[0] is None


def test_a_counter_that_begins_anew_below_each_epoch_s_line(tmp_path: Path) -> None:
    """It is the epoch's own, whether it is read in full or by the column; its end is no run's."""
    lines = []
    for epoch in range(4):
        lines += [f"Epoch {epoch + 1}", "-----"]
        lines += [
            f"loss: {4 / (epoch + 1) - n / 100:.6f}  [{6400 * n:>5d}/60000]" for n in range(10)
        ]
    assert verdict(tmp_path, *lines)[0] is None
    facts = collect(Request((str(tmp_path),)))
    assert len(facts.attempts) == 1
    counted = list(facts.tracks[0].steps)
    assert counted == sorted(set(counted))
