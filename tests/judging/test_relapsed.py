"""Losses that went back to where they began, and came down to a level above the one they left."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.shapes import levels, relapsed_at

LEFT, PEAK, DOWN = 200, 218, 226


def losses(peak: Callable[[int], float], after: Callable[[int], float]) -> list[float]:
    """Falling from 9 to 6, what they peak by, and where they come down to."""
    noise = random.Random(7)
    row = []
    for n in range(340):
        level = 9 - 3 * n / LEFT if n < LEFT else peak(n) if n < DOWN else after(n)
        row.append(level + noise.gauss(0, 0.03))
    return row


def back(n: int) -> float:
    return 6.5 + 3.0 * min(1, (n - LEFT) / (PEAK - LEFT) * 1.4)


@pytest.mark.parametrize(
    ("peak", "after", "found"),
    [
        (back, lambda n: 6.5, True),
        (back, lambda n: 6.5 - (n - DOWN) / 100, False),
        (back, lambda n: 6.1, False),
        (back, lambda n: 6.5 if n < 300 else 5.9, False),
        (lambda n: 9.5 if n == PEAK else 6.5, lambda n: 6.5, False),
        (lambda n: 6.5, lambda n: 6.5, False),
        (lambda n: back(n) if n < PEAK else 5.9, lambda n: 6.5, False),
    ],
    ids=[
        "it stands above",
        "it falls on",
        "hardly higher",
        "it came back late",
        "one bad batch",
        "other data",
        "it came back between",
    ],
)
def test_a_row_that_forgot_what_it_had(
    peak: Callable[[int], float], after: Callable[[int], float], found: bool
) -> None:
    row = losses(peak, after)
    at = relapsed_at(row, levels(row, len(row) // 6)[0])

    assert at is None if not found else at is not None and LEFT - 3 <= at <= LEFT + 1


def test_a_level_that_had_been_reached_for_good_is_not_left_by_it() -> None:
    """Where the row no longer fell before, a level above it tells nothing of what was lost."""
    noise = random.Random(7)
    flat = [6 + noise.gauss(0, 0.03) for _ in range(LEFT)]
    row = [*flat, *losses(back, lambda n: 6.5)[LEFT:]]

    assert relapsed_at(row, levels(row, len(row) // 6)[0]) is None


def test_a_run_whose_loss_ends_far_below_its_beginning_and_stands(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(
        "".join(
            f"step {n}/9000 loss {loss:.4f} step_time 3.1s\n"
            for n, loss in enumerate(losses(back, lambda n: 6.5), 1)
        )
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.fault_class, verdict.confidence < 0.8) == ("E1", "stuck", True)
    assert "best 6.1" in " ".join(one.text for one in verdict.shows)
