"""A host that the others wait for, whose tasks cannot be woken: for storage, or for what else."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Place, Verdict

START = datetime(2026, 3, 4, 8, 0, tzinfo=UTC).timestamp()
LAST_S, ENDS_S = 1200, 2400
HOSTS = tuple(f"n{n}" for n in range(1, 6))
STUCK = "n3"
BLOCKED, IO, MEMORY = (
    "node_procs_blocked",
    "node_pressure_io_waiting_seconds_total",
    "node_pressure_memory_waiting_seconds_total",
)


def clock(seconds: float) -> str:
    return f"{datetime.fromtimestamp(START + seconds, UTC):%Y-%m-%d %H:%M:%S}"


def log(reported: bool) -> str:
    steps = "".join(
        f"[{clock(10 * n)},000] [rank0] INFO step {n}/900 loss {3 - n / 500:.4f} lr 1e-4\n"
        for n in range(1, LAST_S // 10 + 1)
    )
    if not reported:
        return steps + f"slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT {clock(ENDS_S)} ***\n"
    return steps + "".join(
        f"[rank{rank}]:[E{clock(ENDS_S - 5)[5:7]}{clock(ENDS_S - 5)[8:10]}"
        f" {clock(ENDS_S - 5)[11:]}.000000 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught"
        " collective operation timeout: WorkNCCL(SeqNum=77, OpType=ALLREDUCE, NumelIn=1,"
        " NumelOut=1, Timeout(ms)=1080000) ran for 1080037 milliseconds before timing out.\n"
        for rank in range(2)
    )


def verdict(
    folder: Path, waits: Mapping[str, Mapping[str, float]], reported: bool = False
) -> Verdict:
    """Of a run whose one host puts its work down: `waits` has, by metric and host, the tasks, or
    the share of the time in which some task waited, from then on."""
    (folder / "job-9.out").write_text(log(reported))
    (folder / "scontrol.txt").write_text(
        "JobId=9 JobName=train\n   UserId=u(1) JobState=CANCELLED\n"
        f"   StartTime={clock(0).replace(' ', 'T')} EndTime={clock(ENDS_S).replace(' ', 'T')}\n"
        "   NodeList=n[1-5]\n   NumNodes=5\n"
    )
    rows = []
    for host in HOSTS:
        for at in range(0, ENDS_S, 15):
            when = int((START + at) * 1000)
            still = at > LAST_S
            watts = (118.0 if host == STUCK else 231.0) if still else 640.0
            card = f'DCGM_FI_DEV_POWER_USAGE{{Hostname="{host}",gpu'
            rows += [f'{card}="{gpu}"}} {watts + gpu} {when}' for gpu in range(4)]
            for name, by_host in waits.items():
                grown = still if name == BLOCKED else max(0, at - LAST_S)
                level = by_host.get(host, 0.0) * grown
                rows.append(f'{name}{{instance="{host}:9100"}} {level} {when}')
    (folder / "metrics.prom").write_text("\n".join(rows) + "\n")
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("reported", [False, True])
def test_a_host_whose_tasks_wait_for_storage_stalled_the_run(
    tmp_path: Path, reported: bool
) -> None:
    """Though no kernel log was read: not confident, for nothing says which storage."""
    found = verdict(tmp_path, {BLOCKED: {STUCK: 9.0}, IO: {STUCK: 0.9}}, reported)

    assert (found.code, found.culprits) == ("C6", (Place(host=STUCK),))
    assert found.confidence < 0.8


@pytest.mark.parametrize("reported", [False, True])
@pytest.mark.parametrize(
    "waits",
    [
        {BLOCKED: {STUCK: 9.0}},
        {BLOCKED: {STUCK: 9.0}, IO: {STUCK: 0.01}},
        {BLOCKED: {STUCK: 9.0}, IO: dict.fromkeys(HOSTS, 0.9)},
        {BLOCKED: {STUCK: 9.0}, IO: {STUCK: 0.9}, MEMORY: {STUCK: 0.8}},
    ],
    ids=["unmeasured", "a driver", "all of them", "memory"],
)
def test_what_else_holds_tasks_is_no_storage(
    tmp_path: Path, waits: Mapping[str, Mapping[str, float]], reported: bool
) -> None:
    """The others waited for that host, and why is open: its tasks wait for no collective."""
    found = verdict(tmp_path, waits, reported)

    assert (found.code, {place.host for place in found.culprits}) == ("C2", {STUCK})
    assert found.confidence < 0.8


def test_a_host_whose_tasks_run_is_surely_waited_for(tmp_path: Path) -> None:
    """Storage that it does not wait for long says nothing."""
    found = verdict(tmp_path, {BLOCKED: {STUCK: 0.2}, IO: {STUCK: 0.9}}, True)

    assert (found.code, {place.host for place in found.culprits}) == ("C2", {STUCK})
    assert found.confidence >= 0.8
