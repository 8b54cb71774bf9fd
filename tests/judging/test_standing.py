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


def at_chance(n: int, loss: float = 2.3026, acc: str = "0.1000") -> str:
    """Two batches and the mean of an epoch."""
    batches = [f"epoch {n} batch {b} loss {loss + b * 2e-6:.4f}" for b in (0, 100)]
    return "\n".join([*batches, f"epoch {n}: train_loss {loss:.4f} val_acc {acc}"])


def test_a_loss_that_says_the_same_needs_fewer_epochs(tmp_path: Path) -> None:
    """An accuracy of a tenth beside a loss of ln 10: told, below confident."""
    told = verdict(tmp_path, lambda n: at_chance(n, 2.34 if n == 1 else 2.3026), 6)

    assert (told.code, told.fault_class) == ("E1", "metric-at-chance")
    assert "ln 10" in told.headline
    assert 0.5 < told.confidence < 0.8


def test_cases_drawn_anew_wander_about_chance(tmp_path: Path) -> None:
    """An accuracy of the training's own cases need not stand still."""
    told = verdict(
        tmp_path,
        lambda n: at_chance(n, 2.34 if n == 1 else 2.3026) + f" train_acc: 0.09{70 + n}",
        6,
    )
    assert (told.code, told.fault_class) == ("E1", "metric-at-chance")


@pytest.mark.parametrize(
    "line",
    [
        lambda n: at_chance(n, 2.34 - 0.1 * n),
        lambda n: at_chance(n, acc=f"0.{1000 + 20 * n}"),
        lambda n: at_chance(n, 1.61 if n == 3 else 2.3026),
        lambda n: at_chance(n, 2.34 if n == 1 else 2.2),
        lambda n: at_chance(n, 2.34 if n < 3 else 2.3026 + 0.03 * (n % 2)),
        lambda n: at_chance(n, acc="0.5000"),
    ],
    ids=[
        "the loss falls", "the accuracy rises", "it had learnt", "another level",
        "the loss scatters", "another number of classes",
    ],
)  # fmt: skip
def test_a_loss_that_says_another_thing(tmp_path: Path, line: Callable[[int], str]) -> None:
    assert verdict(tmp_path, line, 6).fault_class != "metric-at-chance"


def test_four_epochs_at_chance_are_too_few(tmp_path: Path) -> None:
    """A rate that warms up may keep a loss at chance as long."""
    told = verdict(tmp_path, lambda n: at_chance(n, 2.34 if n == 1 else 2.3026), 4)
    assert told.fault_class != "metric-at-chance"


def fallen(n: int, best: str = "0.8843", train: str = "0.5003", val: str = "0.5000") -> str:
    return (
        f"epoch {n + 40} best val acc: {best}, train loss: {1 + (n * 7 % 5) / 9:.4f};"
        f" train acc: {train} val acc: {val}"
    )


def test_an_accuracy_that_had_been_better(tmp_path: Path) -> None:
    """By the best that each line repeats: what was learnt is lost."""
    told = verdict(tmp_path, fallen, 7)
    assert (told.code, told.fault_class, told.confidence < 0.8) == ("E1", "metric-at-chance", True)
    assert "it had been 0.8843" in told.headline


def test_an_accuracy_that_fell_before_our_eyes(tmp_path: Path) -> None:
    """By the lines of the epochs before."""
    told = verdict(
        tmp_path,
        lambda n: (
            f"Epoch {n} train acc: {70 + n / 9:.2f}% val acc: {61 + n / 7:.2f}%"
            if n < 20
            else f"Epoch {n} train acc: {10 + n % 2 / 50:.2f}% val acc: 10.00%"
        ),
        30,
    )
    assert (told.code, told.fault_class, told.confidence < 0.8) == ("E1", "metric-at-chance", True)


@pytest.mark.parametrize(
    ("line", "count"),
    [
        (fallen, 4),  # too few epochs
        (lambda n: fallen(n, best="0.5400"), 7),
        (lambda n: fallen(n, train=f"0.{9000 + n}"), 7),  # the evaluation's fault
        (lambda n: fallen(n, val=f"0.{5000 + n}"), 7),
        (lambda n: fallen(n - 40), 7),  # the best of another run
        (lambda n: fallen(n, best="0.9931", val="0.7700"), 7),
        (lambda n: f"episode {n} mean reward 3.1\n{fallen(n)}", 7),
    ],
)
def test_what_has_lost_nothing_that_is_known(
    tmp_path: Path, line: Callable[[int], str], count: int
) -> None:
    assert verdict(tmp_path, line, count).code is None
