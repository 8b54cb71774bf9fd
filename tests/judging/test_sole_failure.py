"""The rank of a traceback without a label, by what torchrun tells of its processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

STEPS = "".join(f"step {n}/3000 loss {3 * 0.999**n:.4f}\n" for n in range(1, 400))
RAISED = (
    "Traceback (most recent call last):\n"
    '  File "fit.py", line 31, in <module>\n    main()\n'
    '  File "fit.py", line 17, in main\n    patch = img[y1:y2].reshape(-1, 3)\n'
    "ValueError: cannot reshape array of size 0 into shape (3)\n"
)
LOST = RAISED.replace(
    "ValueError: cannot reshape array of size 0 into shape (3)",
    "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1275, remote process"
    " exited or there was a network error",
)
CLOSING = "".join(
    "[2026-01-29 16:40:42,231] torch.distributed.elastic.multiprocessing.api: [WARNING] Sending"
    f" process {pid} closing signal SIGTERM\n"
    for pid in (411, 412, 414)
)
SUMMARY = (
    "[2026-01-29 16:40:45,231] torch.distributed.elastic.multiprocessing.api: [ERROR] failed"
    " (exitcode: 1) local_rank: 2 (pid: 413) of binary: /usr/bin/python\n"
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
    "fit.py FAILED\nFailures:\n{others}"
    "Root Cause (first observed failure):\n[0]:\n  time      : 2026-01-29_16:40:42\n"
    "  host      : n2\n  rank      : 2 (local_rank: 2)\n  exitcode  : 1 (pid: 413)\n"
    "  error_file: <N/A>\n"
)
OTHER = (
    "[1]:\n  time      : 2026-01-29_16:40:42\n  host      : n2\n  rank      : 3 (local_rank: 3)\n"
    "  exitcode  : 1 (pid: 414)\n  error_file: <N/A>\n"
)
ALONE = SUMMARY.format(others="  <NO_OTHER_FAILURES>\n")


@pytest.mark.parametrize(
    ("end", "rank"),
    [
        (RAISED + CLOSING + ALONE, 2),
        (RAISED + ALONE, None),
        (RAISED + CLOSING + SUMMARY.format(others=OTHER), None),
        (RAISED + RAISED + CLOSING + ALONE, None),
        (RAISED + LOST + CLOSING + ALONE, 2),
        (CLOSING + ALONE + RAISED, None),
    ],
    ids=["alone", "nobody else", "two failed", "raised twice", "a peer lost it", "below"],
)
def test_the_one_process_that_failed_raised_it(tmp_path: Path, end: str, rank: int | None) -> None:
    (tmp_path / "train.log").write_text(STEPS + end)

    told = diagnose(collect(Request((str(tmp_path),))))

    assert told.code == "A3"
    assert {place.rank for place in told.culprits} - {None} == ({rank} - {None})
