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


LOST = """\
[rank1]:[E622 20:49:52.113054201 ProcessGroupNCCL.cpp:2005] [PG ID 0 PG GUID 0 Rank 1] Process\
 group watchdog thread terminated with exception: NCCL error: remote process exited or there was a\
 network error, NCCL version 2.21.5
ncclRemoteError: A call failed possibly due to a network error or a remote process exiting\
 prematurely.
Last error:
NET/IB: Got completion from peer 10.8.0.19<41022> with status=12 opcode=0 len=0 vendor err 129
"""
COUNTED = (
    "slurmstepd: error: Detected 1 oom_kill event in StepId=771.0. Some of the step tasks have"
    " been OOM Killed.\n"
)
TASK = "srun: error: wk3: task 9: Out Of Memory\n"
RECORD = """\
JobID|State|ExitCode|Start|End|NNodes|NodeList
771|FAILED|1:0|2026-06-22T20:00:00|2026-06-22T20:50:55|2|wk[2-3]
"""


@pytest.mark.parametrize(
    ("log", "host", "at", "code"),
    [
        (COUNTED + LOST + TASK, None, "", "A2"),
        (LOST + TASK, "wk3", "20:49:40", "A2"),
        (LOST + TASK, "wk3", "20:50:40", "C5"),
        (LOST + TASK, "wk8", "20:49:40", "C5"),
        (LOST + COUNTED + TASK, None, "", "C5"),
    ],
    ids=["by the step's daemon", "by its kernel", "since", "on another host", "told below"],
)
def test_a_task_told_of_below_the_peers_that_lost_it(
    tmp_path: Path, log: str, host: str | None, at: str, code: str
) -> None:
    """srun tells of its task last, whenever that was killed."""
    (tmp_path / "slurm-771.out").write_text(STEPS + log)
    (tmp_path / "sacct.txt").write_text(RECORD)
    if host is not None:
        (tmp_path / f"dmesg-{host}.txt").write_text(KILL.format(at))

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


RESET = (
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
def test_native_code_that_fails_as_peers_end(
    tmp_path: Path, at: str, words: str, first: bool
) -> None:
    """srun tells of it below what they print; native code that fails as they end comes after."""
    ends = f"srun: error: wk3: task 2: {words}\nsrun: error: wk1: tasks 0-1: Terminated\n"
    (tmp_path / "slurm-7.out").write_text(STEPS + RESET + ends)
    (tmp_path / "sacct.txt").write_text(
        "JobID|State|ExitCode|Start|End|NodeList\n"
        "7|OUT_OF_MEMORY|0:125|2026-06-22T20:00:00|2026-06-22T21:00:17|wk[1,3]\n"
    )
    (tmp_path / "dmesg-wk3.txt").write_text(KILL.format(at))
    (tmp_path / "dmesg-wk1.txt").write_text(CRASH)
    told = diagnose(collect(Request((str(tmp_path),))))

    assert told.code == "A2"
    assert ({place.host for place in told.culprits} == {"wk3"}) is first


POD = (
    "{}Z NET/IB: Got completion from peer 10.8.0.19<41022> with status=12 opcode=0 len=0"
    " vendor err 129 (Recv)\n{}Z   exitcode  : -6 (pid: 215)\n"
    "{}Z   traceback : Signal 6 (SIGABRT) received by PID 215\n"
)


@pytest.mark.parametrize(
    ("at", "first"),
    [("20:49:51", True), ("20:30:00", False), ("20:52:00", False)],
    ids=["once the last step was made", "steps before", "since the peers told"],
)
def test_only_the_kernel_tells_of_the_one_that_all_others_lost(
    tmp_path: Path, at: str, first: bool
) -> None:
    """Its pod's own log ends without a word, and no record names its host."""
    steps = STEPS.replace("2026-06-22 ", "2026-06-22T").replace(" step", "Z step")
    times = ("2026-06-22T20:49:52", "2026-06-22T20:50:09", "2026-06-22T20:50:09")
    (tmp_path / "ctr-0.log").write_text(steps + POD.format(*times))
    (tmp_path / "ctr-1.log").write_text("2026-06-22T20:00:00Z rank 1 ready\n")
    (tmp_path / "dmesg-wk3.txt").write_text(KILL.format(at))

    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert ((verdict.code, verdict.fault_class) == ("A2", "cgroup-oom")) is first


def test_a_kill_of_hours_before_the_run_lost_a_peer(tmp_path: Path) -> None:
    """Of a run that printed no step the kernel's log may tell of anything that came before."""
    times = ("2026-06-22T20:49:52", "2026-06-22T20:50:09", "2026-06-22T20:50:09")
    (tmp_path / "ctr-0.log").write_text(POD.format(*times))
    (tmp_path / "dmesg-wk3.txt").write_text(KILL.format("14:49:51"))

    assert diagnose(collect(Request((str(tmp_path),)))).fault_class != "cgroup-oom"
