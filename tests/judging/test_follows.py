"""D6 of a log alone: a pace that follows the balance of the experts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

STEPS, MOVED = 140, 48
Course = Callable[[int], float]


def ramp(first: float, each: float, since: int = MOVED) -> Course:
    return lambda n: first + each * max(0, n - since) + 0.01 * (n * 7 % 5)


def comes_to(first: float, each: float, points: int) -> Course:
    return lambda n: first + each * min(points, max(0, n - MOVED)) + 0.01 * (n * 7 % 5)


def learnt(course: Course) -> Course:
    """A router that balances its experts first."""
    return lambda n: course(n) + 1.2 * 0.5**n


def leap(first: float, then: float, since: int = MOVED) -> Course:
    return lambda n: (then if n >= since else first) + 0.01 * (n * 7 % 5)


@pytest.mark.parametrize(
    ("balance", "took_s", "code"),
    [
        (ramp(1.1, 0.06), ramp(3.0, 0.12), "D6"),
        (learnt(ramp(1.1, 0.06)), ramp(3.0, 0.12), "D6"),
        (comes_to(1.1, 0.06, 20), comes_to(3.0, 0.12, 20), "D6"),
        (comes_to(1.1, 0.06, 20), ramp(3.0, 0.12), None),  # it goes on where nothing grows
        (leap(1.1, 2.2), leap(3.0, 5.0), None),  # it may have met by chance
        (ramp(1.1, 0.06), leap(3.0, 5.0), None),  # what slowed it does not grow
        (ramp(1.1, 0.06, 12), ramp(3.0, 0.12), None),
        (ramp(1.1, 0.0), ramp(3.0, 0.12), None),
    ],
)
def test_a_pace_that_follows(
    tmp_path: Path, balance: Course, took_s: Course, code: str | None
) -> None:
    at, lines = datetime(2026, 5, 4, 9, tzinfo=UTC), []
    for n in range(STEPS):
        took = took_s(n) + 0.02 * (n * 3 % 7)
        at += timedelta(seconds=10 * took)
        lines.append(
            f"[{at:%Y-%m-%d %H:%M:%S}] step {10 * n} | loss {4 - n / 60:.4f} | moe loss:"
            f" {balance(n):.4f} | step_time {took:.3f}s\n"
        )
    (tmp_path / "train.log").write_text("".join(lines))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code if verdict.state == "found" else None) == code
    assert verdict.confidence < 0.8
