"""Losses that one gradient threw to a level from which they have not come down."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.shapes import kicked_at

KICKED = 42


def losses(after: Callable[[int], float], count: int = 75) -> list[float]:
    """Falling from 10.8 to 6, and what follows the step that was kicked."""
    noise = random.Random(4)
    return [
        (6 + 4.8 * math.exp(-n / 14) if n <= KICKED else after(n - KICKED)) + noise.gauss(0, 0.05)
        for n in range(count)
    ]


def norms(peak: float, count: int = 75) -> list[float]:
    return [peak if n == KICKED else 0.8 + n % 3 * 0.1 for n in range(count)]


@pytest.mark.parametrize(
    ("after", "peak", "found"),
    [
        (lambda n: 7.3, 80.0, True),
        (lambda n: 7.3, 8.0, False),  # a norm as clipped runs show
        (lambda n: 7.3 - n / 30, 80.0, False),  # it falls again
        (lambda n: 7.3 if n < 12 else 6.0, 80.0, False),
        (lambda n: 6.3, 80.0, False),
        (lambda n: 7.3, math.nan, False),
    ],
    ids=["it stays", "a small kick", "it falls again", "it is over", "hardly higher", "no norm"],
)
def test_where_a_gradient_threw_the_loss(
    after: Callable[[int], float], peak: float, found: bool
) -> None:
    assert kicked_at(losses(after), norms(peak)) == (KICKED if found else None)


def comes_down(n: int) -> float:
    """From the spike itself to a level above the one before it."""
    return 7.3 + 4 * math.exp(-n / 4)


@pytest.mark.parametrize(
    ("after", "gradient", "found"),
    [
        (comes_down, 0.02, True),
        (comes_down, 0.8, False),
        (lambda n: comes_down(n) - n / 60, 0.02, False),
        (lambda n: comes_down(n) - 1.2, 0.02, False),
    ],
    ids=["gradients died", "as large as before", "it goes on falling", "hardly higher"],
)
def test_a_spike_that_came_down_to_a_level_above(
    after: Callable[[int], float], gradient: float, found: bool
) -> None:
    """Where gradients are as before, it may come down yet."""
    row, kicks = losses(after, 110), norms(80.0, 110)
    kicks[KICKED + 6 :] = [gradient] * len(kicks[KICKED + 6 :])

    assert kicked_at(row, kicks) == (KICKED if found else None)


def test_too_few_losses_behind_it() -> None:
    row = losses(lambda n: 7.3, KICKED + 12)
    assert kicked_at(row, norms(80.0, len(row))) is None


def test_a_run_that_goes_on_above_its_level(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(
        "".join(
            f"step {10 * n}/9000 loss {loss:.4f} grad_norm {norm:.3f} step_time 3.1s\n"
            for n, (loss, norm) in enumerate(
                zip(losses(lambda n: 7.3), norms(80.0), strict=True), 1
            )
        )
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.fault_class, verdict.confidence < 0.8) == ("E1", "stuck", True)
