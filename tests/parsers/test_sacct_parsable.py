"""`sacct -P` with any columns and delimiter, and sacct's plain table."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flatline.errors import FormatError
from flatline.model import Job
from flatline.parsers.sacct_parsable import parse, recognise, resolve

RECORDED = (Path(__file__).parents[1] / "fixtures/slurm/sacct.psv").read_bytes()
GCM = Path(__file__).parents[3] / "shared/realdata/gcm/gcm/tests/data"


def jobs(text: str) -> tuple[Job, ...]:
    return parse(text.encode(), "sacct.psv").jobs


def by_id(data: bytes) -> dict[str, Job]:
    return {job.id: job for job in parse(data, "sacct.psv").jobs}


def test_recorded_ends() -> None:
    """Exit codes, signals and dispositions of the recorded jobs, as events.log has them."""
    job = by_id(RECORDED)
    assert (job["6"].exit_code, job["6"].derived_exit_code) == (7, 3)
    assert (job["7"].disposition, job["7"].steps[1].signal) == ("timeout", 15)
    assert (job["9"].exit_code, job["9"].signal, job["9"].derived_signal) == (15, None, 15)
    assert (job["12"].disposition, job["23"].disposition) == ("node_fail", "node_fail")
    assert (job["8"].disposition, job["8"].cancelled_by) == ("cancelled", "0")
    assert (job["16_2"].exit_code, job["4"].gpus, job["4"].node_count) == (1, 32, 4)


def test_out_of_memory_marks() -> None:
    """0:125 is no exit and no signal; of a derived code it is kept, since steps may be absent."""
    job = by_id(RECORDED)
    assert (job["15"].disposition, job["15"].exit_code, job["15"].signal) == (
        "out_of_memory",
        None,
        None,
    )
    assert (job["11"].disposition, job["11"].derived_signal) == ("failed", 125)
    assert job["11"].steps[1].disposition == "out_of_memory"


def test_a_requeued_job_has_a_row_a_run_each_with_its_steps() -> None:
    """Both rows of job 10, oldest first, and the steps that follow each of them."""
    both = [job for job in parse(RECORDED, "s").jobs if job.id == "10"]
    assert [job.disposition for job in both] == ["requeued", "cancelled"]
    assert [len(job.steps) for job in both] == [2, 2]
    assert both[0].steps[0].started_at == both[0].started_at


def test_times_are_taken_for_utc_and_now_is_the_latest() -> None:
    """Times carry no zone; None and Unknown are no times."""
    records = parse(RECORDED, "s")
    assert records.now == datetime(2026, 11, 20, 16, 0, 30, tzinfo=UTC)
    assert by_id(RECORDED)["1"].started_at is None
    assert by_id(RECORDED)["1"].nodes == ()


def test_a_running_job_vouches_for_now() -> None:
    """Start and Elapsed of a running job tell when sacct was asked; its 0:0 is no exit code."""
    text = (
        "JobID|State|ExitCode|Start|End|Elapsed\n"
        "5|RUNNING|0:0|2026-11-20T15:00:00|Unknown|1-00:00:01\n"
    )
    records = parse(text.encode(), "s")
    assert records.now == datetime(2026, 11, 21, 15, 0, 1, tzinfo=UTC)
    assert (records.jobs[0].exit_code, records.jobs[0].ended_at) == (None, None)


@pytest.mark.parametrize(
    "text",
    [
        "JobID|State\n5|FAILED\n5.0|CANCELLED\n",
        "JobID|State|\n5|FAILED|\n5.0|CANCELLED|\n",
        "JobID;State\r\n5;FAILED\r\n5.0;CANCELLED\r\n",
        "JobID|#State\n5|#FAILED\n5.0|#CANCELLED\n",
        "JobID,State\n5,FAILED\n5.0,CANCELLED\n",
        "JobID\tState\n5\tFAILED\n5.0\tCANCELLED\n",
        "$ sacct -P -j 5\nJobID|State\n5|FAILED\n5.0|CANCELLED\n",
        "State|NewColumn|JobIDRaw\nFAILED|x|5\nCANCELLED|x|5.0\n",
        "JobID|State\n5.0|CANCELLED\n5|FAILED\n",
        "JobID|State\n5|FAILED\nJobID|NNodes|State\n5.0|1|CANCELLED\n",
    ],
)
def test_any_delimiter_and_any_columns(text: str) -> None:
    """The header tells the delimiter and the columns, even where it changes half-way."""
    (job,) = jobs(text)
    assert recognise("x", text.encode())
    assert (job.id, job.disposition) == ("5", "failed")
    assert [(step.id, step.disposition) for step in job.steps] == [("0", "cancelled")]


def test_values_over_several_lines_and_with_the_delimiter() -> None:
    """A comment with line breaks and the delimiter leaves the other columns right."""
    text = (
        "JobID|JobName|State|ExitCode|Comment|NodeList\n"
        "5|a|FAILED|1:0|first\n\nsecond|third|n1\n"
        "6|c|TIMEOUT|0:0|first\nsecond|n[1-2]\n"
        "7|d|COMPLETED|0:0||n3\n"
    )
    found = {job.id: job for job in jobs(text)}
    assert (found["5"].disposition, found["5"].nodes) == ("failed", ("n1",))
    assert (found["6"].disposition, found["6"].nodes) == ("timeout", ("n1", "n2"))
    assert (found["7"].disposition, found["7"].nodes) == ("completed", ("n3",))


def test_a_delimiter_in_one_free_column_is_put_right() -> None:
    """Only one place for the surplus field agrees with the state and the code."""
    (job,) = jobs("JobID|JobName|State|ExitCode|NodeList\n5|a|b|FAILED|1:0|n1\n")
    assert (job.name, job.disposition, job.exit_code, job.nodes) == ("a|b", "failed", 1, ("n1",))


def test_a_delimiter_in_two_free_columns_is_put_right() -> None:
    """A name with the delimiter stands in the submit line too."""
    (job,) = jobs(
        "JobID|JobName|State|ExitCode|NodeList|SubmitLine|WorkDir\n"
        "5|a|b|FAILED|1:0|n[1-2]|sbatch -J a|b x.sh|/home/u\n"
    )
    assert (job.name, job.submit_line) == ("a|b", "sbatch -J a|b x.sh")
    assert (job.disposition, job.nodes) == ("failed", ("n1", "n2"))


@pytest.mark.parametrize("end", ["", ","])
def test_a_comma_for_a_delimiter(end: str) -> None:
    """Resources and node lists hold commas of their own, with `-p` and with `-P`."""
    text = f"JobID,State,AllocTRES,NodeList{end}\n5,FAILED,cpu=4,gres/gpu=8,n1,n[3,7]{end}\n"
    (job,) = jobs(text)
    assert (job.gpus, job.nodes) == (8, ("n1", "n3", "n7"))


def test_a_row_that_fits_in_two_ways_is_left_out() -> None:
    """A job's name may not choose its state."""
    with pytest.raises(FormatError):
        jobs("JobID|JobName|State|Comment\n5|x|COMPLETED|FAILED|c\n")


def test_a_broken_row_does_not_swallow_the_next() -> None:
    """A row cut short is left out; the whole row after it is read."""
    (job,) = jobs("JobID|State|ExitCode\n5|FAI\n6|FAILED|1:0\n7|TIME")
    assert (job.id, job.disposition) == ("6", "failed")


def test_heterogeneous_parts_and_waiting_arrays() -> None:
    """`20+1.batch` is a step of `20+1`; a waiting array keeps its brackets."""
    found = {
        j.id: j for j in jobs("JobID|State\n20+1|FAILED\n20+1.batch|FAILED\n16_[3-9%2]|PENDING\n")
    }
    assert found["20+1"].steps[0].id == "batch"
    assert found["16_[3-9%2]"].disposition == "pending"


def test_steps_without_their_job_are_kept() -> None:
    """A file of steps alone gives a job that says nothing of its own state."""
    (job,) = jobs("JobID|State\n5.batch|FAILED\n5.0|OUT_OF_MEMORY\n")
    assert (job.disposition, job.state, len(job.steps)) == ("unknown", "", 2)


TABLE = """\
$ sacct -j 5
JobID           JobName  Partition    Account  AllocCPUS      State ExitCode
------------ ---------- ---------- ---------- ---------- ---------- --------
5                 train        gpu         ml         64 OUT_OF_ME+    0:125
5.batch           batch                    ml         64 CANCELLED+     0:15
123456.exte+     extern                    ml         64  COMPLETED      0:0
"""


def test_the_plain_table_is_read_by_its_dashes() -> None:
    """Cut states and step ids are completed where only one word fits."""
    found = {job.id: job for job in jobs(TABLE)}
    assert recognise("x", TABLE.encode())
    assert found["5"].disposition == "out_of_memory"
    assert found["5"].steps[0].disposition == "cancelled"
    assert found["123456"].steps[0].id == "extern"


@pytest.mark.parametrize("cut", ["5           ", "12345_[1-99+", "12345.99999+"])
def test_a_table_that_cuts_job_ids_is_refused(cut: str) -> None:
    """A job id that is not whole could be another job's."""
    text = TABLE.replace("5.batch     ", cut)
    if cut.endswith("+"):
        with pytest.raises(FormatError, match="sacct -P"):
            jobs(text)
    else:
        assert len(jobs(text)) == 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5|FAILED|1:0\n",
        "JobID|State\n",
        "JobID           State\n5 FAILED\n",
        "name|value|JobID|other|more\n1|2|3|4|5\n",
        "JobID State\n" * 3,
    ],
)
def test_without_a_header_or_rows_it_is_refused(text: str) -> None:
    """The default order of columns depends on the version: it is not guessed."""
    with pytest.raises(FormatError):
        jobs(text)


def test_every_citation_resolves_again() -> None:
    """`row 12, State` leads back to the value, in both layouts and with joined lines."""
    several = b"JobID|Comment|State\n5|a\nb|FAILED\n6||TIMEOUT\n"
    for data in (RECORDED, TABLE.encode(), several):
        for job in parse(data, "s").jobs:
            for cite in (job.cite, *(step.cite for step in job.steps)):
                assert resolve(data, cite.pointer) == cite.value
    assert resolve(several, "row 2, State") == "TIMEOUT"


@pytest.mark.parametrize("pointer", ["row 99, State", "row 1, Nope", "row one", "/jobs/0"])
def test_pointers_to_nothing_are_refused(pointer: str) -> None:
    """A pointer that leads nowhere is a FormatError, never a wrong value."""
    with pytest.raises(FormatError):
        resolve(RECORDED, pointer)


@given(st.binary(max_size=120), st.sampled_from([b"", b"JobID|State|Comment\n", TABLE.encode()]))
def test_arbitrary_bytes_raise_only_format_error(data: bytes, head: bytes) -> None:
    """No bytes, under any header, raise anything but FormatError."""
    assert recognise("x", head + data) in (True, False)
    with suppress(FormatError):
        parse(head + data, "s")


@pytest.mark.skipif(not GCM.exists(), reason="the recorded sacct dumps are not here")
def test_third_party_dumps() -> None:
    """Values over several lines end up as in the dumps' own joined versions."""
    for path in sorted(GCM.glob("sample-sacct-*-expected.txt")):
        raw = path.with_name(path.name.replace("-expected", ""))
        seen = {(job.id, job.state, len(job.steps)) for job in parse(path.read_bytes(), "s").jobs}
        if "midnight" not in path.name:
            assert seen == {
                (j.id, j.state, len(j.steps)) for j in parse(raw.read_bytes(), "s").jobs
            }
    invalid = parse((GCM / "sample-sacct-output-invalid-utf8.txt").read_bytes(), "s")
    assert sum(len(job.steps) for job in invalid.jobs) == 9


def test_whose_job_it_was_and_where() -> None:
    """A listing filters by them; absent columns leave them open."""
    rows = b"JobID|User|Partition|State\n7|ann|gpu|FAILED\n"
    (job,) = parse(rows, "").jobs
    assert (job.user, job.partition) == ("ann", "gpu")
    (job,) = parse(b"JobID|State\n7|FAILED\n", "").jobs
    assert (job.user, job.partition) == (None, None)
