"""What LSF prints and mails of jobs: `bjobs`, `bjobs -l`, `bhist -l`, the report."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.errors import FormatError
from flatline.facts import LOG, SCHEDULER
from flatline.model import Job, Records
from flatline.parsers import lsf_bjobs, lsf_long, lsf_report, record_format_of

DATE = "Thu Nov  5 09:12:00 UTC 2026\n"
TABLE = """\
JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME
3926    ada     RUN   priority   login1      16*gpu07    my verilog Nov  5 08:00
                                             16*gpu08
1480    ada     PEND  priority   login1                  generator  Dec 19 18:13
605[2]  ada     EXIT  idle       login1      gpu09       t          Nov  4 18:07
"""
HISTORY = """\
Job <771>, Job Name <lm>, User <ada>, Project <default>, Command <bash run.sh -
                     -lr 1>
Tue Nov  3 06:58:10: Submitted from host <login1>, to Queue <long>, CWD <$HOME>;
Tue Nov  3 06:59:00: Dispatched 16 Task(s) on Host(s) <8*gpu01> <8*gp
                     u02>, Allocated 16 Slot(s) on Host(s) <8*gpu01> <8*gpu02>;
Tue Nov  3 06:59:01: Starting (Pid 3201);
{ends}
Summary of time in seconds spent in various states by  Tue Nov  3 08:13:39
  PEND     PSUSP    RUN      USUSP    SSUSP    UNKWN    TOTAL
  30       0        4419     0        0        0        4449
"""
REPORT = """\
Sender: LSF System <lsfadmin@gpu01>
Subject: Job 771: <lm> in cluster <c1> {status}

Job <lm> was submitted from host <login1> by user <ada> in cluster <c1> at Tue Nov  3 06:58:10 2026
Job was executed on host(s) <8*gpu01>, in queue <long>, as user <ada> in cluster <c1>
                            <8*gpu02>
</home/ada> was used as the home directory.
Started at Tue Nov  3 06:59:00 2026
Terminated at Tue Nov  3 08:59:04 2026
Results reported at Tue Nov  3 08:59:05 2026

Your job looked like:

------------------------------------------------------------
# LSBATCH: User input
#BSUB -W 2:00
echo "Successfully completed."
------------------------------------------------------------

{ends}

Resource usage summary:

    CPU time :                                   60513.60 sec.

The output (if any) follows:
{output}"""


def one(form: ModuleType, text: str) -> Job:
    assert record_format_of("told.txt", text.encode()) is form
    (job,) = read(form, text).jobs
    assert form.resolve(text.encode(), job.cite.pointer) == job.cite.value
    return job


def read(form: ModuleType, text: str) -> Records:
    told: Records = form.parse(text.encode(), "told.txt")
    return told


def test_a_table() -> None:
    """A name may have blanks, a job that waits has no host, further hosts stand below."""
    assert record_format_of("bjobs.txt", TABLE.encode()) is lsf_bjobs
    runs, waits, over = read(lsf_bjobs, DATE + TABLE).jobs

    assert (runs.id, runs.name, runs.disposition, runs.scheduler) == (
        "3926", "my verilog", "running", "lsf",
    )  # fmt: skip
    assert (runs.nodes, runs.listed, runs.started_at) == (("gpu07", "gpu08"), True, None)
    assert runs.submitted_at == datetime(2026, 11, 5, 8, 0, tzinfo=UTC)
    assert runs.listed_after_s == 4320.0
    assert (waits.name, waits.disposition, waits.nodes) == ("generator", "pending", ())
    assert waits.submitted_at == datetime(2025, 12, 19, 18, 13, tzinfo=UTC)
    assert (over.id, over.disposition) == ("605_2", "unknown")


def test_a_row_alone_below_a_remark() -> None:
    text = "# looked at 2026-11-05 09:12:00 UTC\n" + (
        "88 ada  RUN   long   login1  16*gpu-1:16*gpu-2 gnn      Nov  5 08:00\n"
    )

    assert one(lsf_bjobs, text).nodes == ("gpu-1", "gpu-2")
    assert read(lsf_bjobs, text).now == datetime(2026, 11, 5, 9, 12, tzinfo=UTC)


def test_columns_that_were_asked_for() -> None:
    text = "JOBID STAT RUN_TIME START_TIME\n12 RUN 300 second(s) Nov  5 08:59:10\n"

    assert one(lsf_bjobs, text).listed_after_s == 300.0


def test_a_host_that_was_cut_off_is_none() -> None:
    assert one(lsf_bjobs, TABLE.splitlines()[0] + "\n9 ada RUN q login1 *pu07.site x Nov  5 08:00"
               ).nodes == ()  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "88 ada  RUN   long   login1  gpu-1 gnn  Nov  5 08:00\nloss 1.2 at step 3\n",
        "JOBID STAT LOSS\n1 RUN 3.2\n",
        "step RUN 12 of 100\n",
    ],
    ids=["a program goes on", "columns of another", "no id"],
)
def test_what_is_no_table(text: str) -> None:
    assert record_format_of("a.txt", text.encode()) is not lsf_bjobs


@pytest.mark.parametrize(
    ("ends", "disposition", "code"),
    [
        ("Tue Nov  3 08:13:39: Exited with exit code 1. The CPU time used is 1.0 seconds;\n"
         "Tue Nov  3 08:13:40: Completed <exit>;", "failed", 1),
        ("Tue Nov  3 08:13:39: Exited with exit code 140. The CPU time used is 1.0 seconds;\n"
         "Tue Nov  3 08:13:40: Completed <exit>; TERM_RUNLIMIT: job killed after reaching LS\n"
         "                     F run time limit;", "timeout", 140),
        ("Tue Nov  3 08:13:39: Done successfully. The CPU time used is 1.0 seconds;",
         "completed", None),
        ("Tue Nov  3 07:13:39: Exited with exit code 1. The CPU time used is 1.0 seconds;\n"
         "Tue Nov  3 07:14:00: Dispatched 8 Task(s) on Host(s) <8*gpu01> <8*gpu02>;",
         "unknown", None),
    ],
    ids=["failed", "its limit, cut amid words", "done", "run again since"],
)  # fmt: skip
def test_a_history(ends: str, disposition: str, code: int | None) -> None:
    job = one(lsf_long, HISTORY.format(ends=ends))

    assert (job.id, job.name, job.user, job.partition) == ("771", "lm", "ada", "long")
    assert (job.disposition, job.exit_code, job.nodes) == (disposition, code, ("gpu01", "gpu02"))
    assert job.started_at is None


def test_a_history_below_a_date_has_a_year() -> None:
    text = HISTORY.format(ends="Tue Nov  3 08:13:39: Done successfully. The CPU time used is 1;")

    job = one(lsf_long, DATE + text)
    assert job.started_at == datetime(2026, 11, 3, 6, 59, tzinfo=UTC)
    assert job.ended_at == datetime(2026, 11, 3, 8, 13, 39, tzinfo=UTC)


def test_the_long_form_of_a_job_that_runs() -> None:
    text = """\

Job <9>, Job Name <lm>, User <ada>, Project <default>, Status <RUN>, Queue <long>,
                     Command <bash run.sh>
Tue Nov  3 06:58:10: Submitted from host <login1>, CWD <$HOME>;

 RUNLIMIT
 120.0 min of gpu01
Tue Nov  3 06:58:20: Started 8 Task(s) on Host(s) <8*gpu01>, Allocated 8 Slot(s);
"""
    job = one(lsf_long, text)

    assert (job.disposition, job.limit_s, job.nodes) == ("running", 7200.0, ("gpu01",))


@pytest.mark.parametrize(
    ("status", "ends", "disposition", "left"),
    [
        ("Done", "Successfully completed.", "completed", (None, None)),
        ("Exited", "Exited with exit code 2.", "failed", (2, None)),
        ("Exited", "Exited with exit code 137.", "failed", (137, 9)),
        ("Exited", "TERM_RUNLIMIT: job killed after reaching LSF run time limit.\n"
                   "Exited with exit code 140.", "timeout", (140, 12)),
        ("Exited", "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\n"
                   "Exited with exit code 137.", "out_of_memory", (137, 9)),
        ("Exited", "TERM_OWNER: job killed by owner.\nExited with exit code 130.", "cancelled",
         (130, 2)),
    ],
)  # fmt: skip
def test_a_report(
    status: str, ends: str, disposition: str, left: tuple[int | None, int | None]
) -> None:
    """The script stands in it: what that prints is no word of LSF's."""
    job = one(lsf_report, REPORT.format(status=status, ends=ends, output=""))

    assert (job.disposition, (job.exit_code, job.signal)) == (disposition, left)
    assert (job.nodes, job.limit_s) == (("gpu01", "gpu02"), 7200.0)
    assert (job.user, job.partition) == ("ada", "long")
    assert job.started_at == datetime(2026, 11, 3, 6, 59, tzinfo=UTC)
    assert job.ended_at == datetime(2026, 11, 3, 8, 59, 4, tzinfo=UTC)


def test_outputs_of_several_jobs_in_one_file() -> None:
    text = REPORT.format(status="Done", ends="Successfully completed.", output="step 1\n")

    with pytest.raises(FormatError, match="several jobs"):
        read(lsf_report, text + text.replace("Job 771:", "Job 772:"))


def test_a_log_that_speaks_of_a_report_is_none() -> None:
    text = "step 1\n" + REPORT.format(status="Done", ends="Successfully completed.", output="")

    assert record_format_of("a.log", text.encode()) is None


@pytest.mark.parametrize(
    ("output", "kinds"),
    [
        ("/home/ada/.lsbatch/1.771.shell: line 3: torchrun: command not found\n",
         {LOG, SCHEDULER}),
        ("\n\nPS:\n\nRead file <lm.err> for stderr output of this job.\n", {SCHEDULER}),
    ],
    ids=["a line of the shell's", "it stands elsewhere"],
)  # fmt: skip
def test_what_counts_as_output(tmp_path: Path, output: str, kinds: set[str]) -> None:
    """Neither a step nor a traceback need be in it."""
    text = REPORT.format(status="Exited", ends="Exited with exit code 127.", output=output)
    (tmp_path / "lm.771.out").write_text(text)

    assert {read.kind for read in collect(Request((str(tmp_path),))).files} == kinds


def test_the_output_below_a_report_is_the_jobs_log(tmp_path: Path) -> None:
    """Its record stands above it, in the same file."""
    began = datetime(2026, 11, 3, 6, 59, 30, tzinfo=UTC)
    steps = "".join(
        f"{began + timedelta(seconds=10 * n):%Y-%m-%d %H:%M:%S} step {n}/700 loss"
        f" {3 * 0.998**n:.4f}\n"
        for n in range(1, 701)
    )
    text = REPORT.format(status="Done", ends="Successfully completed.", output=steps)
    (tmp_path / "lm.771.out").write_text(text)
    facts = collect(Request((str(tmp_path),)))

    assert facts.job is not None
    assert {read.kind for read in facts.files} == {LOG, SCHEDULER}
    assert diagnose(facts).code == "G1"
