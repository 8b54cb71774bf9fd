"""A container whose end bears no time, and its host's kernel, which dates the kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

STEPS = "".join(f"2026-06-22 20:{n // 2:02d}:{n % 2 * 30:02d} step {n} loss {3 * 0.99**n:.4f}\n"
                for n in range(1, 100))  # fmt: skip
WAITED = (
    "[rank3]:[E0622 21:00:12.470668800 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught"
    " collective operation timeout: WorkNCCL(SeqNum=84611, OpType=ALLREDUCE, NumelIn=8388608,"
    " NumelOut=8388608, Timeout(ms)=600000) ran for 600003 milliseconds before timing out.\n"
)
DESCRIBED = """\
Name:             ctr-1
Namespace:        ml
Node:             wk3/10.8.0.19
Status:           Running
Containers:
  trainer:
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
    Restart Count:  1
"""
KILL = (
    "[Mon Jun 22 {} 2026] Memory cgroup out of memory: Killed process 71233 (python3)"
    " total-vm:812331204kB, anon-rss:301223004kB, file-rss:88212kB, shmem-rss:4120kB, UID:1000"
    " pgtables:601221kB oom_score_adj:872\n"
)


@pytest.mark.parametrize(
    ("host", "at", "code"),
    [("wk3", "20:50:10", "A2"), ("wk3", "21:00:40", "C2"), ("wk8", "20:50:10", "C2")],
    ids=["before the wait was told", "since", "on another host"],
)
def test_who_was_killed_before_its_peers_told_of_the_wait(
    tmp_path: Path, host: str, at: str, code: str
) -> None:
    """They waited for it."""
    (tmp_path / "ctr-0.log").write_text(STEPS + WAITED)
    (tmp_path / "describe-ctr-1.txt").write_text(DESCRIBED)
    (tmp_path / f"dmesg-{host}.txt").write_text(KILL.format(at))

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


LOST = (
    "[rank4]:[E622 21:00:12.470668800 ProcessGroupNCCL.cpp:542] [Rank 4] Collective WorkNCCL("
    "SeqNum=84611, OpType=ALLREDUCE, NumelIn=8388608, NumelOut=8388608, Timeout(ms)=600000) raised"
    " the following async exception: NCCL error: remote process exited or there was a network"
    " error, NCCL version 2.21.5\n"
    "[rank4]: NET/OFI Request 0x7f21c40a1180 completed with error. RC: 107. Error: 15 (Connection"
    " reset by peer). Completed length: 0\n"
)
CRASH = (
    "[Mon Jun 22 21:00:14 2026] python[9921]: segfault at 0 ip 00007f1c22 sp 00007fff11 error 4 in"
    " libnccl-net.so[7f1c20000000+8c000]\n"
)


@pytest.mark.parametrize(
    ("at", "words", "first"),
    [
        ("21:00:06", "Out Of Memory", True),
        ("21:00:13", "Out Of Memory", False),
        ("21:00:06", "Killed", False),
    ],
    ids=["before its peers lost it", "since", "ended by the launcher, for all that is said"],
)
def test_who_was_killed_before_its_peers_lost_it(
    tmp_path: Path, at: str, words: str, first: bool
) -> None:
    """srun tells of it below what they print; native code that fails as they end comes after."""
    ends = f"srun: error: wk3: task 2: {words}\nsrun: error: wk1: tasks 0-1: Terminated\n"
    (tmp_path / "slurm-7.out").write_text(STEPS + LOST + ends)
    (tmp_path / "sacct.txt").write_text(
        "JobID|State|ExitCode|Start|End|NodeList\n"
        "7|OUT_OF_MEMORY|0:125|2026-06-22T20:00:00|2026-06-22T21:00:17|wk[1,3]\n"
    )
    (tmp_path / "dmesg-wk3.txt").write_text(KILL.format(at))
    (tmp_path / "dmesg-wk1.txt").write_text(CRASH)
    told = diagnose(collect(Request((str(tmp_path),))))

    assert told.code == "A2"
    assert ({place.host for place in told.culprits} == {"wk3"}) is first
