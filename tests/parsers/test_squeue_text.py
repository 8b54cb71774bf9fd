"""`squeue` as a table of text: one job, since when it runs and where."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from flatline.errors import FormatError
from flatline.parsers import squeue_text

HEADER = "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)"
ROW = "             71402       gpu asr_conf   mvirta  R 1-02:03:04      2 n[07-08]"


def test_since_when_a_job_runs() -> None:
    data = f"Wed Nov 19 00:08:55 EET 2025\n{HEADER}\n{ROW}\n".encode()
    records = squeue_text.parse(data, "squeue.txt")
    (job,) = records.jobs

    assert squeue_text.recognise("squeue.txt", data)
    assert (job.id, job.disposition, job.nodes) == ("71402", "running", ("n07", "n08"))
    assert records.now == datetime(2025, 11, 19, 0, 8, 55, tzinfo=UTC)
    assert job.started_at == datetime(2025, 11, 17, 22, 5, 51, tzinfo=UTC)
    assert squeue_text.resolve(data, "row 1, ST") == "R"


def test_a_table_without_a_date_and_a_job_that_waits() -> None:
    row = ROW.replace(" R 1-02:03:04      2 n[07-08]", "PD 0:00 2 (ReqNodeNotAvail, n7 is down)")
    (job,) = squeue_text.parse(f"$ squeue -j 71402\n{HEADER}\n{row}\n".encode(), "a.txt").jobs

    assert (job.disposition, job.started_at, job.nodes) == ("pending", None, ())
    assert job.reason == "ReqNodeNotAvail, n7 is down"


@pytest.mark.parametrize(
    "text",
    [
        f"{HEADER}\n{ROW}\n{ROW.replace('71402', '71403')}\n",
        f"{HEADER}\n",
        f"{HEADER}\n{ROW}\nstep 10 loss 2.1\n",
        f"{HEADER.replace('ST', 'PRI')}\n{ROW}\n",
        f"{HEADER}\n{ROW.replace(' R ', ' ? ')}\n",
    ],
    ids=["two jobs", "none", "a log below", "no state", "no known state"],
)
def test_what_is_no_table_of_one_job(text: str) -> None:
    assert not squeue_text.recognise("squeue.txt", text.encode())
    with pytest.raises(FormatError):
        squeue_text.parse(text.encode(), "squeue.txt")
