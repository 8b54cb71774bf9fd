"""What is told of a step beside the one that trained is no failure of the run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

BEGAN = datetime(2026, 5, 5, 5, tzinfo=UTC)
HEADER = "JobID|JobName|State|ExitCode|Start|End|Elapsed|NNodes|NodeList\n"


def row(of: str, name: str, state: str, until_min: int) -> str:
    end = BEGAN + timedelta(minutes=until_min)
    code = "0:0" if state == "COMPLETED" else "0:125"
    return f"{of}|{name}|{state}|{code}|{BEGAN:%FT%T}|{end:%FT%T}|01:00:00|1|ux17\n"


def run(folder: Path, killed: str, trainer: str = "COMPLETED", name: str = "train.log") -> Request:
    (folder / "sacct.txt").write_text(
        HEADER + row("20771", "det", trainer, 60) + row("20771.0", "train", trainer, 60)
        + row("20771.1", "tensorboard", "OUT_OF_MEMORY", 30)
    )  # fmt: skip
    (folder / "slurm-20771.err").write_text(
        f"slurmstepd: error: Detected 2 oom_kill events in StepId=20771.{killed}. Some of the step"
        " tasks have been OOM Killed.\nsrun: error: ux17: task 0: Out Of Memory\n"
    )
    (folder / name).write_text("".join(
        f"{BEGAN + timedelta(seconds=30 * n):%F %T} INFO step {n}/119 loss {4 - n / 50:.3f}\n"
        for n in range(1, 120)
    ))  # fmt: skip
    return Request((str(folder),), job="20771")


def test_a_monitor_that_is_killed_ends_no_training(tmp_path: Path) -> None:
    """The kill is said to be another step's; the log of no name is the job's by its time."""
    read = collect(run(tmp_path, killed="1"))

    assert diagnose(read).code == "G1"
    assert [gap for gap in read.gaps if "step 1 (tensorboard)" in gap.reason]


@pytest.mark.parametrize(("killed", "trainer"), [("0", "OUT_OF_MEMORY"), ("1", "OUT_OF_MEMORY")],
                         ids=["the trainer", "a job that failed with it"])  # fmt: skip
def test_near_misses(tmp_path: Path, killed: str, trainer: str) -> None:
    assert diagnose(collect(run(tmp_path, killed, trainer))).code == "A2"


@pytest.mark.parametrize("until_min", [28, 20], ids=["amid", "well before"])
def test_the_trainer_may_be_the_shorter_step(tmp_path: Path, until_min: int) -> None:
    """A monitor may go on to the job's end: no training step stands behind the kill."""
    request = run(tmp_path, killed="1")
    log = tmp_path / "train.log"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[: 2 * until_min]))

    assert diagnose(collect(request)).code != "G1"


def test_a_longer_step_that_was_over_before(tmp_path: Path) -> None:
    """Data were prepared; then the trainer was killed."""
    request = run(tmp_path, killed="1")
    records = (tmp_path / "sacct.txt").read_text().splitlines()
    moved = records[-1].replace("05:00:00|2026-05-05T05:30", "06:01:00|2026-05-05T06:31")
    (tmp_path / "sacct.txt").write_text("\n".join([*records[:-1], moved]) + "\n")
    read = collect(request)

    assert not [gap for gap in read.gaps if "is not of the step" in gap.reason]


def test_a_log_of_another_time_is_not_the_jobs(tmp_path: Path) -> None:
    """It may be of an earlier try: nothing but the job's time says whose it is."""
    request = run(tmp_path, killed="1", name="old.log")
    log = tmp_path / "old.log"
    log.write_text(log.read_text().replace("2026-05-05", "2026-05-04"))
    read = collect(request)

    assert "old.log" not in {one.source for one in read.files}
    assert read.last_step is None
