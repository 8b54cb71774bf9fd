"""The accused of a heartbeat whose log dates steps and holds no progress line."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

WORD = (
    "E0302 04:20:01.000000    77 coordination_service.cc:1379] /job:jax_worker/replica:0/task:2"
    " has been set to ERROR in coordination service: UNAVAILABLE: Task"
    " /job:jax_worker/replica:0/task:2 heartbeat timeout. This indicates that the remote task has"
    " failed, got preempted, or crashed unexpectedly.\n"
)
LAST = 240


def stamp(second: float) -> str:
    return f"2026-03-02 04:{int(second // 60):02d}:{second % 60:06.3f}".replace(".", ",")


def judged(folder: Path, until: int = LAST, late_s: float = 0.4) -> Verdict:
    """Steps of 5 s on task 0, and those which task 2 says that it ran."""
    row = "{at} completed step: {n}, seconds: 5.0, TFLOP/s/device: 400.1, loss: {l:.3f}\n"
    told = [row.format(at=stamp(5 * n), n=n, l=9 - n / 100) for n in range(1, LAST + 1)]
    (folder / "task0.log").write_text("".join(told) + f"{stamp(1201)} {WORD}")
    own = [f"{stamp(5 * n + late_s)} worker enqueued step {n}\n" for n in range(60, until + 1)]
    (folder / "task2.log").write_text("".join(own))
    return diagnose(collect(Request((str(folder),))))


def test_each_step_that_another_made(tmp_path: Path) -> None:
    """Up to the declaration."""
    verdict = judged(tmp_path)

    assert verdict.code == "C4"
    assert [place.task for place in verdict.cleared] == [2]


@pytest.mark.parametrize(
    ("until", "late_s"), [(LAST - 1, 0.4), (215, 0.4), (150, 0.4), (LAST, -40.0)],
    ids=["all but the last", "into the window", "up to it", "a clock or a stage of its own"],
)  # fmt: skip
def test_what_shows_no_work(tmp_path: Path, until: int, late_s: float) -> None:
    """It stopped before the others did, or its lines are not of the steps they made."""
    assert judged(tmp_path, until, late_s).code != "C4"
