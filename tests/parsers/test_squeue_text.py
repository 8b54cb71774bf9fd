"""Tables of `squeue`: whose job a row is of, and what a list may say of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.errors import FormatError
from flatline.parsers import record_format_of, squeue_text

SHORT = """\
             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
             90417  pretrain  lm_70b   mira  R 1-02:03:04      2 gpu[03-04]
           90418_3  pretrain  a name   bo   PD       0:00      4 (ReqNodeNotAvail, UnavailableNodes:gpu[05-06])
           90419_[4-9]  debug  x       bo   PD       0:00      1 (Priority)
             90420     debug  y        bo   CG       0:12      1 gpu07
"""  # noqa: E501
LONG = """\
$ squeue -l
Tue Apr 14 07:20:40 2026
             JOBID PARTITION     NAME     USER    STATE       TIME TIME_LIMI  NODES NODELIST(REASON)
             90417  pretrain   lm_70b     mira  RUNNING    1:09:57 7-00:00:00     2 gpu[03-04]
"""  # noqa: E501


def test_rows_of_the_short_form() -> None:
    jobs = squeue_text.parse(SHORT.encode(), "q").jobs
    assert [job.id for job in jobs] == ["90417", "90418_3", "90419_[4-9]", "90420"]
    first, waits, *_ = jobs
    assert (first.disposition, first.nodes, first.node_count) == ("running", ("gpu03", "gpu04"), 2)
    assert (first.started_at, first.listed) == (None, True)
    assert (waits.name, waits.disposition, waits.nodes) == ("a name", "pending", ())
    assert (waits.reason or "").startswith("ReqNodeNotAvail, ")
    assert squeue_text.resolve(SHORT.encode(), "row 1, ST") == "R"


def test_a_list_of_nodes_that_is_cut_off() -> None:
    head = SHORT.splitlines()[0]
    row = "  51188  h200  spec-ft  bernat  R  19:40:02  8 vx[21-2"
    (job,) = squeue_text.parse(f"{head}\n{row}\n".encode(), "q").jobs
    assert (job.nodes, job.node_count) == ((), 8)


def test_the_long_form_is_dated() -> None:
    records = squeue_text.parse(LONG.encode(), "q")
    (job,) = records.jobs
    assert str(records.now) == "2026-04-14 07:20:40+00:00"
    assert str(job.started_at) == "2026-04-14 06:10:43+00:00"
    assert job.limit_s == 7 * 86_400


@pytest.mark.parametrize(
    "date",
    [
        "# Tue Apr 14 07:20:40 UTC 2026",
        "Tue Apr 14 07:20:40 AM CEST 2026",
        "# date -u: Tue Apr 14 07:20:40 UTC 2026",
        "# 2026-04-14 07:20:40 UTC",
        "2026-04-14T07:20:40+00:00",
        "date: 2026-04-14 07:20:40",
        "# taken 2026-04-14 07:20:40 UTC on login-2",
        "# 2026-04-14 07:20:40 UTC  squeue -u mira -o '%.10i %.9P %.8j %.8u %.2t %.10M %.6D %R'",
        "# Tue Apr 14 07:20:40 UTC 2026: squeue --me",
        "2026-04-14 07:20:40 $ squeue",
        "# squeue -u mira  (2026-04-14 07:20:40 UTC)",
        "# squeue at 2026-04-14T07:20:40Z",
        "Every 2.0s: squeue --me            login01: Tue Apr 14 07:20:40 2026",
    ],
)
def test_what_date_printed_above(date: str) -> None:
    text = "\n".join((date, *SHORT.splitlines()[:2]))
    assert squeue_text.recognise("q", text.encode())
    assert str(squeue_text.parse(text.encode(), "q").now) == "2026-04-14 07:20:40+00:00"


DATED = "Wed Apr  8 23:17:58 UTC 2026\n"


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (SHORT, True),
        (LONG, True),
        ("JOBID STATE\n7 RUNNING\n", True),
        (SHORT.partition("\n")[2], True),
        ("90417 gpu lm mira R 01:28:15 8 ga[01-08]\n", True),
        (SHORT + "[rank0] step 1/90 loss 2.3\n", False),
        ("# Wed Apr  8 23:17:58 UTC 2026\n9 gpu lm mira R 01:28:15 1 ga1\n", True),
        ("9 gpu lm mira RUNNING 01:28:15 1-00:00:00 1 ga1 gres/gpu:l40s:1(IDX:1)\n", True),
        ("90417 gpu lm mira R 01:28:15 8 ga[01-08]\nstep 3 loss 0.5\n", False),
        ("# 2026-04-14 07:20:40 UTC\n90417 gpu lm R 01:28:15 8 ga[01-08]\n", True),
        ("90417 gpu lm R 8 ga[01-08]\n", False),
        ("$ date -u; squeue -j 9 -o '%i %T'\n" + DATED + "JOBID STATE\n9 RUNNING\n", True),
        ("$ date -u && squeue -h\n" + DATED + "9 gpu lm mira R 01:28:15 1 ga1\n", True),
        (
            "$ date -u; tail -3 x.log\n" + DATED + "JOBID STATE\n9 RUNNING\n",
            False,
        ),
        ("2026-04-14 07:20:40 step 3 loss 0.5\n", False),
        ("2026-04-14 07:20:40 squeue of batches full\nstep 3 loss 0.5\n", False),
        ("12 train loss at R 01:28:15 8 x\n0.3 0.4\n", False),
        ("JobID|State\n7|RUNNING\n", False),
        ("step loss\n7 0.1\n", False),
        ("JOBID of the run: 7\n", False),
    ],
)
def test_which_files_are_such_tables(text: str, known: bool) -> None:
    assert (record_format_of("some.txt", text.encode()) is squeue_text) is known


def test_a_row_that_names_the_job_or_the_user() -> None:
    """Without a header nothing says which of the two the third word is."""
    (job,) = squeue_text.parse(b"90417 gpu lm R 01:28:15 2 ga[01-02]\n", "q").jobs
    assert (job.name, job.user, job.disposition) == (None, None, "running")
    assert (job.nodes, job.listed_after_s) == (("ga01", "ga02"), 5295.0)


def test_rows_that_fit_under_no_header() -> None:
    with pytest.raises(FormatError):
        squeue_text.parse(b"JOBID ST TIME\nseven R 0:01\n", "q")
    assert squeue_text.parse(SHORT.splitlines()[0].encode(), "q").jobs == ()


STEPS = "".join(
    f"2026-04-14 07:{n // 60:02d}:{n % 60:02d} step {n}/9000 loss {3 * 0.999**n:.4f} grad 0.4\n"
    for n in range(1, 1240)
)
OTHERS = SHORT.replace("  R 1-02:03:04", "  R    1:09:57")


@pytest.mark.parametrize(
    ("log", "listed", "job"),
    [
        ("slurm-90417.out", OTHERS, "90417"),
        ("train.log", LONG, "90417"),
        ("train.log", OTHERS, None),
    ],
    ids=["by its name", "the only one", "anybody's"],
)
def test_whose_row_it_is(tmp_path: Path, log: str, listed: str, job: str | None) -> None:
    """A list of everybody's jobs asks for no `--job`."""
    (tmp_path / log).write_text(STEPS)
    (tmp_path / "queue.txt").write_text(listed)
    facts = collect(Request((str(tmp_path),)))

    told = diagnose(facts)

    assert (facts.job.id if facts.job else None) == job
    assert (told.code == "G1") is (job is not None)
    assert job is not None or any("nothing says which" in gap.reason for gap in facts.gaps)


KERNEL = "".join(
    f"[Tue Apr {n:2d} 06:00:00 2026] nvidia-modeset: probe of a device ended well\n"
    for n in (7, 7, 8, 14)
)
"""Of a week, as a host's log is."""


@pytest.mark.parametrize(
    ("elapsed", "state"), [("1:09:57", "running"), ("0:19:30", "running"), ("0:05:00", "unknown")]
)
def test_a_list_that_is_older_than_the_end_of_the_log(
    tmp_path: Path, elapsed: str, state: str
) -> None:
    """The log goes on for twenty minutes: what ran after five may have died since."""
    (tmp_path / "slurm-90417.out").write_text(STEPS)
    (tmp_path / "queue.txt").write_text(SHORT.replace("1-02:03:04", elapsed))
    (tmp_path / "dmesg-gpu03.txt").write_text(KERNEL)
    facts = collect(Request((str(tmp_path),)))

    assert facts.disposition == state
    assert (diagnose(facts).code == "G1") is (state == "running")


@pytest.mark.parametrize(("elapsed", "own"), [("0:21:40", True), ("3:00:00", False)])
def test_a_log_of_no_name_that_is_as_long_as_the_job_ran(
    tmp_path: Path, elapsed: str, own: bool
) -> None:
    """A longer job's may be anybody's: of it only the file that is named after it is read."""
    (tmp_path / "exp").mkdir()
    (tmp_path / "exp" / "train.log").write_text(STEPS)
    (tmp_path / "slurm-90417.err").write_text("FutureWarning: a way of old\n")
    (tmp_path / "queue.txt").write_text(SHORT.replace("1-02:03:04", elapsed))
    facts = collect(Request((str(tmp_path),)))

    assert bool(facts.tracks) is own
    assert (diagnose(facts).code == "G1") is own
    assert any("left out" in gap.reason for gap in facts.gaps) is not own


SACCT = (
    "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
    "90417|lm_70b|{}|0:0|2026-04-14T06:10:42|{}|gpu[03-04]\n"
)


@pytest.mark.parametrize(
    ("state", "end", "rows", "last"),
    [
        ("RUNNING", "Unknown", 1, "running"),
        ("COMPLETED", "2026-04-14T07:25:00", 1, "completed"),
        ("REQUEUED", "2026-04-14T06:10:40", 2, "running"),
    ],
)
def test_beside_an_account(tmp_path: Path, state: str, end: str, rows: int, last: str) -> None:
    """One job that two commands tell of a second apart is no job that began again."""
    (tmp_path / "slurm-90417.out").write_text(STEPS)
    (tmp_path / "queue.txt").write_text(LONG)
    (tmp_path / "sacct.txt").write_text(SACCT.format(state, end))

    facts = collect(Request((str(tmp_path),)))

    assert [len(facts.jobs), facts.jobs[-1].disposition] == [rows, last]
