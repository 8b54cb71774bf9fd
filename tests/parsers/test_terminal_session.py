"""Several commands in one file, as somebody kept what a terminal showed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.collect.zone import in_zone
from flatline.diagnose import diagnose
from flatline.errors import FormatError
from flatline.parsers import parsed, record_format_of, squeue_text, terminal_session
from flatline.render.json import document
from flatline.verify import verify

QUEUE = (
    "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
    "             88120      gpu4 pretrain     hana  R    2:41:07      2 nv[07-08]\n"
)
PODS = (
    "NAME             READY   STATUS    RESTARTS   AGE    IP           NODE    NOMINATED NODE\n"
    "pre-7b-worker-0  1/1     Running   0          3h5m   10.1.0.5     nv07    <none>\n"
)
DATE = "Tue Mar 10 08:41:07 UTC 2026\n"
STACK = 'Process 4711: python train.py\nThread 4711 (idle): "MainThread"\n    recv (pool.py:88)\n'
SESSION = f"$ date -u\n{DATE}$ squeue -j 88120\n{QUEUE}$ py-spy dump --pid 4711\n{STACK}"
BASH = f"[hana@login2 ~]$ squeue --me\n{QUEUE}\n[hana@login2 ~]$ kubectl get pods -o wide\n{PODS}"
NODES = "NAME   STATUS   ROLES   AGE    VERSION\nnv07   Ready    gpu     211d   v1.30.5\n"
ABOVE = f"{PODS}\n$ kubectl get nodes\n{NODES}"
SPOKEN = "".join(f"epoch {n} loss {2 / n:.3f} lr 0.1\n" for n in range(1, 90))


@pytest.mark.parametrize(
    ("text", "known"),
    [
        pytest.param(SESSION, True, id="date, list and stack"),
        pytest.param(BASH, True, id="a prompt that bash has"),
        pytest.param(ABOVE, True, id="the first command was cut off"),
        pytest.param(
            f"root@nv07:~# date; ps -e\n{DATE}  PID CMD\n    1 init\n",
            False,
            id="one command: lines",
        ),
        pytest.param(f"$ date\n{DATE}$ ls -l\ntotal 0\n", False, id="no record among them"),
        pytest.param(f"$ squeue\n{QUEUE}", False, id="one command: a table"),
        pytest.param(
            f"$ date\n{DATE}$ tail -100 train.log\n{SPOKEN}", False, id="a log at length"
        ),
        pytest.param(f"$ nvidia-smi -L\nGPU 0: NVIDIA A100\n{SPOKEN}", False, id="of a program"),
        pytest.param(f"{SPOKEN}$ date\n{DATE}$ squeue\n{QUEUE}", False, id="below a log"),
        pytest.param("costs 5$ date\nloss 3\n$ dates\n", False, id="words"),
    ],
)
def test_which_files_are_sessions(text: str, known: bool) -> None:
    assert (record_format_of("notes.txt", text.encode()) is terminal_session) is known


def test_each_part_is_read_by_its_own_format() -> None:
    """A pointer names the command, and is followed to the same value."""
    records = parsed(terminal_session, (SESSION + f"$ kubectl get pods\n{PODS}").encode(), "s.txt")
    (job,), (pod,) = records.jobs, records.pods

    assert (job.id, job.disposition, job.listed_after_s) == ("88120", "running", 9667.0)
    assert job.started_at == datetime(2026, 3, 10, 6, tzinfo=UTC)
    assert pod.name == "pre-7b-worker-0"
    assert job.cite.pointer == "command 2, row 1, ST"
    assert terminal_session.resolve(SESSION.encode(), job.cite.pointer) == "R"
    for pointer in ("command 9, row 1, ST", "row 1, ST", "command 3, row 1, ST"):
        with pytest.raises(FormatError):
            terminal_session.resolve(SESSION.encode(), pointer)


@pytest.mark.parametrize(
    ("date", "utc"),
    [
        ("Tue Mar 10 08:41:07 UTC 2026", "08:41"),
        ("Tue Mar 10 08:41:07 CET 2026", "06:41"),
        ("Tue Mar 10 08:41:07 AM CET 2026", "06:41"),
        ("2026-03-10T08:41:07+01:00", "07:41"),
        ("2026-03-10 08:41:07.123456789Z", "08:41"),
        ("Tue Mar 40 08:41:07 UTC 2026", None),
    ],
)
def test_a_date_is_in_the_zone_that_it_states(date: str, utc: str | None) -> None:
    """Of a cluster whose zone is two hours east of UTC; a name of a zone says too little."""
    session = f"$ date\n{date}\n$ squeue\n{QUEUE}"
    records = parsed(terminal_session, session.encode(), "s.txt")
    moved = in_zone(records, timezone(timedelta(hours=2)))

    assert (f"{moved.now:%H:%M}" if moved.now else None) == utc


def test_a_part_that_cannot_be_read_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """And hides no other."""

    def broken(data: bytes, source: str) -> None:
        raise ValueError("no table")

    monkeypatch.setattr(squeue_text, "parse", broken)
    records = parsed(terminal_session, (SESSION + f"$ kubectl get pods\n{PODS}").encode(), "s.txt")

    assert [gap.where for gap in records.gaps] == ["s.txt"]
    assert len(records.pods) == 1


def test_a_glance_at_a_log_counts_as_its_lines() -> None:
    """Lists alone are no log."""
    assert terminal_session.holds_output(SESSION.encode())
    assert not terminal_session.holds_output(f"$ date\n{DATE}{BASH}".encode())


def test_what_is_more_than_is_read_is_said() -> None:
    """A file of nothing but prompts."""
    many = SESSION + "$ w\nnobody\n" * 500
    records = parsed(terminal_session, many.encode(), "s.txt")

    assert [job.id for job in records.jobs] == ["88120"]
    assert any("only" in gap.reason for gap in records.gaps)


def test_a_run_that_a_session_shows_as_running(tmp_path: Path) -> None:
    """And what is cited of it stands there."""
    began = datetime(2026, 3, 10, 6, 1, tzinfo=UTC)
    steps = "".join(
        f"{began + timedelta(seconds=20 * n):%Y-%m-%d %H:%M:%S} step {n}/4000"
        f" loss {3 * 0.998**n:.4f} grad 0.4\n"
        for n in range(1, 480)
    )
    (tmp_path / "slurm-88120.out").write_text(steps)
    (tmp_path / "looked.txt").write_text(SESSION)

    verdict = diagnose(collect(Request((str(tmp_path),))))
    told = json.loads(json.dumps(document(verdict)))

    assert verdict.code == "G1"
    assert "command 2, row 1, ST" in json.dumps(told)
    assert all(check.ok for check in verify(told, (str(tmp_path),)))
