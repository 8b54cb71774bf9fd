"""Which log is the accused's, and steps that it dates by a clock of its own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.facts import Facts
from flatline.judging.heartbeats import host_by_log
from flatline.model import LogCite, Place, Verdict

HOSTS = ("mk-h100-k3w2", "mk-h100-k3w5", "mk-h100-k3w8", "mk-h100-k4w1")
WORKERS = tuple(f"worker-{n}_{host}.log" for n, host in enumerate(HOSTS))


def on_host(
    task: int, logs: Sequence[str], hosts: Sequence[str], place: Place | None = None
) -> str | None:
    """The host of a task, of which its log's name alone may tell."""
    facts = SimpleNamespace(
        hosts=tuple(hosts),
        job=None,
        exits=(),
        node_of=str,
        lines=lambda *_: ("x",),
        memo=lambda _, work: work(None),
        window=None,
        log_files=lambda *_: (),
        tracks=[SimpleNamespace(source=log, place=place or Place()) for log in logs],
    )
    return host_by_log(cast(Facts, facts), task)


CROSSED = ("worker-2_n0.log", "worker-1_n1.log", "worker-0_n2.log")


@pytest.mark.parametrize(
    ("task", "logs", "hosts", "told"),
    [
        (2, WORKERS, HOSTS, "mk-h100-k3w8"),
        (0, WORKERS, HOSTS, "mk-h100-k3w2"),
        (1, ("n1_worker0.log", "n2_worker1.log"), ("n1", "n2"), "n2"),
        (0, CROSSED, ("n0", "n1", "n2"), "n2"),
        (2, [f"out/{log}" for log in WORKERS], HOSTS, "mk-h100-k3w8"),
        (1, ("task-1_n9.log", "other.log"), ("n9",), "n9"),
    ],
    ids=["it ends in a number", "the first", "it stands before", "numbers of hosts are not theirs",
         "in a folder", "called so"],
)  # fmt: skip
def test_logs_that_are_numbered_and_named_after_hosts(
    task: int, logs: Sequence[str], hosts: Sequence[str], told: str
) -> None:
    """The numbers within a host's name are not those of a task."""
    assert on_host(task, logs, hosts) == told


@pytest.mark.parametrize(
    ("task", "logs"),
    [
        (2, WORKERS[1:]),
        (4, WORKERS),
        (2, (*WORKERS, "launcher_mk.log")),
        (2, (WORKERS[0], WORKERS[1], WORKERS[2].replace("worker", "helper"))),
    ],
    ids=["the first is missing", "beyond the last", "one has no number", "of another kind"],
)
def test_logs_that_are_not_numbered_from_nought_on(task: int, logs: Sequence[str]) -> None:
    """Which is whose they do not tell."""
    assert on_host(task, logs, HOSTS) is None


def test_a_log_that_says_of_itself_which_it_is() -> None:
    """Then none is numbered by its name."""
    assert on_host(2, WORKERS, HOSTS, Place(rank=0)) is None
    assert on_host(2, WORKERS[:1], HOSTS, Place(task=2)) == HOSTS[0]


BEGAN = datetime(2026, 3, 2, 4, 0, tzinfo=UTC)
DEAD = 1317
"""Seconds after which the coordinator, by its clock, declares task 2 dead."""
SACCT = (
    "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
    f"9|x|FAILED|1:0|2026-03-02T04:00:00|2026-03-02T04:23:00|4|{','.join(HOSTS)}\n"
)
TASKS = tuple(f"task{n}.log" for n in range(4))


def judged(
    folder: Path, off_s: int, until: int = DEAD, others: int = DEAD, logs: Sequence[str] = TASKS
) -> Verdict:
    """Steps of a second each; the clock of the accused is off, and its log stops at a step."""
    dead = BEGAN + timedelta(seconds=DEAD)
    said = (
        f"E{dead:%m%d %H:%M:%S.%f}    77 coordination_service.cc:1379] The following tasks are"
        " unhealthy (stopped sending heartbeats):\n/job:jax_worker/replica:0/task:2\n"
    )
    for task, name in enumerate(logs):
        off, last = (off_s, until) if task == 2 else (0, others)
        lines = [f"{BEGAN + timedelta(seconds=n + off):%Y-%m-%dT%H:%M:%S} completed step: {n},"
                 f" seconds: 1.000, TFLOP/s/device: 400.1, loss: {9 - n / 400:.3f}\n"
                 for n in range(last)]  # fmt: skip
        (folder / name).write_text("".join(lines) + (said if task == 0 else ""))
    if logs is not TASKS:
        (folder / "sacct.txt").write_text(SACCT)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("off_s", [-420, -150, -900])
def test_steps_by_a_clock_that_is_minutes_off(tmp_path: Path, off_s: int) -> None:
    """Others date the same steps inside the window."""
    verdict = judged(tmp_path, off_s)

    assert (verdict.code, verdict.culprits) == ("C4", ())
    assert [place.task for place in verdict.cleared] == [2]
    shown = next(one for one in verdict.shows if "which others date" in one.text)
    cites = [cite for cite in shown.cites if isinstance(cite, LogCite)]
    assert {cite.source for cite in cites} == {"task0.log", "task2.log"}


@pytest.mark.parametrize(
    ("off_s", "until", "others"),
    [(-420, 1200, DEAD), (-420, 1310, DEAD), (-900, 1000, DEAD), (-420, 1250, 1250)],
    ids=["before the window", "just before its end", "long before", "all had stopped"],
)
def test_a_log_that_stops_at_an_earlier_step(
    tmp_path: Path, off_s: int, until: int, others: int
) -> None:
    """Whatever its clock says: it is not known to have been at work."""
    verdict = judged(tmp_path, off_s, until, others)

    assert verdict.code != "C4"
    assert verdict.cleared == ()


@pytest.mark.parametrize(
    ("off_s", "how"), [(0, "inside the window"), (-420, "which others date inside the window")]
)
def test_the_accused_is_known_by_the_number_of_its_log(
    tmp_path: Path, off_s: int, how: str
) -> None:
    """With the host that stands behind it."""
    verdict = judged(tmp_path, off_s, logs=WORKERS)

    assert verdict.code == "C4"
    assert [(place.task, place.host) for place in verdict.cleared] == [(2, HOSTS[2])]
    (shown,) = [one.text for one in verdict.shows if "made steps" in one.text]
    assert shown.endswith(f"{how} of that accusation")
    assert ("as well" in shown) is (off_s != 0)


def test_the_steps_of_another_are_not_the_accuseds(tmp_path: Path) -> None:
    """Its own log, by its number, stops early."""
    assert judged(tmp_path, 0, 1200, logs=WORKERS).code != "C4"


@pytest.mark.parametrize(
    ("launched", "last_s", "cleared"),
    [
        ("srun: error: n{0}: task {0}: Aborted (core dumped)\n", 1798, True),
        ("srun: error: n{0}: task {0}: Aborted (core dumped)\n", 1600, False),  # it had stopped
        ("srun: error: n0: task {0}: Aborted (core dumped)\n", 1798, False),  # several on a host
    ],
)
def test_the_log_of_the_host_that_it_had_for_itself(
    tmp_path: Path, launched: str, last_s: int, cleared: bool
) -> None:
    """A launcher says which task was where; the line says for how long none was heard."""
    began = datetime(2026, 2, 19, 21, tzinfo=UTC)
    said = (
        "E0219 21:30:00.000000 7 coordination_service.cc:1142] UNAVAILABLE: The following tasks"
        " are unhealthy (stopped sending heartbeats for 100s):\n/job:jax_worker/task:2\n"
    )
    for host in range(3):
        until = last_s if host == 2 else 1798
        steps = "".join(
            f"[{began + timedelta(seconds=n):%Y-%m-%d %H:%M:%S}] completed step: {n // 6},"
            f" seconds: 6.0, TFLOP/s/device: 397.2, loss: {5 - n / 900:.3f}\n"
            for n in range(6, until, 6)
        )
        (tmp_path / f"train.n{host}.out").write_text(steps + (said if host == 0 else ""))
    nodes = "SLURM_JOB_NODELIST=n[0-2]\n"
    (tmp_path / "slurm-7.out").write_text(nodes + "".join(launched.format(n) for n in range(3)))
    found = diagnose(collect(Request((str(tmp_path),))))

    assert (found.code == "C4") is cleared
