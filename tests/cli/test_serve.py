"""`serve`, as a process and as a call that is wrong."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from cli.calls import environment, started
from flatline.cli import Engine, answer

RUN = str(Path(__file__).parents[1] / "scenarios" / "gpu_throttled_one_of_many" / "run")


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_end(sent: signal.Signals) -> None:
    """It says where, and what; ends with status 0 and leaves nothing in the target."""
    before = sorted(path.name for path in Path(RUN).iterdir())
    command = [sys.executable, "-m", "flatline", "serve", RUN, "--listen", "0"]
    with started(
        command, stderr=subprocess.PIPE, text=True, env=environment(), restore_signals=True
    ) as one:
        assert one.stderr is not None
        first, second = one.stderr.readline(), one.stderr.readline()
        assert "serving 5 metrics from 2026-01-14 09:00:00 to 2026-01-14 09:20:00 UTC" in first
        url = next(word for word in second.split() if word.startswith("http://")).rstrip(";")
        with urllib.request.urlopen(f"{url}/api/v1/label/gpu/values", timeout=60) as got:
            assert got.status == 200
        one.send_signal(sent)
        assert one.wait(60) == 0
    assert sorted(path.name for path in Path(RUN).iterdir()) == before


def test_names_of_the_target_do_not_reach_the_terminal_as_they_are(tmp_path: Path) -> None:
    """What could not be read is named, in one line and without escapes."""
    run = tmp_path / "run"
    shutil.copytree(RUN, run)
    (run / "a\nb\x1b[2J.prom").symlink_to("/etc/hostname")
    command = [sys.executable, "-m", "flatline", "serve", str(run), "--listen", "0"]
    with started(command, stderr=subprocess.PIPE, env=environment()) as one:
        assert one.stderr is not None
        first = one.stderr.readline()
        one.send_signal(signal.SIGTERM)
        assert b"b" in first
        assert b"link out of the target" in first
        assert b"\x1b" not in first + one.stderr.read()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((__file__,), "holds no metrics of a known format"),
        (("nowhere-at-all",), "does not exist"),
        ((RUN, "--listen", "everywhere"), "give a port"),
        ((RUN, "--listen", "70000"), "give a port"),
        ((RUN, "--listen", "0.0.0.0:0"), "SSH tunnel"),
        ((RUN, "--timeout", "0"), "give seconds"),
        ((RUN, "--token-file", "nowhere-at-all"), "No such file"),
    ],
)
def test_a_wrong_call_is_status_2(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message says what would do."""
    assert answer(["serve", *words], Engine()) == 2
    assert said in capsys.readouterr().err


def test_a_token_that_others_can_read_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would be none."""
    file = tmp_path / "token"
    file.write_text("0123456789abcdef0123456789abcdef\n")
    file.chmod(0o644)
    assert answer(["serve", RUN, "--token-file", str(file)], Engine()) == 2
    assert "chmod 600" in capsys.readouterr().err
