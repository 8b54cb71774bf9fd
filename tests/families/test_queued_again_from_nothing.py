"""A job that the scheduler queued again epochs into its training, and that finds nothing there."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

ROWS = (
    "JobID|JobName|NodeList|State|ExitCode|Start|End|Restarts\n"
    "9|fold|gpu-2|NODE_FAIL|0:0|2026-02-22T02:00:00|2026-02-22T03:00:00|0\n"
    "9|fold|gpu-5|RUNNING|0:0|2026-02-22T03:06:00|Unknown|1\n"
)
LOST = "slurmstepd: error: *** JOB 9 ON gpu-2 CANCELLED AT 2026-02-22T03:00:00 DUE TO NODE FAILURE"
NONE = "[03:06:41] resume=auto: no file at /scratch/fold/last.ckpt, starting fresh"


def epochs(first: int, last: int, loss: float) -> str:
    out = ""
    for epoch in range(first, last + 1):
        bars = []
        for n in range(10, 201, 10):
            loss -= 0.01
            bars.append(
                f"Epoch {epoch}:  {n // 2}%|#    | {n}/200 [00:{n // 4:02d}<00:40, 4.00it/s,"
                f" v_num=0, train/loss={loss:.3f}]"
            )
        out += "\r".join(bars) + "\n"
    return out


def judged(folder: Path, before: str, again: str, *, rows: str = ROWS) -> Verdict:
    (folder / "slurm-9.out").write_text(f"{before}{LOST}, SEE LOG\n{again}")
    (folder / "sacct.txt").write_text(rows)
    return diagnose(collect(Request((str(folder),))))


def test_what_was_made_is_lost(tmp_path: Path) -> None:
    """The node is lost and over; that nothing was kept is what goes on."""
    told = judged(tmp_path, epochs(0, 4, 4.0), f"{NONE}\n{epochs(0, 2, 4.0)}")

    assert told.code == "E2"
    assert told.confidence < 0.8


@pytest.mark.parametrize(
    ("before", "again"),
    [
        (epochs(0, 0, 4.0), f"{NONE}\n{epochs(0, 2, 4.0)}"),
        (f"{NONE}\n{epochs(0, 4, 4.0)}", f"{NONE}\n{epochs(0, 2, 4.0)}"),
        (epochs(0, 4, 4.0), f"{NONE}\n{epochs(0, 2, 3.1)}"),
        (epochs(0, 4, 4.0), epochs(0, 2, 4.0)),
        (epochs(0, 4, 4.0), epochs(5, 7, 3.0)),
    ],
    ids=[
        "not an epoch",
        "it had looked before",
        "weights of its own",
        "it did not look",
        "went on",
    ],
)
def test_near_misses(tmp_path: Path, before: str, again: str) -> None:
    assert judged(tmp_path, before, again).code == "F1"
