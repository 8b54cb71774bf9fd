"""`flatline diagnose`: what is asked of the engine, where the verdict goes, how far it is."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from cli.calls import Oracle
from flatline.cli import answer
from flatline.cli.diagnose import write_whole
from flatline.errors import UsageError
from flatline.wording.progress import Progress, progress_line
from render import verdicts

AT = datetime(2026, 3, 1, 4, 12, 55, tzinfo=UTC)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def asked(*argv: str) -> Oracle:
    oracle = Oracle(verdicts.found())
    assert answer(["diagnose", *argv, "--quiet"], oracle.engine) == 1
    return oracle


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    oracle = Oracle(verdicts.found())
    assert answer(["diagnose", *argv], oracle.engine) == 2
    assert oracle.asked == []
    return capsys.readouterr().err


def test_everything_given_reaches_the_engine() -> None:
    """Targets may stand before and behind options."""
    (request,) = asked(
        "a", "--job", "8308", "b", "--baseline", "c", "--prometheus", "http://p:9090",
        "--hosts", "n[01-02],login",
    ).asked  # fmt: skip
    assert request.targets == ("a", "b")
    assert (request.job, request.baseline, request.prometheus) == ("8308", "c", "http://p:9090")
    assert request.hosts == ("n01", "n02", "login")


@pytest.mark.parametrize(
    "said",
    [
        "2026-03-01T04:12:55Z",
        "2026-03-01T04:12:55",
        "2026-03-01 05:12:55+01:00",
        "20260301T041255Z",
        str(int(AT.timestamp())),
        f"{AT.timestamp():.3f}",
    ],
)
def test_a_time_is_iso_8601_or_seconds_and_utc_where_no_zone_is_said(said: str) -> None:
    """All of them are the same instant, and aware."""
    assert asked("x", "--start", said).asked[0].start == AT


def test_eight_digits_are_a_date() -> None:
    """20260301 is a day of this decade, not one of 1970."""
    (request,) = asked("x", "--start", "20260301", "--end", "20260302").asked
    assert request.end == datetime(2026, 3, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    "said", ["yesterday", "04:12", "nan", "-1", "1e9", "1772338375000", "2026-13-01", ""]
)
def test_a_bad_time_says_what_is_accepted(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Milliseconds are refused as well: their year would be 58,000."""
    message = refused(capsys, "x", f"--start={said}")
    assert "ISO 8601" in message
    assert "seconds since 1970" in message


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--start", "200", "--end", "100"], "--start 200 is not before --end 100"),
        (["--hosts", "n[01-"], "--hosts: "),
        (["--prometheus", "prometheus:9090"], "http://HOST:PORT"),
        (["--format", "yaml"], "invalid choice: 'yaml'"),
        (["--form", "json"], "unrecognized arguments"),
        (["--output", "/no/such/folder/v.json"], "no folder to write in"),
        (["--output", "/"], "is a folder"),
    ],
)
def test_a_wrong_option_is_refused_before_any_work(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is read for a call that cannot end well."""
    assert said in refused(capsys, "x", *argv)


@pytest.mark.parametrize("where", ["v.json", "deep/../v.json", "logs/v.json"])
def test_nothing_is_written_into_a_target(
    where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Diagnosis is read-only, and so is its --output."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "deep").mkdir()
    said = refused(capsys, str(tmp_path), "--output", str(tmp_path / where))
    assert "nothing is ever written" in " ".join(said.split())
    assert not (tmp_path / where).exists()


def test_a_link_into_a_target_is_seen_through(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither a linked folder nor a target named by a link hides what it is."""
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "run")
    for target, output in (("run", "link/v.json"), ("link", "run/v.json")):
        refused(capsys, str(tmp_path / target), "--output", str(tmp_path / output))


def test_a_target_file_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log that is diagnosed is not where the verdict goes; the baseline is not either."""
    log = tmp_path / "run.log"
    log.write_text("step 1\n")
    refused(capsys, str(log), "--output", str(log))
    refused(capsys, "other", "--baseline", str(log), "--output", str(log))
    assert log.read_text() == "step 1\n"


def test_output_is_the_whole_verdict_and_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Standard output stays empty, the file is replaced, nothing is left beside it."""
    file = tmp_path / "v.json"
    file.write_text("old")
    argv = ["diagnose", "x", "--format", "json", "--output", str(file)]
    assert answer(argv, Oracle(verdicts.found()).engine) == 1
    said = capsys.readouterr()
    assert orjson.loads(file.read_bytes())["verdict"]["code"] == "B2"
    assert (said.out, said.err) == ("", f"flatline: found; the verdict is in {file}\n")
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """Where the new file cannot be made the old one stands, and nothing is left beside it."""
    file = tmp_path / ("v" * 250)  # a name beside it would be longer than a file system takes
    file.write_text("old")
    with pytest.raises(UsageError, match="--output"):
        write_whole(file, "new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_device_is_written_to_and_not_replaced() -> None:
    """/dev/null stays what it is, for root too."""
    write_whole(Path("/dev/null"), "page")
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_every_format_is_printed(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The page goes to standard output, with nothing on standard error."""
    assert answer(["diagnose", "x", "--format", form], Oracle(verdicts.found()).engine) == 1
    said = capsys.readouterr()
    assert "GPU 3 of node07 fell off the bus" in said.out
    assert said.err == ""


def test_quiet_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Made for a loop over a morning's failures."""
    asked("x")
    assert capsys.readouterr().out.count("\n") == 1


def test_a_pipe_gets_80_plain_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """No escape reaches a file, whatever the terminal of the caller is."""
    answer(["diagnose", "x"], Oracle(verdicts.found()).engine)
    page = capsys.readouterr().out
    assert "\x1b" not in page
    assert max(map(len, page.splitlines())) <= 80


def test_progress_is_silent_for_short_work() -> None:
    """Nobody wants a bar that is gone before it is read."""
    now = [0.0]
    stream = Terminal()
    progress = Progress(stream, lambda: now[0])
    now[0] = 1.9
    progress("reading logs", 1, 2)
    progress.clear()
    assert stream.getvalue() == ""


def test_progress_draws_over_itself_and_leaves_no_trace() -> None:
    """One line, redrawn at most ten times a second, blank at the end."""
    now = [0.0]
    stream = Terminal()
    progress = Progress(stream, lambda: now[0])
    for now[0] in (2.5, 2.51, 3.0):
        progress("reading logs", 1 << 20, 4 << 20)
    progress.clear()
    drawn = stream.getvalue().split("\r")[1:]
    assert drawn[:2] == [progress_line("reading logs", 1 << 20, 4 << 20)] * 2
    assert (drawn[2].strip(), drawn[3]) == ("", "")


def test_progress_says_nothing_to_a_file() -> None:
    """A log of a job holds no bars."""
    stream = io.StringIO()
    now = iter(range(100))
    Progress(stream, lambda: float(next(now)) * 10)("reading logs", 1, 2)
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("done", "total", "said"),
    [
        (0, 0, "s  0.0 MiB"),
        (1 << 30, 2 << 30, "s  [##########..........]  50%  1.0 of 2.0 GiB"),
        (5, 2, "s  [####################] 100%  0.0 of 0.0 MiB"),
    ],
)
def test_a_progress_line_never_passes_its_end(done: int, total: int, said: str) -> None:
    """A file that grows while it is read is not 250 per cent."""
    assert progress_line("s", done, total) == said


def test_a_window_may_have_one_end() -> None:
    """--end alone is enough to say how far to read."""
    (request,) = asked("x", "--end", (AT + timedelta(hours=1)).isoformat()).asked
    assert (request.start, request.end) == (None, AT + timedelta(hours=1))
