"""What `qstat -f` says of jobs."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from flatline.errors import FormatError
from flatline.model import Job
from flatline.parsers import pbs_qstat

RUNNING = """\
Job Id: 71203.pbs-01.site.org
    Job_Name = ft
    Job_Owner = ada@login-2.site.org
    resources_used.walltime = 01:30:00
    job_state = R
    queue = medium
    exec_host = x3001c0s1b0n0/0*64+x3001c0s7b0n0/0*64
    exec_vnode = (x3001c0s1b0n0:ncpus=64:ngpus=4)+(x3001c0s7b0n0:ncpus=64:ngpus
\t=4)
    Output_Path = login-2.site.org:/users/ada/ft.o71203
    Resource_List.walltime = 24:00:00
    run_count = 2
    stime = Wed Apr 22 16:44:10 2026
    Variable_List = PBS_O_HOME=/users/ada,PBS_O_WORKDIR=/scratch/ada/ft,
\tPBS_O_QUEUE=medium
    comment = Job run at Wed Apr 22 at 16:44
"""


def one(text: str) -> Job:
    (job,) = pbs_qstat.parse(text.encode(), "qstat.txt").jobs
    return job


def test_a_job_that_runs() -> None:
    job = one(RUNNING)

    assert (job.id, job.name, job.user, job.partition) == ("71203", "ft", "ada", "medium")
    assert (job.disposition, job.scheduler, job.exit_code) == ("running", "pbs", None)
    assert job.nodes == ("x3001c0s1b0n0", "x3001c0s7b0n0")
    assert (job.gpus, job.limit_s, job.restarts) == (8, 86_400, 1)
    assert (job.work_dir, job.std_out) == ("/scratch/ada/ft", "/users/ada/ft.o71203")
    assert job.started_at == datetime(2026, 4, 22, 16, 44, 10, tzinfo=UTC)
    assert job.ended_at is None


def test_it_proves_how_late_it_is() -> None:
    """By when it began and how long it has run."""
    told = pbs_qstat.parse(RUNNING.encode(), "qstat.txt")

    assert told.now == datetime(2026, 4, 22, 18, 14, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "walltime", "disposition", "code", "signal"),
    [
        ("0", "01:30:00", "completed", 0, None),
        ("1", "01:30:00", "failed", 1, None),
        ("137", "01:30:00", "failed", 137, None),
        ("271", "01:30:00", "cancelled", None, 15),
        ("271", "24:00:12", "timeout", None, 15),
        ("265", "01:30:00", "failed", None, 9),
        ("-29", "24:00:07", "timeout", None, None),
        ("-27", "01:30:00", "out_of_memory", None, None),
        ("-3", "00:00:01", "failed", None, None),
    ],
)
def test_how_one_ended(
    status: str, walltime: str, disposition: str, code: int | None, signal: int | None
) -> None:
    text = RUNNING.replace("job_state = R", f"job_state = F\n    Exit_status = {status}")
    job = one(text.replace("01:30:00", walltime))

    assert (job.disposition, job.exit_code, job.signal) == (disposition, code, signal)
    assert job.ended_at is not None


def test_one_that_waits_did_not_begin() -> None:
    job = one(RUNNING.replace("job_state = R", "job_state = Q"))

    assert (job.disposition, job.started_at) == ("pending", None)


def test_one_that_is_over_and_says_no_more() -> None:
    """Deleted before it ran, or moved."""
    assert one(RUNNING.replace("job_state = R", "job_state = F")).disposition == "unknown"


def test_the_same_as_json() -> None:
    said = {
        "Job_Name": "ft", "job_state": "R", "exec_host": "n1/0*64+n2/0*64", "run_count": 1,
        "resources_used": {"walltime": "01:30:00"}, "Resource_List": {"ngpus": 8},
        "Variable_List": {"PBS_O_WORKDIR": "/scratch/ada"}, "stime": "Wed Apr 22 16:44:10 2026",
    }  # fmt: skip
    data = json.dumps({"timestamp": 1, "pbs_version": "2024.1", "Jobs": {"7.s": said}}, indent=4)
    job = one(data)

    assert pbs_qstat.recognise("jobs.json", data.encode())
    assert (job.nodes, job.gpus, job.work_dir) == (("n1", "n2"), 8, "/scratch/ada")


def test_what_it_cites_is_found_again() -> None:
    cite = one(RUNNING).cite

    assert pbs_qstat.resolve(RUNNING.encode(), cite.pointer) == cite.value == "R"
    with pytest.raises(FormatError):
        pbs_qstat.resolve(RUNNING.encode(), "job 1.s, job_state")


@pytest.mark.parametrize(
    ("text", "known"),
    [(RUNNING, True), ("$ qstat -f 71203\n" + RUNNING, True),
     ("step 1 loss 2.0\nJob Id: seven of them\n", False), ('{"Jobs": {}}', False)],
)  # fmt: skip
def test_what_is_such_a_record(text: str, known: bool) -> None:
    assert pbs_qstat.recognise("out.txt", text.encode()) is known


@pytest.mark.parametrize("text", ["", "{", '{"Jobs": 3}', "Job Id:\n    job_state = R\n", "\0"])
def test_bad_input_is_told(text: str) -> None:
    with pytest.raises(FormatError):
        pbs_qstat.parse(text.encode(), "qstat.txt")
