"""Equal steps of two logs, and levels of two runs."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.facts import Facts
from flatline.judging.levels import rank_chance
from flatline.judging.steps import PINNED, measures
from flatline.model import Measure


def run(
    folder: Path,
    took: Callable[[int], float],
    steps: range = range(1, 201),
    loss: Callable[[int], float] = lambda step: 9.0 * 0.99**step + 2,
    saves: tuple[int, ...] = (),
) -> Facts:
    """A plain log with a line a step."""
    noise = random.Random(folder.name)
    lines = []
    for step in steps:
        lines.append(f"step {step}/1000 loss {loss(step) + noise.gauss(0, 0.01):.4f}"
                     f" step_time {took(step) * noise.gauss(1, 0.004) * 1000:.2f} ms")  # fmt: skip
        if step in saves:
            lines.append(f"Saved checkpoint to out/step_{step}.pt")
    folder.mkdir()
    (folder / "job.log").write_text("\n".join(lines) + "\n")
    return collect(Request((str(folder),)))


def found(ours: Facts, theirs: Facts, name: str = "step time") -> Measure:
    return next(m for m in measures(ours, theirs, True) if m.name == name)


def test_repeats_do_not_differ(tmp_path: Path) -> None:
    """Noise of single steps makes no difference of the whole."""
    one = found(run(tmp_path / "a", lambda step: 1.0), run(tmp_path / "b", lambda step: 1.0))
    assert not one.differs
    assert abs(one.change_ratio) < 0.003
    assert one.noise_ratio >= PINNED


@pytest.mark.parametrize("part", [0.012, 0.1])
def test_a_slower_run_differs(part: float, tmp_path: Path) -> None:
    """By as much as every step took longer."""
    one = found(run(tmp_path / "a", lambda step: 1 + part), run(tmp_path / "b", lambda step: 1.0))
    assert one.differs
    assert one.change_ratio == pytest.approx(part, abs=0.003)
    assert one.loss_ratio == pytest.approx(1 - 1 / (1 + part), abs=0.003)


def test_only_equal_steps_are_compared(tmp_path: Path) -> None:
    """A run resumed at step 100 is not compared with the first steps of the other, which were
    another length."""
    ours = run(tmp_path / "a", lambda step: 1.0, range(100, 200))
    theirs = run(tmp_path / "b", lambda step: 3.0 if step < 100 else 1.0)
    one = found(ours, theirs)
    assert one.steps is not None
    assert one.steps[0] > 100
    assert not one.differs


def test_warm_up_and_saves_are_left_out(tmp_path: Path) -> None:
    """A slow first step, and steps that saved, change nothing."""
    every = tuple(range(10, 200, 10))
    ours = run(tmp_path / "a", lambda s: 20.0 if s == 1 or s % 10 == 0 else 1.0, saves=every)
    one = found(ours, run(tmp_path / "b", lambda step: 1.0))
    assert not one.differs
    assert one.points < 150


def test_a_speed_that_drifts_hides_a_small_difference(tmp_path: Path) -> None:
    """What the runs stray by themselves is what a repeat may stray by."""
    ours = run(tmp_path / "a", lambda step: 1.01 * (1.04 if step % 100 < 50 else 1.0))
    theirs = run(tmp_path / "b", lambda step: 1.04 if step % 80 < 30 else 1.0)
    assert not found(ours, theirs).differs


def test_the_step_from_which_on_speeds_differ_is_found(tmp_path: Path) -> None:
    """Equal until step 120, a tenth slower from there."""
    ours = run(tmp_path / "a", lambda step: 1.1 if step > 80 else 1.0)
    one = found(ours, run(tmp_path / "b", lambda step: 1.0))
    assert one.since_step == pytest.approx(81, abs=4)


def test_losses_of_one_level_do_not_differ_and_one_that_parts_does(tmp_path: Path) -> None:
    """And the step at which it parts is told."""
    base = run(tmp_path / "b", lambda step: 1.0)
    same = run(tmp_path / "a", lambda step: 1.0)
    worse = run(
        tmp_path / "c", lambda step: 1.0,
        loss=lambda step: 9.0 * 0.99**step + 2 + max(0.0, (step - 100) / 50),
    )  # fmt: skip
    assert not found(same, base, "loss").differs
    parted = found(worse, base, "loss")
    assert parted.differs
    assert parted.since_step == pytest.approx(110, abs=15)


def test_few_equal_steps_compare_speeds_by_level_and_no_losses(tmp_path: Path) -> None:
    """A run that went on where the other ended shares no step with it."""
    ours = run(tmp_path / "a", lambda step: 1.05, range(200, 300))
    theirs = run(tmp_path / "b", lambda step: 1.0, range(100))
    told = {m.name: m for m in measures(ours, theirs, True)}
    assert told["step time"].steps is None
    assert told["step time"].differs
    assert "loss" not in told


def test_the_chance_of_ranks() -> None:
    """Small for samples apart, whole for the same ones, and never small for few."""
    assert rank_chance([2.0] * 12, [1.0] * 12) < 1e-5
    assert rank_chance([1.0, 2.0, 3.0] * 4, [1.0, 2.0, 3.0] * 4) > 0.9
    assert rank_chance([5.0, 6.0], [1.0, 2.0]) > 0.05
    assert rank_chance([], [1.0]) == 1.0
    assert rank_chance([1.0, 1.0], [1.0, 1.0]) == 1.0


def test_changes_of_single_signals_by_chance_are_rare() -> None:
    """One signal of noise alone is told apart in about one of a hundred at a hundredth."""
    noise = random.Random(7)
    draws = [
        rank_chance([noise.gauss(0, 1) for _ in range(24)], [noise.gauss(0, 1) for _ in range(24)])
        for _ in range(2000)
    ]
    assert sum(chance <= 0.01 for chance in draws) / len(draws) == pytest.approx(0.01, abs=0.006)
