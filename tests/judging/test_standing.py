"""An accuracy that stands still, where no loss shows whether anything was learnt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict


def verdict(folder: Path, line: Callable[[int], str], count: int = 12) -> Verdict:
    (folder / "train.log").write_text("".join(f"{line(n)}\n" for n in range(1, count + 1)))
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    "line",
    [
        lambda n: f"Epoch {n}/30 acc: 0.1000",
        lambda n: f"Epoch {n} - train accuracy: 10.00% - {40 + n}s",
        lambda n: f"Epoch {n}/30\n - 80s - acc: 0.5000 - val_acc: 0.5000",
        lambda n: f"epoch={n} val_acc=0.3333",
        lambda n: f"Epoch {n}\t\tTrain Accuracy: 14.1072 %\t\tVal Accuracy: 13.9204 %",
        lambda n: f"EPOCH {n}\naccuracy             0.2500\nsec_per_batch     1.{n}",
    ],
)
def test_at_chance_from_epoch_to_epoch(tmp_path: Path, line: Callable[[int], str]) -> None:
    """To the last digit: told, and never with confidence."""
    told = verdict(tmp_path, line)

    assert (told.code, told.fault_class) == ("E1", "metric-at-chance")
    assert 0.5 < told.confidence < 0.8


def test_two_accuracies_that_do_not_move(tmp_path: Path) -> None:
    """Of the training's cases and of others, wherever they stand, need fewer epochs."""
    told = verdict(tmp_path, lambda n: f"Epoch {n} train acc: 0.641307 val acc: 0.652811", 6)

    assert (told.code, told.fault_class) == ("E1", "metric-stands")
    assert "0.641307 in all 6 epochs" in told.headline
    assert told.confidence < 0.8


@pytest.mark.parametrize(
    ("line", "count"),
    [
        (lambda n: f"Epoch {n}/30 acc: 0.10", 12),
        (lambda n: f"Epoch {n}/30 acc: 10.0%", 12),
        (lambda n: f"Epoch {n}/30 acc: 0.1000", 9),
        (lambda n: f"Epoch {n}/30 acc: 0.{1000 + n}", 12),
        (lambda n: f"Epoch {n}/30 acc: 0.{1000 + (n == 12)}", 12),
        (lambda n: f"Epoch {n}/30 acc: 0.{8000 + 9 * n} val_acc: 0.5000", 12),
        (lambda n: f"Epoch {n}/30 val_acc: 0.9312", 12),
        (lambda n: f"Epoch {n}/30 train acc: 0.8125 val acc: 0.8750", 12),
        (lambda n: f"Epoch {n}/30 acc: 0.0000", 12),
        (lambda n: f"Epoch {n}/30 acc: 1.0000", 12),
        (lambda n: f"Epoch {n}/30 best acc: 0.1000", 12),
        (lambda n: f"Epoch 3 acc: 0.1000 ({n} min)", 12),
        (lambda n: f"model {n} evaluated, acc: 0.1000", 12),
        (lambda n: f"Epoch {n} reward: {n / 7:.3f} acc: 0.1000", 12),
        (lambda n: f"step {n * 10} acc: 0.5000", 15),
        (lambda n: f"Epoch {n} loss: {2.3 * 0.8**n:.4f} val_acc: 0.1000", 30),
    ],
    ids=[
        "few digits", "of a percentage", "few epochs", "moves", "moved at last", "another moves",
        "good from the start", "of few cases", "nought", "all right", "the best one",
        "of one epoch", "of no epoch", "rewards", "few steps", "a loss falls",
    ],
)  # fmt: skip
def test_what_stands_still_and_says_nothing(
    tmp_path: Path, line: Callable[[int], str], count: int
) -> None:
    assert verdict(tmp_path, line, count).code != "E1"
