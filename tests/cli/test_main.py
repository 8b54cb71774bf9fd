"""The rim: what the exit status says, and what is said when something breaks."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.calls import Oracle, answered, environment, flatline_process, program, started
from flatline import __version__
from flatline.cli import Engine, answer, command_names, main
from flatline.errors import FormatError, ManyJobs, UsageError
from render import verdicts


@pytest.mark.parametrize(("name", "status"), [("healthy", 0), ("found", 1), ("undetermined", 3)])
def test_the_status_is_the_state(name: str, status: int) -> None:
    """A script branches on the verdict without reading it."""
    done = answered(f"return verdicts.{name}()", "diagnose", "x")
    assert (done.returncode, done.stderr) == (status, "")


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ("ValueError('boom')", 4),
        ("SystemError('boom')", 4),
        ("MemoryError()", 4),
        ("RecursionError()", 4),
        ("OSError(28, 'No space left on device')", 4),
        ("KeyboardInterrupt()", 130),
    ],
)
def test_nothing_uncaught_ends_in_one(fault: str, status: int) -> None:
    """1 means that a fault was found in the run, never that Flatline broke."""
    done = answered(f"raise {fault}", "diagnose", "x")
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("flatline: ")
    assert done.stdout == ""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_a_process_that_is_told_to_end_leaves_nothing(how: signal.Signals, tmp_path: Path) -> None:
    """What was unpacked for the time being goes with it, as at its own end; nothing is said."""
    body = """
    import tempfile, time
    with tempfile.TemporaryDirectory(dir=request.targets[0]):
        print("there", flush=True)
        time.sleep(60)"""
    with started(
        [*program(body), "diagnose", str(tmp_path)],
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"there\n"
        assert list(tmp_path.iterdir())
        process.send_signal(how)

        assert process.wait(60) == 128 + how
        assert process.stderr.read() == b""
    assert not list(tmp_path.iterdir())


def test_a_traceback_is_shown_where_it_is_asked_for() -> None:
    """FLATLINE_DEBUG=1 is for those who mend Flatline."""
    done = answered("raise ValueError('boom')", "diagnose", "x", FLATLINE_DEBUG="1")
    assert done.returncode == 4
    assert "Traceback" in done.stderr


def test_a_wrong_call_is_two(capsys: pytest.CaptureFixture[str]) -> None:
    """What the caller can mend is said, and nothing else."""
    oracle = Oracle(UsageError("no such target: 'x'"))
    assert answer(["diagnose", "x"], oracle.engine) == 2
    assert capsys.readouterr().err == "flatline: no such target: 'x'\n"


def test_an_error_of_ours_that_is_not_the_callers_is_four(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its message is shown, no traceback."""
    assert answer(["diagnose", "x"], Oracle(FormatError("a.json: truncated")).engine) == 4
    assert capsys.readouterr().err == "flatline: a.json: truncated\n"


def test_many_jobs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Id, name and state of each, so that the next call can name one."""
    jobs = tuple((str(n), f"train-{n}\x1b[2J", "FAILED") for n in range(50))
    assert answer(["diagnose", "x"], Oracle(ManyJobs(jobs)).engine) == 2
    said = capsys.readouterr().err
    assert "holds 50 jobs; name one with --job ID" in said
    assert "  12   train-12\\x1b[2J  FAILED" in said
    assert said.endswith("  and 10 more\n")
    assert "\x1b" not in said


def test_help_is_short_and_names_every_command() -> None:
    """One screen, 80 columns."""
    done = flatline_process("--help")
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert len(lines) <= 36
    assert max(map(len, lines)) <= 80
    assert all(f"  {name} " in done.stdout for name in command_names())


@pytest.mark.parametrize("name", command_names())
def test_every_command_has_a_page_of_80_columns(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its usage, what it takes, an example."""
    monkeypatch.setenv("COLUMNS", "80")
    assert answer([name, "--help"], Engine()) == 0
    page = capsys.readouterr().out
    assert page.startswith(f"usage: flatline {name} ")
    assert "example" in page
    assert max(map(len, page.splitlines())) <= 80


def test_help_imports_none_of_the_engine() -> None:
    """The list of commands comes at once, on a slow file system too."""
    check = (
        "import sys; from flatline.cli import Engine, answer; answer(['--help'], Engine()); "
        "print([m for m in ('numpy', 'hyperscan', 'rich', 'typer', 'flatline.model', 'orjson')"
        " if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", check],
        capture_output=True,
        encoding="utf-8",
        env=environment(),
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_no_command_is_a_wrong_call(capsys: pytest.CaptureFixture[str]) -> None:
    """A script that lost its arguments does not pass for healthy."""
    assert answer([], Engine()) == 2
    assert "commands:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "hint"),
    [("diagnos", "'diagnose'"), ("/", "flatline diagnose /"), ("8308", "flatline diagnose 8308")],
)
def test_an_unknown_command_gets_a_hint(
    word: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A slip, a path and a job id are told apart."""
    assert answer([word], Engine()) == 2
    assert hint in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """The version, and nothing else."""
    assert answer(["--version"], Engine()) == 0
    assert capsys.readouterr().out == f"flatline {__version__}\n"


def test_main_ends_the_process_with_the_status() -> None:
    """The entry point returns to nobody."""
    with pytest.raises(SystemExit) as ended:
        main(["diagnose", "x", "--quiet"], Oracle(verdicts.undetermined()).engine)
    assert ended.value.code == 3


def test_a_reader_that_leaves_is_no_error() -> None:
    """`flatline diagnose x | head -1` says nothing on standard error and keeps its status."""
    command = " ".join(map(shlex.quote, program("return verdicts.huge()")))
    script = f"{{ {command} diagnose x --format json; echo $? >&3; }} 3>&2 | head -1"
    done = subprocess.run(
        ["sh", "-c", script], capture_output=True, encoding="utf-8", env=environment(), check=False
    )
    assert (done.stdout, done.stderr) == ("{\n", "1\n")


def test_a_terminal_without_unicode_gets_ascii() -> None:
    """No question marks, no crash."""
    done = answered("return verdicts.found()", "diagnose", "x", PYTHONIOENCODING="ascii")
    assert done.returncode == 1
    assert done.stdout.isascii()
    assert done.stdout.startswith("x FAULT")


def test_json_is_utf8_whatever_the_terminal_is() -> None:
    """A document is not spelled in the encoding of a login shell."""
    body = "import dataclasses; return dataclasses.replace(verdicts.found(), headline='Größe')"
    done = answered(body, "diagnose", "x", "--format", "json", PYTHONIOENCODING="latin-1")
    assert '"headline": "Größe"' in done.stdout


@pytest.mark.parametrize("argv", [["--", "--job"], ["--quiet", "--", "--job"]])
def test_what_stands_behind_two_dashes_is_a_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str]
) -> None:
    """A log may be called like an option."""
    (tmp_path / "--job").write_text("".join(f"step {i}/9 loss 1\n" for i in range(1, 9)))
    monkeypatch.chdir(tmp_path)

    assert answer(["diagnose", *argv], Engine()) in (1, 3)
