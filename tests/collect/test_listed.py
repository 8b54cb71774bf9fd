"""Jobs that a list shows as running, where it is all that is kept of a run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.errors import FormatError
from flatline.facts import Facts
from flatline.parsers import squeue_text

BEGAN = datetime(2026, 5, 4, 8, tzinfo=UTC)
HEADING = "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
OWN = "             51207      h200 duplex-7   ilkova  R    1:02:10      2 vx[11-12]\n"
OTHER = "             51190      h200  spec-pt   bernat  R   19:40:02      4 vx[01-03,05]\n"
WAITS = "             51214      h200 duplex-7   ilkova PD       0:00      2 (Resources)\n"
PODS = "NAME   READY   STATUS   RESTARTS   AGE   IP   NODE   NOMINATED NODE   READINESS GATES\n"
POD = "{name}   1/1   {status}   0   61m   10.8.0.{n}   vx{n}   <none>   <none>\n"


def log(steps: int = 170) -> str:
    rows = []
    for n in range(1, steps):
        at, loss = BEGAN + timedelta(seconds=20 * n), 2 + 9 / (n + 4)
        rows.append(f"{at:%F %T} INFO step {n}/9000 loss {loss:.3f}\n")
    return "".join(rows)


def read(folder: Path, files: dict[str, str], job: str | None = None) -> Facts:
    for name, text in files.items():
        (folder / name).write_text(text)
    return collect(Request((str(folder),), job))


def pods(*rows: tuple[str, str]) -> str:
    return PODS + "".join(
        POD.format(name=name, status=status, n=n) for n, (name, status) in enumerate(rows)
    )


def test_what_is_no_table_of_squeue() -> None:
    nodes = "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\nh200 up 1:00 1 idle vx11\n"
    for text in ("JobID|State|NodeList\n51207|RUNNING|vx11\n", nodes):
        assert not squeue_text.recognise("squeue.txt", text.encode())
        with pytest.raises(FormatError):
            squeue_text.parse(text.encode(), "s")


def test_the_one_that_is_listed_runs(tmp_path: Path) -> None:
    facts = read(tmp_path, {"train.log": log(), "squeue.txt": HEADING + OWN})
    assert facts.job is not None
    assert (facts.job.id, facts.disposition) == ("51207", "running")
    assert diagnose(facts).code == "G1"


@pytest.mark.parametrize("job", [None, "51207"])
def test_of_several_the_one_that_a_log_is_named_after(tmp_path: Path, job: str | None) -> None:
    files = {"train.log" if job else "slurm-51207.out": log(),
             "squeue.txt": HEADING + OTHER + OWN}  # fmt: skip
    facts = read(tmp_path, files, job)
    assert facts.job is not None
    assert facts.job.id == "51207"


@pytest.mark.parametrize(
    ("name", "rows"),
    [("train.log", OTHER + OWN), ("slurm-51100.out", OWN), ("train.log", WAITS)],
    ids=["of two", "of another", "waits"],
)
def test_where_the_run_may_be_none_of_them(tmp_path: Path, name: str, rows: str) -> None:
    facts = read(tmp_path, {name: log(), "squeue.txt": HEADING + rows})
    assert facts.job is None
    assert diagnose(facts).code is None


def test_beside_a_record_a_list_tells_nothing(tmp_path: Path) -> None:
    record = "JobID|State|Start|End|NodeList\n51207|TIMEOUT|2026-05-04T08:00:00|" \
        "2026-05-04T09:00:00|vx[11-12]\n"  # fmt: skip
    facts = read(tmp_path, {"train.log": log(), "squeue.txt": HEADING + OTHER,
                            "sacct.txt": record})  # fmt: skip
    assert facts.job is not None
    assert (facts.job.id, facts.disposition) == ("51207", "timeout")


def test_pods_of_a_namespace(tmp_path: Path) -> None:
    """Those of the job that the log is named after count, whatever became of others."""
    listed = pods(("duplex-7b-worker-0", "Running"), ("duplex-7b-worker-1", "Running"),
                  ("tok-worker-0", "Error"))  # fmt: skip
    facts = read(tmp_path, {"duplex-7b.log": log(), "pods.txt": listed})
    assert facts.job is not None
    assert (facts.job.id, facts.disposition, facts.job.nodes) == (
        "duplex-7b", "running", ("vx0", "vx1"))  # fmt: skip


@pytest.mark.parametrize(
    ("name", "one", "two"),
    [
        ("train.log", "Running", "Error"),
        ("duplex-7b.log", "Error", "Running"),
        ("duplex-7b.log", "Pending", "Running"),
    ],
)
def test_pods_that_may_not_be_its_own_or_do_not_run(
    tmp_path: Path, name: str, one: str, two: str
) -> None:
    listed = pods(("duplex-7b-worker-0", one), ("tok-worker-0", two))
    assert read(tmp_path, {name: log(), "pods.txt": listed}).job is None


@pytest.mark.parametrize(
    ("name", "ended", "nodes"),
    [
        ("duplex-7b-worker-0.log", "Completed", ("vx0", "vx1")),
        ("duplex-7b-worker-1.log", "Error", ("vx0", "vx1")),
        ("duplex-7b.log", "Completed", None),
        ("tok-worker-1.log", "Completed", None),
    ],
    ids=["of its pods", "of one that failed", "of its job", "of a pod that is not listed"],
)
def test_ended_pods_of_a_namespace(
    tmp_path: Path, name: str, ended: str, nodes: tuple[str, ...] | None
) -> None:
    """They stay in the list after earlier tries as well: a log says which are the run's."""
    listed = pods(("duplex-7b-worker-0", ended), ("duplex-7b-worker-1", ended),
                  ("tok-worker-0", "Terminating"))  # fmt: skip
    job = read(tmp_path, {name: log(), "pods.txt": listed}).job
    assert (job and job.nodes) == nodes
