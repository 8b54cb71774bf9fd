"""A host whose own kernel says that it stopped."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 3, 4, 8, tzinfo=UTC)
PANIC = "Kernel panic - not syncing: Fatal exception in interrupt"
REBOOT = "reboot: Restarting system"
LOST = (
    "pod01:7100:7400 [1] NCCL WARN NET/IB : Got completion from peer 10.4.3.3<41000> with"
    " status=IBV_WC_RETRY_EXC_ERR(12) opcode=0 len=0 vendor err 129 (Send) hca mlx5_1\n"
)


def stamp(seconds: float) -> str:
    return f"{BEGAN + timedelta(seconds=seconds):%FT%T}"


def verdict(folder: Path, said: str, when: float, host: str = "pod03") -> Verdict:
    """Steps up to 1150 s of a job that ended at 1260 s, and what a kernel said at `when`."""
    steps = [f"{stamp(25 * n)} step {n * 10}/9000 loss {2 + 1 / (n + 1):.4f}\n" for n in range(47)]
    (folder / "job.log").write_text("".join(steps) + LOST)
    (folder / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
        f"42|train|FAILED|1:0|{stamp(0)}|{stamp(1260)}|pod[01-04]\n"
    )
    lines = sorted([(60.0 * n, "audit: type=1400") for n in range(-20, 19)] + [(when, said)])
    text = "".join(f"{stamp(at)},000000+00:00 {line}\n" for at, line in lines)
    (folder / f"{host}.dmesg").write_text(text)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("said", [PANIC, REBOOT])
def test_a_kernel_that_stopped_under_the_run(tmp_path: Path, said: str) -> None:
    """Its peers' transports give up on it: the node goes before the network."""
    told = verdict(tmp_path, said, 1160)

    assert (told.code, [place.host for place in told.culprits]) == ("F1", ["pod03"])
    assert "C5" in {judged.finding.code for judged in told.findings if judged.role != "cause"}


@pytest.mark.parametrize(
    ("when", "host"),
    [
        (-600, "pod03"),
        (600, "pod03"),
        (4000, "pod03"),
        (1160, "pod09"),
    ],
    ids=["before it", "steps came after", "after it", "of another job"],
)
def test_a_kernel_that_stopped_at_another_time(tmp_path: Path, when: float, host: str) -> None:
    assert verdict(tmp_path, PANIC, when, host).code != "F1"


def test_what_a_master_writes_of_a_node_it_replaces_is_not_sure(tmp_path: Path) -> None:
    """DLRover starts another one in its place."""
    steps = "".join(f"step {n}/500 loss {4 / n:.4f}\n" for n in range(1, 30))
    told = '{"from_state": "Running", "to_state": "Failed", "exit reason": "HardwareError"}\n'
    (tmp_path / "master.log").write_text(steps + told)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "F1"
    assert verdict.confidence < 0.8


DAEMON = (
    "ORTE has lost communication with a remote daemon.\n\n"
    "  HNP daemon   : [[3114,0],0] on node pod01\n"
    "  Remote daemon: [[3114,0],3] on node pod04\n"
)


@pytest.mark.parametrize(
    ("said", "tried", "code"),
    [
        (DAEMON, "ssh: connect to host pod04 port 22: No route to host", "F1"),
        (DAEMON, "ssh: connect to host pod04 port 22: Connection refused", None),  # it is up
        (DAEMON, "ssh: connect to host pod02 port 22: No route to host", None),
        (DAEMON, "pod04 up 12 days", None),
        ("", "ssh: connect to host pod04 port 22: No route to host", None),
    ],
)
def test_a_daemon_lost_on_a_host_that_nobody_reaches(
    tmp_path: Path, said: str, tried: str, code: str | None
) -> None:
    """Neither of the two alone tells that it is down."""
    steps = [f"iter {n * 10} loss {3 - n / 40:.4f}\n" for n in range(40)]
    (tmp_path / "run.out").write_text("".join(steps) + said)
    (tmp_path / "uptime.txt").write_text(f"pod01 up 12 days\n{tried}\n")
    judged = diagnose(collect(Request((str(tmp_path),))))

    assert (judged.code if judged.state == "found" else None) == code
    assert judged.confidence < 0.8
    assert [p.host for p in judged.culprits] == (["pod04"] if code else [])
