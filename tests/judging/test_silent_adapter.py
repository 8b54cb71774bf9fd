"""C5 where an adapter's own status says that the other end no longer acknowledges anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

STEPS = "".join(f"step {n} loss {4 - n / 60:.4f} step_time 2.1s\n" for n in range(1, 60))
SAYS = (
    "p5-11:700:1320 [1] nccl_net_ofi_rdma.c:6911 NCCL WARN NET/OFI Request 0x7f00c0aa completed"
    " with error. RC: {0}. Completed length: 0, Request: {{ dev: 1 }}\n"
)
ECHO = (
    "[rank9]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3356, remote"
    " process exited or there was a network error, NCCL version 2.23.4\n"
)
RAISED = (
    '[rank4]: Traceback (most recent call last):\n[rank4]:   File "t.py", line 9, in <module>\n'
    "[rank4]:     main()\n[rank4]: KeyError: 'n'\n"
)
KILLED = "slurmstepd: error: Detected 1 oom_kill event in StepId=9.0. Some processes killed.\n"


@pytest.mark.parametrize(
    ("said", "behind", "codes"),
    [
        ("13. Error: 13 (Unresponsive remote) Unresponsive remote", "", ("C5",)),
        ("12. Error: 12 (Unreachable remote) never answered", "", ("C5",)),
        ("12. Error: 12 (Unreachable remote) never answered", KILLED, ("A2",)),
        ("12. Error: 12 (Unreachable remote) never answered", RAISED, ("A3",)),
        ("7. Error: 7 (Bad dest QP number)", "", ("C2", "C5")),
    ],
    ids=[
        "it was heard before",
        "never",
        "a process was killed",
        "a rank raised",
        "a queue pair that is gone",
    ],
)
def test_what_the_status_says(
    tmp_path: Path, said: str, behind: str, codes: tuple[str, ...]
) -> None:
    (tmp_path / "train.log").write_text(STEPS + SAYS.format(said) + ECHO + behind)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code in codes
    assert verdict.confidence < 0.8 or verdict.code[0] == "A"
