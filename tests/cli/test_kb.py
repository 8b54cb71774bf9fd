"""kb and learn: found, shown, added and learnt from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.calls import flatline_process
from flatline.cli import Engine, answer
from flatline.render import format_named
from knowledge.test_records import written as record
from render import verdicts


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site's folder of the test's own."""
    monkeypatch.setenv("FLATLINE_KNOWLEDGE", str(tmp_path / "site"))
    return tmp_path / "site"


def told(capsys: pytest.CaptureFixture[str], *argv: str, status: int = 0) -> str:
    assert answer(list(argv), Engine()) == status
    said = capsys.readouterr()
    return said.out if status in (0, 3) else said.err


def test_words_find_records(capsys: pytest.CaptureFixture[str]) -> None:
    """The problem, its families and id, cause and fix, at most as many as asked for."""
    page = told(capsys, "kb", "search", "bus", "error", "in", "a", "dataloader", "--limit", "2")
    assert "pytorch-dataloader-bus-error-too-many-workers" in page
    assert page.count("cause: ") == 2


def test_the_document_can_be_read_by_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    """Score, share, and all of the record."""
    said = told(capsys, "kb", "search", "bus error dataloader", "--format", "json", "--limit", "1")
    (hit,) = json.loads(said)
    assert 0 < hit["share"] <= 1
    assert hit["source"].startswith("https://")


def test_an_excerpt_is_read_from_a_file_or_standard_input(tmp_path: Path) -> None:
    """As a log is at hand: a file, or a pipe."""
    log = tmp_path / "job.log"
    log.write_text("x\n" * 500 + "RuntimeError: Expected to mark a variable ready only once\n")
    done = flatline_process("kb", "search", "--file", str(log), "--limit", "1")
    assert done.returncode == 0
    assert "pytorch-ddp-checkpoint-marked-ready-twice" in done.stdout


def test_nothing_found_is_three(capsys: pytest.CaptureFixture[str]) -> None:
    """And says what may help."""
    assert "No record fits" in told(capsys, "kb", "search", "qwxyzzy", status=3)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["kb", "search"], "nothing to search for"),
        (["kb", "search", "x", "--family", "Z9"], "no family is called"),
        (["kb", "search", "x", "--limit", "0"], "--limit 0"),
        (["kb", "search", "x", "--file", "/nowhere/x"], "not both"),
        (["kb", "search", "--file", "/nowhere/x"], "No such file"),
        (["kb", "search", "x", "--embedder", "e"], "no embedder is called"),
        (["kb", "show", "pytorch-ddp-unused"], "meant is perhaps pytorch-ddp-unused-parameters"),
        (["kb", "show"], "name one record"),
        (["kb", "add"], "name one file"),
        (["kb", "add", "/nowhere/x.toml"], "No such file"),
        (["kb", "sing"], "invalid choice"),
        (["learn", "/nowhere/v.json", "--outcome", "confirmed"], "No such file"),
        (["learn", "v.json"], "--outcome"),
        (["learn", "v.json", "--outcome", "wrong", "--cause", "x"], "--cause and --fix"),
    ],
)
def test_a_wrong_call_is_two(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what to do instead."""
    assert said in told(capsys, *argv, status=2)


def test_a_site_adds_learns_and_is_shown(
    tmp_path: Path, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Add a record, confirm a verdict by it, and see that it was."""
    file = tmp_path / "own.toml"
    file.write_text(record(id="our-switch", source="t", problem="a \u202eswitch broke"))
    assert "1 record added" in told(capsys, "kb", "add", str(file))
    verdict = tmp_path / "v.json"
    verdict.write_text(format_named("json").render(verdicts.found()), "utf-8")
    learn = ("learn", str(verdict), "--outcome", "confirmed", "--record", "our-switch")
    assert "our-switch: confirmed" in told(capsys, *learn)
    page = told(capsys, "kb", "show", "our-switch")
    assert "confirmed 1 time at this site" in page
    assert "\u202e" not in page
    assert sorted(p.name for p in site.iterdir()) == ["outcomes.tsv", "own.toml"]


def test_a_broken_file_of_the_site_is_named(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On standard error; the search goes on."""
    site.mkdir()
    (site / "bad.toml").write_text("x = [")
    assert answer(["kb", "search", "bus error"], Engine()) == 0
    assert "bad.toml" in capsys.readouterr().err
