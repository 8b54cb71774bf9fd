"""Lines that say how a run ended only where nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

NO_ROUTE = (
    "[W socket.cpp:601] [c10d] The client socket has failed to connect to"
    " [node07.default.svc.cluster.local]:43461 (errno: 113 - No route to host).\n"
)
NAN = "train_loss:  nan\n"
OOM = (
    "[rank0]: Traceback (most recent call last):\n"
    '[rank0]:   File "train.py", line 9, in <module>\n[rank0]:     model.cuda()\n'
    "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a"
    " total capacity of 79.15 GiB of which 1.02 GiB is free.\n"
)
TIMED_OUT = (
    "[rank0]:[E1120 15:59:59.000000000 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught"
    " collective operation timeout: WorkNCCL(SeqNum=7001, OpType=ALLREDUCE, NumelIn=1, NumelOut=1,"
    " Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
)
KILLED = "srun: error: node03: task 5: Killed\n"
CANCELLED = "slurmstepd: error: *** JOB 77 ON node01 CANCELLED AT 2026-03-04T09:00:00 ***\n"


@pytest.mark.parametrize(("hint", "code"), [(NO_ROUTE, "C1"), (NAN, "E1")])
def test_a_hint_alone(tmp_path: Path, hint: str, code: str) -> None:
    (tmp_path / "job.log").write_text(hint * 2)
    told = diagnose(collect(Request((str(tmp_path),))))

    assert (told.code, told.confidence < 0.8) == (code, True)


@pytest.mark.parametrize("hint", [NO_ROUTE, NAN])
@pytest.mark.parametrize(
    ("end", "code"), [(OOM, "B1"), (TIMED_OUT, "C2"), (KILLED, "A2"), (CANCELLED, None)],
    ids=["memory", "a collective", "a kill", "a cancel"],
)  # fmt: skip
def test_what_outweighs_it(tmp_path: Path, hint: str, end: str, code: str | None) -> None:
    """As surely as without it."""
    (tmp_path / "job.log").write_text(end)
    without = diagnose(collect(Request((str(tmp_path),))))
    (tmp_path / "job.log").write_text(hint + end)
    told = diagnose(collect(Request((str(tmp_path),))))

    assert (told.code, told.confidence) == (code, without.confidence)
