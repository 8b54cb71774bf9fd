"""A run that stands still while tasks on most of its hosts wait for storage."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

START = datetime(2026, 3, 4, 8, 0, tzinfo=UTC)
LAST_S, ENDS_S = 1200, 3600
HOSTS = ("n1", "n2", "n3")
TASKS, PRESSED = "node_procs_blocked", "node_pressure_io_waiting_seconds_total"
SERVER = "nfs: server nas-b not responding, still trying"
AHEAD_S = ENDS_S + 7200


def at(seconds: float) -> str:
    return f"{START + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}"


def verdict(
    folder: Path,
    asleep: tuple[str, ...] = HOSTS,
    *,
    tasks: float = 9.0,
    had: float = 0.0,
    share: float = 0.9,
    was: float = 0.01,
    kernel_s: float | None = None,
) -> Verdict:
    """Of a run of three hosts whose log stands still until its limit. From then on some hosts have
    `tasks` blocked, `had` before, and wait for storage a `share` of the time, which `was`
    that before; its kernels may say at a moment that a server is silent."""
    steps = (
        f"{at(10 * n)} [rank0] step {n}/900 loss {3 - n / 500:.4f}\n"
        for n in range(1, LAST_S // 10 + 1)
    )
    (folder / "train.log").write_text("".join(steps))
    (folder / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|Timelimit|NNodes|NodeList\n"
        f"9|train|TIMEOUT|0:0|{at(0)}|{at(ENDS_S)}|01:00:00|3|n[1-3]\n"
    )
    if kernel_s is not None:
        for host in HOSTS:
            told = f"{at(0)}+0000 {host} kernel: Linux version 5.14.0\n" + "".join(
                f"{at(kernel_s + 60 * n)}+0000 {host} kernel: {SERVER}\n" for n in range(3)
            )
            (folder / f"dmesg-{host}.log").write_text(told)
    rows = []
    for host in HOSTS:
        waited = 0.0
        for second in range(0, ENDS_S, 15):
            now = second > LAST_S and host in asleep
            waited += 15 * (share if now else was)
            here = f'{{instance="{host}:9100"}}'
            when = int((START.timestamp() + second) * 1000)
            rows += [
                f"{TASKS}{here} {tasks if now else had} {when}",
                f"{PRESSED}{here} {waited:.2f} {when}",
            ]
    (folder / "metrics.prom").write_text("\n".join(rows) + "\n")
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("asleep", [HOSTS, HOSTS[:2]], ids=["all", "most"])
def test_tasks_of_most_hosts_wait_for_storage(tmp_path: Path, asleep: tuple[str, ...]) -> None:
    """Which they share, and no kernel log tells which it was."""
    found = verdict(tmp_path, asleep)

    assert (found.code, found.scope, found.domain, found.culprits) == ("C6", "shared", None, ())
    assert found.confidence < 0.8
    assert f"{len(asleep)} of 3 hosts" in found.findings[0].finding.summary
    assert any("uninterruptible sleep" in one.text for one in found.shows)


def test_kernels_whose_clock_is_ahead_name_the_server(tmp_path: Path) -> None:
    """Dated two hours behind the end, as by the clock of another zone."""
    found = verdict(tmp_path, kernel_s=AHEAD_S)

    assert (found.code, found.scope, found.domain) == ("C6", "shared", "nas-b")
    assert found.confidence < 0.8
    assert any(SERVER in cite.text for one in found.shows for cite in one.cites)


@pytest.mark.parametrize(
    ("asleep", "changed"),
    [
        (HOSTS[:1], {}),
        (HOSTS, {"was": 0.9}),
        (HOSTS, {"had": 8.0}),
        (HOSTS, {"share": 0.01}),
        (HOSTS, {"tasks": 0.5}),
        (HOSTS, {"share": 0.15, "was": 0.0}),
    ],
    ids=["one host", "they always waited", "they always slept", "no pressure", "tasks run",
         "the pressure of a save"],
)  # fmt: skip
def test_near_misses(tmp_path: Path, asleep: tuple[str, ...], changed: dict[str, float]) -> None:
    """One of three, no change with the last step, or nothing that waits for storage."""
    assert verdict(tmp_path, asleep, **changed).code != "C6"


def test_a_kernel_that_is_ahead_is_no_witness_alone(tmp_path: Path) -> None:
    """Where no task waits, nothing ties its line to the run's end."""
    found = verdict(tmp_path, tasks=0.5, share=0.01, kernel_s=AHEAD_S)

    assert (found.code, found.domain, found.confidence < 0.8) == ("C2", None, True)


def undated(
    folder: Path, *, asleep: bool = True, works: bool = False, state: str = "RUNNING"
) -> Verdict:
    """Of a job of two hosts that squeue lists, whose steps say how long they took and not when;
    its GPUs stop working after the last one, or go on."""
    steps, took_s = 120, 10
    (folder / "train.log").write_text(
        "".join(
            f"step {n}/900 loss {3 - n / 500:.4f} step_time {took_s:.3f}s\n"
            for n in range(1, steps + 1)
        )
    )
    (folder / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|Timelimit|NNodes|NodeList\n"
        f"9|train|{state}|0:0|{at(0)}|Unknown|06:00:00|2|n[1-2]\n"
    )
    rows = []
    for host in HOSTS[:2]:
        waited = 0.0
        for second in range(0, ENDS_S, 15):
            over = second > steps * took_s
            waited += 15 * (0.9 if over and asleep else 0.01)
            when = int((START.timestamp() + second) * 1000)
            card = f'{{gpu="0",Hostname="{host}"}}'
            ran = works or (second > 30 and not over)
            rows += [
                f'{TASKS}{{instance="{host}:9100"}} {9 if over and asleep else 0} {when}',
                f'{PRESSED}{{instance="{host}:9100"}} {waited:.2f} {when}',
                f"DCGM_FI_DEV_GPU_UTIL{card} {97 if ran else 0} {when}",
                f"DCGM_FI_DEV_POWER_USAGE{card} {600 if ran else 80} {when}",
            ]
    (folder / "metrics.prom").write_text("\n".join(rows) + "\n")
    return diagnose(collect(Request((str(folder),))))


def test_undated_steps_end_where_the_gpus_stopped(tmp_path: Path) -> None:
    found = undated(tmp_path)

    assert (found.code, found.scope, found.confidence < 0.8) == ("C6", "shared", True)
    assert found.onset is not None
    since = (found.onset - START).total_seconds()
    assert LAST_S - 60 <= since <= LAST_S + 180


@pytest.mark.parametrize("changed", [{"asleep": False}, {"works": True}], ids=["awake", "at work"])
def test_undated_steps_and_no_wait(tmp_path: Path, changed: dict[str, bool]) -> None:
    """The log may be a copy from before."""
    assert undated(tmp_path, **changed).code != "C6"
