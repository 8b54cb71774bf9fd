"""C4 where the accused made steps while its heartbeats did not arrive, until just before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 2, 19, 21, 0, tzinfo=UTC)
DEAD = 1800
"""Seconds after which task 1 is declared dead."""
ROW = (
    "JobID|State|ExitCode|Start|End|NNodes|NodeList\n"
    "42|FAILED|1:0|2026-02-19T21:00:00|2026-02-19T21:30:10|2|n[1-2]\n"
)
SAID = (
    "{} 1403211 coordination_service.cc:1112] The following tasks are unhealthy (stopped sending"
    " heartbeats):\n/job:jax_worker/replica:0/task:1\n"
)
FOR = "The tasks have not sent a heartbeat for 100s. Check the task logs for an earlier error.\n"
FATAL = (
    "{} 880123 client.h:80] Terminating process because the JAX distributed service detected fatal"
    " errors. absl::Status: UNAVAILABLE: task 1 was marked unhealthy\n"
)


def glog(level: str, second: float) -> str:
    return f"{level}{BEGAN + timedelta(seconds=second):%m%d %H:%M:%S.%f}"


def steps(until: int, late_s: int = 0) -> str:
    return "".join(
        f"{glog('I', n * 6 + late_s)} 77 metric_logger.py:15] completed step: {n}, seconds: 6.000,"
        f" TFLOP/s/device: 397.2, loss: {5 - n / 200:.3f}\n"
        for n in range(1, until // 6 + 1)
    )


def judged(folder: Path, last: int, *, stated: str = FOR, lived: bool = True) -> Verdict:
    (folder / "task_0.log").write_text(steps(last) + SAID.format(glog("E", DEAD)) + stated)
    ended = FATAL.format(glog("F", DEAD + 2)) if lived else ""
    (folder / "task_1.log").write_text(steps(last) + ended)
    (folder / "sacct.txt").write_text(ROW)
    return diagnose(collect(Request((str(folder),))))


def test_it_made_steps_while_no_heartbeat_came(tmp_path: Path) -> None:
    """What silenced them for 100 s did not stop it for the first 70."""
    verdict = judged(tmp_path, DEAD - 30)

    assert (verdict.code, verdict.culprits) == ("C4", ())
    assert [place.task for place in verdict.cleared] == [1]


@pytest.mark.parametrize(
    ("last", "stated", "lived"),
    [(DEAD - 60, FOR, True), (DEAD - 30, "", True), (DEAD - 30, FOR, False)],
    ids=["it stopped soon", "for how long is not said", "nothing is heard of it again"],
)
def test_near_misses_clear_nobody(tmp_path: Path, last: int, stated: str, lived: bool) -> None:
    """A dead task's last steps may be as late."""
    verdict = judged(tmp_path, last, stated=stated, lived=lived)

    assert verdict.code != "C4"
    assert verdict.cleared == ()


HERE = (
    "{} 881 coordination_service.cc:1146] UNAVAILABLE: Task /job:jax_worker/replica:0/task:1"
    " heartbeat timeout. Last heartbeat received 60s ago.\n"
)


@pytest.mark.parametrize(
    ("last", "late_s", "code"),
    [(DEAD - 3, 0, "C4"), (DEAD - 36, 0, "C2"), (DEAD - 120, 0, "C2"), (DEAD - 3, 900, "C2")],
    ids=["it went on", "it stopped in the window", "long before", "a clock of its own"],
)
def test_logs_that_tell_no_year(tmp_path: Path, last: int, late_s: int, code: str) -> None:
    """How far apart their lines are needs none."""
    (tmp_path / "task0.log").write_text(steps(last) + HERE.format(glog("E", DEAD)))
    own = steps(last, late_s) + FATAL.format(glog("F", DEAD + 2 + late_s))
    (tmp_path / "task1.log").write_text(own)

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


WORKER = "/job:worker/replica:0/task:1"
TF = (
    "{0}: E tensorflow/tsl/coordination_service.cc:811] {1} heartbeat timeout. This indicates that"
    " the remote task has failed.\n{0}: F tensorflow/tsl/coordination_service_agent.cc:640]"
    " Terminating process because the coordinator detected missing heartbeats: UNAVAILABLE: {1}"
    " heartbeat timeout.\n"
)


@pytest.mark.parametrize(
    ("last", "code"),
    [(DEAD - 4, "C4"), (DEAD - 60, "C2"), (DEAD - 140, "C2")],
    ids=["it went on", "it stopped in the window", "long before"],
)
def test_a_task_that_is_named_by_its_job_alone(tmp_path: Path, last: int, code: str) -> None:
    """As TensorFlow's workers do; the log of each tells its steps."""
    for n in range(2):
        at = [f"{BEGAN + timedelta(seconds=s):%Y-%m-%d %H:%M:%S.%f}" for s in (0, DEAD + n)]
        head = f"{at[0]}: I tensorflow/tsl/coordination_service_agent.cc:201] connected.\n"
        (tmp_path / f"worker-{n}.n{n + 1}.log").write_text(
            head + steps(last) + TF.format(at[1], WORKER)
        )
    (tmp_path / "sacct.txt").write_text(ROW)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == code
    assert [place.task for place in verdict.cleared] == ([1] if code == "C4" else [])


@pytest.mark.parametrize(("last", "code"), [(DEAD - 12, "C4"), (DEAD - 90, "C2")])
def test_logs_that_print_some_of_the_steps(tmp_path: Path, last: int, code: str) -> None:
    """Two lines that are five steps apart show as many steps as lie between them."""
    told = [line for n, line in enumerate(steps(last).splitlines(keepends=True), 1) if n % 5 == 3]
    (tmp_path / "task0.log").write_text("".join(told) + HERE.format(glog("E", DEAD)))
    (tmp_path / "task1.log").write_text("".join(told) + FATAL.format(glog("F", DEAD + 2)))

    assert diagnose(collect(Request((str(tmp_path),)))).code == code
