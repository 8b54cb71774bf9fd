"""An undated curve is dated by what the same log printed of the same steps, right beside it."""

from __future__ import annotations

from itertools import pairwise
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


ENGINE = (
    "[2026-06-11 {h:02d}:{m:02d}:{s:02d},212] [INFO] [logging.py:96:log_dist] [Rank 0] step={n},"
    " skipped=0, lr=[9e-06], mom=[(0.9, 0.95)]\n"
)


def uncounted(folder: Path, every: int = 5, ranks: int = 1, between: int = 0) -> Facts:
    """A dict of transformers behind each line of DeepSpeed's; its epoch is rounded."""
    text, at = "", 9 * 3600
    for n in range(5, 605, 5):
        at += 12
        text += ENGINE.format(h=at // 3600, m=at // 60 % 60, s=at % 60, n=n) * ranks
        text += "cache was emptied\n" * between
        if n % every == 0:
            text += f"{{'loss': {3 * 0.998**n:.4f}, 'grad_norm': 1.0, 'epoch': {n / 9000:.2f}}}\n"
    (folder / "train.log").write_text(text)
    return collect(Request((str(folder),)))


@pytest.mark.parametrize("ranks", [1, 2])
def test_points_that_count_nothing_take_turns(tmp_path: Path, ranks: int) -> None:
    track = uncounted(tmp_path, ranks=ranks).main_track(0)

    assert track is not None
    assert track.format == "hf_trainer"
    assert track.assumed
    assert list(track.steps[:3]) == [5, 10, 15]
    assert [round(b - a, 3) for a, b in pairwise(track.at)] == [12.0] * 119


@pytest.mark.parametrize("how", [{"every": 10}, {"between": 20}], ids=["every other", "far apart"])
def test_points_that_take_no_turns(tmp_path: Path, how: dict[str, int]) -> None:
    """Of which step they tell cannot be known, or was long before."""
    facts = uncounted(tmp_path, **how)
    (track,) = (track for track in facts.tracks if track.format == "hf_trainer")

    assert not track.assumed
    assert max(track.steps) == -1
