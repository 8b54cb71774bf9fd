"""An undated curve is dated by what the same log printed of the same steps, right beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.facts import Facts
from flatline.judging.throughput import course

TIMER = (
    "node1: [2025-04-15 {h:02d}:{m:02d}:{s:02d},100] [INFO] [timer.py:258:stop] epoch=0/"
    "micro_step={n}/global_step={n}, RunningAvgSamplesPerSec=88.7, CurrSamplesPerSec=56.8,"
    " MemAllocated=28.49GB, MaxMemAllocated=50.15GB\n"
)


def log(folder: Path, between: int = 0, off: int = 0, of: int = 600) -> Facts:
    """A loss by `print` after each line of DeepSpeed's, whose steps take twice as long from the
    middle on."""
    text, at = "", 9 * 3600
    for n in range(10, of + 10, 10):
        at += 20 if n <= of / 2 else 40
        text += TIMER.format(h=at // 3600, m=at // 60 % 60, s=at % 60, n=n)
        text += "node1: something else\n" * between
        text += f"node1: step {n + off}/{of} loss {4 * 0.999**n:.4f} gnorm 0.3\n"
    (folder / "train.log").write_text(text)
    return collect(Request((str(folder),)))


def test_a_printed_loss_is_as_old_as_its_step(tmp_path: Path) -> None:
    facts = log(tmp_path)
    track, run = facts.main_track(0), course(facts)

    assert track is not None
    assert run is not None
    assert track.has_loss[0]
    assert track.assumed
    assert facts.point(track, 0).cite.at_assumed
    assert [round(phase.part, 1) for phase in run.slow] == [0.5]


@pytest.mark.parametrize(("between", "off"), [(20, 0), (0, 5)])
def test_other_steps_and_lines_far_apart_are_of_another_time(
    tmp_path: Path, between: int, off: int
) -> None:
    """A loop with counts of its own, and a loss that is printed when much else was."""
    facts = log(tmp_path, between, off)
    track = facts.main_track(0)

    assert track is not None
    assert not track.assumed
    assert track.at[0] != track.at[0]


STEPPED = (
    "[2025-04-15 {h:02d}:{m:02d}:{s:02d},100] [INFO] [Rank 0] step={n}, skipped=0, lr=[2e-05]\n"
)
ROW = "{{'loss': {loss:.4f}, 'grad_norm': 1.2, 'learning_rate': 2e-05, 'epoch': {epoch:.3f}}}\n"


def rows(folder: Path, each: int) -> Facts:
    """The Trainer's rows, of which each stands below the last of so many of DeepSpeed's steps, or
    two below one."""
    text, at = "", 9 * 3600
    for n in range(10, 610, 10):
        at += 20 if n <= 300 else 40
        text += STEPPED.format(h=at // 3600, m=at // 60 % 60, s=at % 60, n=n)
        row = ROW.format(loss=4 * 0.999**n, epoch=n / 600)
        text += row * 2 if not each else row if n % (10 * each) == 0 else ""
    (folder / "train.log").write_text(text)
    return collect(Request((str(folder),)))


@pytest.mark.parametrize("each", [1, 2])
def test_a_row_that_says_no_step_is_of_the_one_above(tmp_path: Path, each: int) -> None:
    facts = rows(tmp_path, each)
    track, run = facts.main_track(0), course(facts)

    assert track is not None
    assert run is not None
    assert track.has_loss[0]
    assert [*track.steps[:2]] == [10 * each, 20 * each]
    assert [round(phase.part, 1) for phase in run.slow] == [0.5]


def test_more_rows_than_steps_are_of_none(tmp_path: Path) -> None:
    track = rows(tmp_path, 0).main_track(0)

    assert track is not None
    assert max(track.steps) < 0
