"""The rank that comes last to the collectives from one moment on, by what each rank printed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

Wait = Callable[[int, int], float]
"""(rank, step) -> ms waited."""
STEPS, FROM = 240, 140


def judged(folder: Path, waits: Wait, slow: Callable[[int], bool]) -> Verdict:
    for rank in range(8):
        lines, at = [], datetime(2026, 3, 1, 10, tzinfo=UTC)
        for n in range(1, STEPS):
            took = 1150.0 if slow(n) else 850.0 + n % 5
            at += timedelta(milliseconds=25 * took)
            lines.append(
                f"{at:%Y-%m-%d %H:%M:%S} it {25 * n:>5} loss {4 - n / 100:.4f} | fwd  237.8 bwd"
                f"  467.6 comm_wait {waits(rank, n):6.1f} | total {took:7.1f} ms\n"
            )
        host = folder / ("n1" if rank < 4 else "n2")
        host.mkdir(exist_ok=True)
        (host / f"rank{rank}.log").write_text("".join(lines))
    return diagnose(collect(Request((str(folder),))))


def late(rank: int, n: int) -> float:
    return 390.0 + rank if n > FROM and rank != 5 else 95.0 + (rank + n) % 7


def test_the_one_that_others_wait_for_in_the_slow_phase(tmp_path: Path) -> None:
    """Before it they all waited alike."""
    verdict = judged(tmp_path, late, lambda n: n > FROM)

    assert verdict.code == "D3"
    assert [place.rank for place in verdict.culprits] == [5]


@pytest.mark.parametrize(
    "waits",
    [
        lambda rank, n: 390.0 + rank if n > FROM else 95.0 + (rank + n) % 7,
        lambda rank, n: 390.0 if n > FROM and rank != n % 8 else 95.0 + (rank + n) % 7,
        lambda rank, n: 390.0 if n > FROM and rank < 4 else 95.0 + (rank + n) % 7,
    ],
    ids=["all wait", "now one and now another", "a stage"],
)
def test_near_misses(tmp_path: Path, waits: Wait) -> None:
    """Nobody is waited for by the others."""
    assert judged(tmp_path, waits, lambda n: n > FROM).code != "D3"
