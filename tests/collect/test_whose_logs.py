"""Which logs of a folder are one job's, and what is said of those that are left out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.collect.files import classify
from flatline.diagnose import diagnose
from flatline.errors import ManyJobs
from flatline.facts import LOG, SCHEDULER, Facts

BEGAN = datetime(2026, 5, 5, 5, tzinfo=UTC)
HEADER = "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
FULL = "2026-05-05 05:03:00 ERROR RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
NOTE = "resubmitted by hand after the maintenance\nsee the wiki\n"


def row(of: str, state: str = "COMPLETED", first_min: float = 0, until_min: float = 90) -> str:
    begins, ends = (BEGAN + timedelta(minutes=at) for at in (first_min, until_min))
    end = "Unknown" if state in ("RUNNING", "PENDING") else f"{ends:%FT%T}"
    code = "1:0" if state == "FAILED" else "0:0"
    return f"{of}|lm|{state}|{code}|{begins:%FT%T}|{end}|ux17\n"


def steps(first_min: float = 1, count: int = 120) -> str:
    at = [BEGAN + timedelta(minutes=first_min, seconds=30 * n) for n in range(count)]
    return "".join(
        f"{when:%F %T} INFO step {n}/500 loss {4 - n / 50:.3f}\n" for n, when in enumerate(at, 1)
    )


def read(folder: Path, files: dict[str, str], job: str | None = "1003") -> Facts:
    for name, text in files.items():
        (folder / name).write_text(text)
    return collect(Request((str(folder),), job=job))


def left_out(facts: Facts) -> list[str | None]:
    return [gap.where for gap in facts.gaps if gap.need == LOG and "left out" in gap.reason]


@pytest.mark.parametrize("state", ["RUNNING", "COMPLETED"])
def test_a_log_of_no_name_is_the_jobs_by_its_time(tmp_path: Path, state: str) -> None:
    """Where what is named after the job has no steps: also of one that runs on."""
    facts = read(tmp_path, {"sacct.txt": HEADER + row("1003", state), "train.log": steps(),
                            "train.log.1003.note": NOTE})  # fmt: skip
    logs = {file.source for file in facts.files if file.kind == LOG}

    assert facts.last_step == 120
    assert logs == {"train.log", "train.log.1003.note"}
    assert not left_out(facts)


@pytest.mark.parametrize(
    ("state", "log", "note"),
    [
        ("RUNNING", steps(-90), NOTE),
        ("RUNNING", steps(-30), NOTE),
        ("COMPLETED", steps(60), NOTE),
        ("PENDING", steps(), NOTE),
        ("RUNNING", steps(), steps(2)),
        ("RUNNING", "step 1/500 loss 4.0\nstep 2/500 loss 3.9\n", NOTE),
        ("RUNNING", FULL, NOTE),
    ],
    ids=["of hours before", "begun before it", "gone on behind it", "of a job that waits",
         "beside steps of its own", "without dates", "without steps"],
)  # fmt: skip
def test_a_log_that_is_left_out_is_told(tmp_path: Path, state: str, log: str, note: str) -> None:
    """It may be an earlier try's."""
    facts = read(tmp_path, {"sacct.txt": HEADER + row("1003", state), "train.log": log,
                            "train.log.1003.note": note})  # fmt: skip

    assert left_out(facts) == ["train.log"]
    assert "train.log" not in {file.source for file in facts.files}


def test_beside_logs_of_other_jobs_those_of_no_name_are_told(tmp_path: Path) -> None:
    """Another job's own are not: nobody asked for them."""
    facts = read(tmp_path, {"sacct.txt": HEADER + row("1003") + row("1004"),
                            "slurm-1003.out": steps(), "slurm-1004.out": steps(),
                            "rank_0.log": steps()})  # fmt: skip

    assert left_out(facts) == ["rank_0.log"]
    assert {file.source for file in facts.files if file.kind == LOG} == {"slurm-1003.out"}


PRINTED = HEADER + row("1003") + row("1004", "FAILED")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("slurm-1003.out", LOG), ("slurm-1003_7.out", LOG), ("slurm.1003.err", LOG),
        ("slurm-1003.txt", SCHEDULER), ("sacct-1003.out", SCHEDULER), ("slurm.out", SCHEDULER),
        ("slurm-records.out", SCHEDULER), ("my-slurm-1003.out", SCHEDULER),
    ],
)  # fmt: skip
def test_what_a_job_printed_is_its_log(tmp_path: Path, name: str, kind: str) -> None:
    """As Slurm names it, though it holds nothing but records."""
    (tmp_path / name).write_text(PRINTED)

    assert classify(tmp_path / name, name, [])[0] == kind


@pytest.mark.parametrize("holds", [PRINTED, PRINTED + steps()], ids=["records", "and steps"])
def test_what_a_job_printed_of_others_names_it(tmp_path: Path, holds: str) -> None:
    facts = read(tmp_path, {"records.psv": PRINTED, "slurm-1003.out": holds}, None)

    assert facts.job is not None
    assert facts.job.id == "1003"


@pytest.mark.parametrize(
    ("name", "job"),
    [
        ("sacct-1004.txt", "1004"),
        ("job_1003.psv", "1003"),
        ("sacct-9999.txt", None),
        ("sacct.txt", None),
    ],
)
def test_a_file_of_records_of_several_names_one(
    tmp_path: Path, name: str, job: str | None
) -> None:
    """After which somebody called it."""
    if job is None:
        with pytest.raises(ManyJobs):
            read(tmp_path, {name: PRINTED}, None)
        return
    facts = read(tmp_path, {name: PRINTED}, None)

    assert facts.job is not None
    assert facts.job.id == job


HELD = "2026-05-05 05:00:10 srun: error: ux17: task 0: Exited with exit code 1\n"


@pytest.mark.parametrize(
    ("log", "note", "until_min", "left"),
    [
        (steps(-120), HELD, 3, ["last.log"]),
        (steps(-60 * 24, 6), HELD, 90, ["last.log"]),
        (steps(-120, 60), HELD, 90, []),
        (steps(-120), HELD + steps(1, 3), 3, []),
        (steps(-1, 6), HELD, 3, []),
        (NOTE + "step 1/500 loss 4.0\nstep 2/500 loss 3.9\n", HELD, 3, []),
    ],
    ids=["an hour of two hours before", "of the day before", "may be of another zone",
         "may be what it goes on from", "begins as the job does", "without dates"],
)  # fmt: skip
def test_what_was_over_before_the_job_is_not_its_log(
    tmp_path: Path, log: str, note: str, until_min: float, left: list[str]
) -> None:
    """A folder that is used again holds what the last run left there."""
    record = row("1003", "FAILED", until_min=until_min)
    facts = read(tmp_path, {"sacct.txt": HEADER + record, "last.log": log,
                            "slurm-1003.out": note}, None)  # fmt: skip

    assert left_out(facts) == left
    assert ("last.log" in {file.source for file in facts.files}) is not bool(left)


@pytest.mark.parametrize(
    ("name", "said", "doubted"),
    [
        ("lm.1002.out", "", True),
        ("slurm-1002_4.out", "", True),
        ("lm.o1002", "", True),
        ("lm.1003.out", "", False),
        ("train.log", "", False),
        ("lm.20261.out", "", False),
        ("lm.1002.out", "SLURM_JOB_ID=1003\n", False),
    ],
)
def test_a_log_of_another_name_is_not_surely_the_asked_jobs(
    tmp_path: Path, name: str, said: str, doubted: bool
) -> None:
    """No record was read: only its name says whose it may be."""
    ends = (
        "Traceback (most recent call last):\n"
        '  File "train.py", line 60, in step\n    loss.backward()\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"
        " capacity of 79.10 GiB of which 1.02 GiB is free.\n"
    )
    facts = read(tmp_path, {name: said + steps() + ends})
    found = diagnose(facts)

    assert found.code == "B1"
    assert (found.confidence < 0.8) == doubted
    assert any("1002" in text for text in found.cannot_decide) == doubted


@pytest.mark.parametrize(("asked", "doubted"), [("1003", True), ("1002", False)])
def test_another_jobs_sound_log_does_not_clear_the_asked_one(
    tmp_path: Path, asked: str, doubted: bool
) -> None:
    """Also where there are more such logs than gaps are told of apart."""
    files = {f"slurm-1002.{n}.out": steps(count=500) + "Training complete\n" for n in range(24)}
    found = diagnose(read(tmp_path, files, asked))

    assert found.code == "G1"
    assert any("was asked for" in text for text in found.cannot_decide) == doubted
    assert not doubted or found.confidence < 0.8
