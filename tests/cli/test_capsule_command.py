"""`flatline capsule`: what it makes, what it refuses, what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calls import flatline_process
from flatline.cli import Engine, answer

STEPS = "".join(
    f"2026-03-01 04:00:{i:02d} step {i}/59 loss {5 / (i + 1):.3f}\n" for i in range(60)
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "8308"
    folder.mkdir()
    (folder / "job.log").write_text(STEPS)
    (folder / "m.prom").write_text("# TYPE up gauge\nup 1 1772337600000\n")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return folder


def called(capfd: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = answer(argv, Engine())
    said = capfd.readouterr()
    return status, said.out, said.err


def test_a_capsule_is_made_and_asked(run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Named after its target, here; every command that takes a TARGET takes it."""
    status, out, err = called(capfd, "capsule", str(run))

    assert (status, Path(out.strip()).name) == (0, "8308.capsule")
    assert "1 file (0 lines masked), 1 sample of 1 series" in err
    assert called(capfd, "diagnose", "8308.capsule", "--quiet")[0] == 0
    assert "up" in called(capfd, "query", "8308.capsule", "up")[1]
    assert called(capfd, "signals", "8308.capsule")[0] == 0
    status, page, _ = called(capfd, "diagnose", "8308.capsule", "--format", "json")
    Path("v.json").write_text(page)
    assert "citations hold" in called(capfd, "verify", "v.json", "8308.capsule")[1]


def test_it_works_as_a_process_of_its_own(run: Path) -> None:
    """What one file was unpacked into is gone with it."""
    done = flatline_process(
        "capsule", str(run), "--output", "x.tar", "--quiet", TMPDIR=str(Path.cwd())
    )
    judged = flatline_process("diagnose", "x.tar", "--quiet", TMPDIR=str(Path.cwd()))

    assert (done.returncode, done.stderr) == (0, "")
    assert judged.returncode == 0
    assert [path.name for path in Path.cwd().iterdir()] == ["x.tar"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--output", "there"], "nothing is overwritten"),
        (["--output", "../8308/x.capsule"], "into which nothing is ever written"),
        (["--output", "no/such/x.capsule"], "no folder to write in"),
        (["--prometheus", "nowhere"], "give it as http://HOST:PORT"),
        (["--start", "2026-03-01", "--end", "2026-02-01"], "is not before"),
        (["--start", "yesterday"], "is no time"),
        (["--hosts", "n[1-"], "--hosts"),
    ],
)
def test_a_wrong_call_is_refused_before_any_work(
    run: Path, capfd: pytest.CaptureFixture[str], argv: list[str], said: str
) -> None:
    """Status 2, what to do instead, and nothing made."""
    Path("there").write_text("mine")
    status, out, err = called(capfd, "capsule", str(run), *argv)

    assert (status, out) == (2, "")
    assert said in err
    assert Path("there").read_text() == "mine"
    assert [path.name for path in Path.cwd().iterdir()] == ["there"]


def test_a_target_that_is_not_there_is_said(run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """And so is one that holds nothing."""
    Path("empty").mkdir()

    assert called(capfd, "capsule", "gone", "--output", "x.capsule")[0] == 2
    status, _, err = called(capfd, "capsule", "empty", "--output", "x.capsule")
    assert (status, Path("x.capsule").exists()) == (2, False)
    assert "nothing was found" in err


def test_what_a_killed_capsule_left_is_told_and_not_read(
    run: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Beside the next one, and inside a target."""
    left = Path(".8308.capsule.4194.part")
    (left / "files" / "0").mkdir(parents=True)
    (left / "files" / "0" / "job.log").write_text("RuntimeError: CUDA error\n" * 9)

    status, _, err = called(capfd, "capsule", str(run))
    assert (status, left.is_dir()) == (0, True)
    assert f"{left}: the room it takes: a capsule that was not finished: remove it" in err

    left.rename(run / left.name)
    _, page, _ = called(capfd, "diagnose", str(run), "--quiet", "--format", "json")
    assert "CUDA error" not in page
    assert "a capsule that was not finished" in page
