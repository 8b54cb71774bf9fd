"""What a kernel told of long before the end of a run whose steps carry no times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 3, 4, 8, tzinfo=UTC)
ENDED_MIN = 120
STEPS = "".join(f"step {n}/5000 loss {3 * 0.9985**n:.4f}\n" for n in range(1, 900))
SILENT = "nfs: server filer01 not responding, still trying"
SERVES = "nfs: server filer01 OK"
DOWN, UP = (f"mlx5_core 0000:41:00.0 enp65s0f0np0: Link {state}" for state in ("down", "up"))
OTHER_UP = "mlx5_core 0000:c1:00.0 enp193s0f0np0: Link up"
ADAPTER = "NETDEV WATCHDOG: enp65s0f0np0 (mlx5_core): transmit queue 3 timed out"
KILLED = (
    "Memory cgroup out of memory: Killed process 65321 (python3) total-vm:214740kB,"
    " anon-rss:102400kB, file-rss:512kB, shmem-rss:0kB, UID:1000 pgtables:512kB oom_score_adj:0"
)


def verdict(
    folder: Path, *said: tuple[float, str], state: str = "FAILED", log: str = ""
) -> Verdict:
    quiet = [(float(minute), "audit: type=1400 apparmor") for minute in range(0, 60, 2)]
    lines = [
        f"{BEGAN + timedelta(minutes=minute):%Y-%m-%dT%H:%M:%S,000000+00:00} {text}\n"
        for minute, text in sorted([*quiet, *said])
    ]
    (folder / "gpu-003.dmesg").write_text("".join(lines))
    (folder / "train.log").write_text(STEPS + log)
    ended = "Unknown" if state == "RUNNING" else f"{BEGAN + timedelta(minutes=ENDED_MIN):%FT%T}"
    (folder / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
        f"42|train|{state}|1:0|{BEGAN:%FT%T}|{ended}|gpu-003\n"
    )
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED", "TIMEOUT", "RUNNING"])
def test_a_server_that_served_again_ended_no_run(tmp_path: Path, state: str) -> None:
    """It was silent for a quarter of a minute and the run lived on for an hour and a half."""
    told = verdict(tmp_path, (20, SILENT), (20.25, SERVES), state=state)

    assert "C6" not in {judged.finding.code for judged in told.findings}
    assert "C6" not in {answer.code for answer in told.ruled_out}


@pytest.mark.parametrize(
    "said",
    [
        [(90, SILENT)],
        [(110, SILENT), (115, SERVES)],
        [(20, SILENT), (20.25, SERVES), (90, SILENT)],
        [(90, SILENT), (91, "nfs: server another OK")],
    ],
    ids=["never back", "back as it ended", "silent again", "another is back"],
)
def test_a_server_that_was_silent_to_the_end(
    tmp_path: Path, said: list[tuple[float, str]]
) -> None:
    told = verdict(tmp_path, *said)

    assert (told.code, told.confidence >= 0.8) == ("C6", True)


def test_a_failure_that_the_log_dates_beside_it(tmp_path: Path) -> None:
    """The server came back, and what had failed of it stood still for an hour."""
    log = "2026-03-04 08:20:10 OSError: [Errno 5] Input/output error\n"

    assert verdict(tmp_path, (20, SILENT), (20.25, SERVES), log=log).code in ("C6", "A3")


def test_a_link_that_came_back(tmp_path: Path) -> None:
    """As ports do at boot; one that stayed down, or whose neighbour came up, is told of."""
    for said, code in (
        ([(-60, DOWN), (-59.9, UP)], None),
        ([(20, DOWN), (20.1, UP)], None),
        ([(20, DOWN), (20.1, OTHER_UP)], "C5"),
        ([(119, DOWN), (119.1, UP)], "C5"),
    ):
        assert verdict(tmp_path, *said).code == code


@pytest.mark.parametrize(("text", "code"), [(ADAPTER, "C5"), (KILLED, "A2")])
def test_what_was_over_at_once_long_before_is_doubted(
    tmp_path: Path, text: str, code: str
) -> None:
    """A kill ends its process at once: an hour and a half before the end it may be another's."""
    old, new = verdict(tmp_path, (20, text)), verdict(tmp_path, (119, text))

    assert (old.code, new.code) == (code, code)
    assert old.confidence < 0.8 <= new.confidence
    assert any("went on" in open_ for open_ in old.cannot_decide)


FAULT = (
    "NVRM: Xid (PCI:0000:5d:00): 31, pid=7001, name=python3, Ch 00000008, intr 00000000."
    " MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_2 faulted @ 0x7f30_00000000."
)
WAITED = (
    "[rank3]:[E0304 09:59:30.100200300 ProcessGroupNCCL.cpp:684] [Rank 3] Watchdog caught"
    " collective operation timeout: WorkNCCL(SeqNum=4003, OpType=ALLREDUCE, NumelIn=1, NumelOut=1,"
    " Timeout(ms)=1800000) ran for 1800066 milliseconds before timing out.\n"
)
RAISED = (
    "2026-03-04 09:59:00 Traceback (most recent call last):\n"
    '  File "/home/u/train.py", line 81, in step\n'
    "    loss.backward()\n"
    "RuntimeError: CUDA error: an illegal memory access was encountered\n"
)


def test_a_programs_fault_before_the_job_began(tmp_path: Path) -> None:
    """What a kernel told of another process half an hour before explains no time-out of two hours
    later; where the program tells of it itself, or nothing tells of another failure, it counts."""
    for at, log, blamed in (
        (-30, WAITED, False),
        (-30, RAISED, True),
        (-30, "", True),
        (119, WAITED, True),
    ):
        told = verdict(tmp_path, (at, FAULT), log=log)

        assert ("A3" in {judged.finding.code for judged in told.findings}) is blamed
