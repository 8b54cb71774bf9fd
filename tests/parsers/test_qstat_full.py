"""`qstat -f`: the jobs that run, and how far they say they have come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.errors import FormatError
from flatline.parsers import qstat_full

RUNS = (
    "Job Id: 731.pbs01.site.org\n"
    "    Job_Name = llama-7b\n"
    "    resources_used.walltime = 01:00:30\n"
    "    job_state = R\n"
    "    exec_host = n1/0*64+n1/1*64\n\t+n2/0*64\n"
    "    Resource_List.walltime = 06:00:00\n"
    "    stime = Wed Mar  4 08:00:00 2026\n\n"
)
ENDED = RUNS.replace("731", "730").replace("= R", "= F") + "    Exit_status = 271\n"


def test_a_job_that_runs() -> None:
    """One that ended beside it is none of those."""
    records = qstat_full.parse((ENDED + RUNS).encode(), "qstat.txt")

    (job,) = records.jobs
    assert (job.id, job.name, job.disposition) == ("731", "llama-7b", "running")
    assert (job.nodes, job.limit_s) == (("n1", "n2"), 6 * 3600)
    assert job.started_at == datetime(2026, 3, 4, 8, tzinfo=UTC)
    assert records.now == datetime(2026, 3, 4, 9, 0, 30, tzinfo=UTC)
    assert qstat_full.resolve((ENDED + RUNS).encode(), job.cite.pointer) == job.cite.value


def test_what_is_no_record_of_a_job_that_runs() -> None:
    for text in (ENDED, "job_state = R\n" + RUNS, RUNS.replace("= R", "= Q")):
        assert not qstat_full.recognise("qstat.txt", text.encode())
    with pytest.raises(FormatError):
        qstat_full.parse(ENDED.encode(), "qstat.txt")
    with pytest.raises(FormatError):
        qstat_full.resolve(RUNS.encode(), "731, Exit_status")


@pytest.mark.parametrize(("behind_s", "code"), [(20, "G1"), (900, None)])
def test_a_log_that_goes_on_as_the_record_says(
    tmp_path: Path, behind_s: int, code: str | None
) -> None:
    """One that stopped long before it was asked does not."""
    until = datetime(2026, 3, 4, 9, 0, 30, tzinfo=UTC) - timedelta(seconds=behind_s)
    at, lines = datetime(2026, 3, 4, 8, 5, tzinfo=UTC), []
    while (at := at + timedelta(seconds=10)) <= until:
        n = len(lines) + 1
        lines.append(
            f"{at:%Y-%m-%d %H:%M:%S},000 INFO step {n}/9000 loss {2 + 90 / (n + 9):.4f}\n"
        )
    (tmp_path / "llama-7b.o731").write_text("".join(lines))
    (tmp_path / "qstat.txt").write_text(RUNS)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code if verdict.code == "G1" else None) == code
    assert verdict.run.id == "731"
    assert verdict.confidence < 0.8 or code is None
