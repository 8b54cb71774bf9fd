"""Which jobs ended in a window, and which log is whose."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from flatline.errors import UsageError
from flatline.triage import Ask
from flatline.triage.select import instant_or_span, log_index, select

HEAD = "JobID|JobName|User|Partition|State|ExitCode|Start|End|NNodes|NodeList|WorkDir|StdOut\n"
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def saved(folder: Path, *rows: str) -> str:
    file = folder / "sacct.txt"
    file.write_text(HEAD + "".join(f"{row}\n" for row in rows))
    return str(file)


def made(job_id: str, state: str, end: str, more: str = "|") -> str:
    return f"{job_id}|train|ann|gpu|{state}|1:0|2026-11-20T01:00:00|2026-11-20T{end}|1|n001|{more}"


@pytest.mark.parametrize(
    ("said", "at"),
    [
        ("24h", "2026-11-19T12:00+00:00"),
        ("90min", "2026-11-20T10:30+00:00"),
        ("90m", "2026-11-20T10:30+00:00"),
        ("7d", "2026-11-13T12:00+00:00"),
        ("1.5h", "2026-11-20T10:30+00:00"),
        ("2026-11-20T05:00+01:00", "2026-11-20T04:00+00:00"),
        ("2026-11-20", "2026-11-20T00:00+00:00"),
        ("1795168800", "2026-11-20T10:00+00:00"),
    ],
)
def test_a_window_begins_as_people_say_it(said: str, at: str) -> None:
    """A span before now, a date, an instant, seconds since 1970."""
    assert instant_or_span(said, NOW, "--since") == datetime.fromisoformat(at)


@pytest.mark.parametrize("said", ["", "yesterday", "24", "-3h", "9" * 40 + "h", "2026-13-01"])
def test_what_is_no_time_is_refused_with_examples(said: str) -> None:
    """The message shows how it is written."""
    with pytest.raises(UsageError, match="24h"):
        instant_or_span(said, NOW, "--since")


def test_now_is_what_the_file_vouches_for(tmp_path: Path) -> None:
    """Two hours back from its last end, whatever the clock of this machine says."""
    file = saved(tmp_path, made("1", "FAILED", "02:00:00"), made("2", "FAILED", "09:00:00"),
                 made("3", "COMPLETED", "10:00:00"), made("4", "RUNNING", "Unknown"))  # fmt: skip
    chosen = select(Ask(sources=(file,), since="2h"))
    assert [e.job.id for e in chosen.ended] == ["3", "2"]
    assert chosen.until == datetime(2026, 11, 20, 10, tzinfo=UTC)


def test_filters_are_exact_but_for_names(tmp_path: Path) -> None:
    """Users and partitions by name, job names with * as well."""
    file = saved(tmp_path, made("1", "FAILED", "02:00:00"), made("2", "FAILED", "03:00:00"))
    for ask, count in [
        (Ask((file,), users=("ann",), names=("tr*",), partitions=("gpu",)), 2),
        (Ask((file,), users=("an",)), 0),
        (Ask((file,), names=("rain",)), 0),
    ]:
        assert len(select(ask).ended) == count


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (Ask(("no/such.json",)), "does not exist"),
        (Ask(("x",), users=("-a;rm",)), "no user's name"),
        (Ask(("x",), states=("BROKEN",)), "none of Slurm's"),
    ],
)
def test_a_wrong_call_is_refused(ask: Ask, said: str) -> None:
    """Before anything is read."""
    with pytest.raises(UsageError, match=said):
        select(ask)


def test_a_file_without_accounting_says_what_is_taken(tmp_path: Path) -> None:
    """A log is no accounting."""
    (tmp_path / "run.log").write_text("step 1\n")
    with pytest.raises(UsageError, match="sacct --json"):
        select(Ask((str(tmp_path / "run.log"),)))


def test_paths_in_a_record_are_not_opened_unless_asked(tmp_path: Path) -> None:
    """A file from elsewhere could name any file of whoever runs this."""
    secret = tmp_path / "else" / "private.txt"
    secret.parent.mkdir()
    secret.write_text("RuntimeError: x\n")
    (tmp_path / "in").mkdir()
    file = saved(tmp_path / "in", made("7", "FAILED", "02:00:00", f"|{secret}"))
    for follow, logs in ((False, ()), (True, (secret,))):
        chosen = select(Ask((file,), follow=follow))
        assert chosen.find is not None
        assert chosen.find(chosen.ended[0]).logs == logs


@pytest.mark.parametrize(
    ("name", "job_id"),
    [
        ("slurm-8308.out", "8308"),
        ("8308/rank0.log", "8308"),
        ("outputs/8308_0.log", "8308"),
        ("pretrain-8308-3.err", "8308"),
        ("run-7-8308.out", "8308"),
        ("train.o8308", "8308"),
        ("slurm-16_2.out", "16_2"),
        ("kill9-7.err", "7"),
        ("slurmd.n7.log", None),
        ("epoch7.log", None),
        ("train-2026-11-07.log", None),
        ("7-2026-11-16_2.x.log", "7"),
        ("83080.log", None),
    ],
)
def test_a_log_is_told_by_the_id_in_its_name(
    name: str, job_id: str | None, tmp_path: Path
) -> None:
    """Never by a digit of a host, a date or an epoch."""
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("x\n")
    index = log_index([str(tmp_path)], {"8308", "16_2", "16", "7"})
    assert index == ({job_id: [file]} if job_id else {})


def test_what_may_not_be_looked_at_is_no_crash(tmp_path: Path) -> None:
    """A folder closed to the caller, a file cut off: said, beside what was read."""
    saved(tmp_path, made("7", "FAILED", "02:00:00"))
    (tmp_path / "sacct.json").write_text('{"meta": {"openapi/dbv0": 1}, "jobs": [ {"cut')
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)
    (tmp_path / "loop").symlink_to(tmp_path)
    chosen = select(Ask((str(tmp_path),)))
    closed.chmod(0o755)
    assert [e.job.id for e in chosen.ended] == ["7"]
    assert any("JSON" in gap.reason for gap in chosen.gaps)


def test_an_empty_window_is_a_wrong_call(tmp_path: Path) -> None:
    """It begins after the last the file vouches for."""
    file = saved(tmp_path, made("7", "FAILED", "02:00:00"))
    with pytest.raises(UsageError, match="the window is empty"):
        select(Ask((file,), since="2027-01-01"))
