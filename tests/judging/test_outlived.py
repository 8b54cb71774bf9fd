"""A rank that was waited for, and how its process ended."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

STEPS = "".join(f"2026-06-22 20:{n // 2:02d}:{n % 2 * 30:02d} step {n} loss {3 * 0.99**n:.4f}\n"
                for n in range(1, 100))  # fmt: skip
WAITED = "".join(
    f"[rank{n}]:[E622 21:00:12.470668800 ProcessGroupNCCL.cpp:616] [Rank {n}] Watchdog caught"
    " collective operation timeout: WorkNCCL(SeqNum=84611, OpType=ALLREDUCE, NumelIn=8388608,"
    " NumelOut=8388608, Timeout(ms)=600000) ran for 600003 milliseconds before timing out.\n"
    for n in (0, 1, 2, 4, 5, 6, 7)
)
DOWN = (
    "srun: error: n1: tasks 0-2: Aborted (core dumped)\n"
    "slurmstepd: error: *** STEP 771.0 ON n1 CANCELLED AT 2026-06-22T21:01:00 ***\n"
    "srun: error: n2: tasks 4-7: Aborted (core dumped)\n"
    "srun: error: n1: task 3: {}\n"
)
KERNEL = "[Mon Jun 22 19:00:00 2026] mlx5_core 0000:5f:00.0 eth4: Link up\n"


@pytest.mark.parametrize(
    ("ended", "kernel", "sure"),
    [
        ("Killed", None, False),
        ("Killed", "n1", True),
        ("Killed", "n2", False),
        ("Terminated", None, True),
    ],
    ids=["by force", "its kernel's log is there", "another's", "as it was asked to"],
)
def test_what_it_took_to_end_it(
    tmp_path: Path, ended: str, kernel: str | None, sure: bool
) -> None:
    """What sleeps in a driver does not hear SIGTERM; its host's kernel would show it."""
    (tmp_path / "slurm-771.out").write_text(STEPS + WAITED + DOWN.format(ended))
    if kernel is not None:
        (tmp_path / f"dmesg-{kernel}.txt").write_text(KERNEL)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "C2"
    assert [place.rank for place in verdict.culprits] == [3]
    assert (verdict.confidence >= 0.8) is sure


def test_collectives_that_hold_no_gpu() -> None:
    """A rank of gloo's that was stopped (a real run): torchrun had to end it by SIGKILL."""
    run = Path(str(files("flatline"))) / "demo" / "one-rank-stopped" / "run"
    verdict = diagnose(collect(Request((str(run),))))

    assert "exitcode  : -9" in (run / "job.log").read_text()
    assert (verdict.code, verdict.confidence >= 0.8) == ("C2", True)
