"""C4 where a site's own launcher gave up a worker that went on working."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

T0 = datetime(2026, 3, 3, 20, 20, tzinfo=UTC)
DEAD = "{} launcher ERROR gpu-k2: no heartbeat for 187s (limit 180s): marking worker DEAD\n"
END = 900
"""Seconds after which the launcher gives it up."""


def at(seconds: float) -> str:
    moment = T0 + timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03d}"


def steps(until: float, shift: float = 0.0) -> str:
    return "".join(f"{at(s + shift)} step {s // 5} loss {4 - s / 2000:.4f}\n"
                   for s in range(5, int(until), 5))  # fmt: skip


def judged(folder: Path, worker: str, launcher: str = "", host: str = "gpu-k2") -> Verdict:
    (folder / f"worker_{host}.log").write_text(worker)
    (folder / "worker_gpu-k1.log").write_text(steps(END))
    said = "".join(f"{at(s)} launcher INFO heartbeat ok\n" for s in range(0, 600, 120))
    (folder / "launcher.log").write_text(said + launcher + DEAD.format(at(END)))
    return diagnose(collect(Request((str(folder),))))


def test_it_made_steps_to_the_end(tmp_path: Path) -> None:
    """Its own log says so."""
    verdict = judged(tmp_path, steps(END) + f"{at(END)} received SIGTERM, exiting\n")

    assert (verdict.code, verdict.culprits) == ("C4", ())
    assert [place.host for place in verdict.cleared] == ["gpu-k2"]


NAMED = [
    ("worker-2.log", "worker 2 (gpu-k2) declared DEAD (no heartbeat for 187s)", ("gpu-k2", 2)),
    ("worker_2.log", "worker w2 (gpu-k2): no heartbeat for 187s, declared DEAD", ("gpu-k2", None)),
    ("train-w2.log", "worker w2 (gpu-k2): no heartbeat for 187s, declared DEAD", ("gpu-k2", None)),
    ("worker_10.0.0.2.log", "10.0.0.2: no heartbeat for 187s: marking worker DEAD",
     ("10.0.0.2", None)),
    ("rank2.log", "rank 2 was marked as lost: last heartbeat 187 s ago", (None, None)),
    ("trainer-2.log", "no heartbeat from task trainer-2 (gpu-k2) for 187s, marking it dead",
     ("gpu-k2", None)),
    ("trainer-2.log", "task trainer-2 missed heartbeats for 187s, marking DEAD",
     ("gpu-k2", None)),
    ("worker_gpu-k2.log", "NODE DEAD: gpu-k2, no heartbeat for 187s; stopping generation 4",
     ("gpu-k2", None)),
]  # fmt: skip


@pytest.mark.parametrize(("own", "line", "who"), NAMED)
def test_it_is_named_by_a_number_or_a_name_of_its_own(
    tmp_path: Path, own: str, line: str, who: tuple[str | None, int | None]
) -> None:
    """With its host in brackets, there or in an earlier line."""
    verdict = judged_by(tmp_path, own, line, steps(END))

    assert (verdict.code, verdict.culprits) == ("C4", ())
    assert [(place.host, place.task) for place in verdict.cleared] == [who]
    assert verdict.cleared[0].rank == (2 if own.startswith("rank") else None)


@pytest.mark.parametrize(("own", "line", "who"), NAMED)
def test_who_had_stopped_is_not_cleared(
    tmp_path: Path, own: str, line: str, who: tuple[str | None, int | None]
) -> None:
    """Whatever it is called; and the steps of another, of another number or kind, are not its."""
    stopped = judged_by(tmp_path / "a", own, line, steps(END - 300))
    another = judged_by(tmp_path / "b", own.replace("2", "12"), line, steps(END))

    assert {stopped.code, another.code}.isdisjoint({"C4"})
    assert stopped.cleared == another.cleared == ()


def judged_by(folder: Path, own: str, line: str, worker: str) -> Verdict:
    """The accused's log is called `own`, and the launcher says `line` of it."""
    folder.mkdir(exist_ok=True)
    (folder / own).write_text(worker)
    late = f"{at(END - 60)} launcher WARNING task trainer-2 (gpu-k2): heartbeat late\n"
    (folder / "launcher.log").write_text(late + f"{at(END)} launcher ERROR {line}\n")
    return diagnose(collect(Request((str(folder),))))


CRASHED = steps(END) + "Segmentation fault (core dumped)\n"
RAISED = (
    steps(END) + 'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\n'
    "KeyError: 'x'\n"
)


@pytest.mark.parametrize(
    ("worker", "launcher"),
    [
        (steps(END - 200), ""),
        (steps(END + 3600), ""),
        (steps(END, 3600), ""),
        (CRASHED, ""),
        (RAISED, ""),
        (steps(END), f"{at(END - 5)} launcher WARNING gpu-k2: process exited with code 137\n"),
    ],
    ids=["had stopped", "the run went on", "another zone", "crashed", "raised", "exited"],
)
def test_near_misses_clear_nobody(tmp_path: Path, worker: str, launcher: str) -> None:
    """The heartbeats stopped for a reason."""
    verdict = judged(tmp_path, worker, launcher)

    assert verdict.code != "C4"
    assert verdict.cleared == ()


@pytest.mark.parametrize("host", ["gpu-k2-b", "mk-gpu-k2"])
def test_the_log_of_another_worker_proves_nothing(tmp_path: Path, host: str) -> None:
    """Its name holds that of the accused."""
    assert judged(tmp_path, steps(END), host=host).code != "C4"


LEFT = 600
"""Seconds that the launcher leaves a worker to come back."""


def left_some_time(folder: Path, line: str, acts: str, ran: float, *, behind: int = 0) -> Verdict:
    """What the launcher says as that time is over, and how long all had gone on."""
    (folder / "worker-6.log").write_text(steps(ran))
    (folder / "worker-7.log").write_text(steps(ran))
    said = f"{at(END)} launcher ERROR {line}, {LEFT}s left to come back\n"
    said += "".join(f"{at(END + n)} launcher INFO gang waits\n" for n in range(behind))
    (folder / "launcher.log").write_text(f"{said}{at(END + LEFT)} launcher ERROR {acts}\n")
    return diagnose(collect(Request((str(folder),))))


SILENCED = "task w6 (gpu-k6): no heartbeat for 187s, marking DEAD"


@pytest.mark.parametrize(
    ("line", "acts"),
    [
        (SILENCED, "grace period over, terminating gang (reason: task w6 dead)"),
        (SILENCED, "time is up for w6: sending SIGTERM to all"),
        (SILENCED, "a task is dead, shutting down"),
        ("gpu-k6: no heartbeat for 187s: marking worker DEAD", "killing the gang for gpu-k6"),
    ],
    ids=["it is dead", "by its name", "a task is dead", "by its host"],
)
def test_who_was_left_some_time_to_come_back(tmp_path: Path, line: str, acts: str) -> None:
    """All worked on until the launcher ended them for it."""
    if "w6" not in line:
        (tmp_path / "worker_gpu-k6.log").write_text(steps(END + LEFT))
    verdict = left_some_time(tmp_path, line, acts, END + LEFT)

    assert (verdict.code, verdict.culprits) == ("C4", ())
    assert [place.host for place in verdict.cleared] == ["gpu-k6"]


@pytest.mark.parametrize(
    ("acts", "behind"),
    [
        ("grace period over, terminating gang (reason: quota of project)", 0),
        ("terminating gang (reason: task w66 failed)", 0),
        ("stopping: task gpu-w6 has failed", 0),
        ("grace period over: w6 is dead", 0),
        ("terminating gang (reason: task w6 dead)", 60),
    ],
    ids=["for another reason", "for another worker", "for one called alike", "nothing is ended",
         "long after"],
)  # fmt: skip
def test_a_run_that_was_not_ended_for_it(tmp_path: Path, acts: str, behind: int) -> None:
    """It outlived the accusation."""
    verdict = left_some_time(tmp_path, SILENCED, acts, END + LEFT, behind=behind)

    assert verdict.code != "C4"
    assert verdict.cleared == ()


def test_who_stopped_before_it_was_left_some_time_is_not_cleared(tmp_path: Path) -> None:
    """It was ended for it, and had not been at work."""
    acts = "grace period over, terminating gang (reason: task w6 dead)"

    assert left_some_time(tmp_path, SILENCED, acts, END - 200).code != "C4"
