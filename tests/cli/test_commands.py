"""`verify`, `families` and `demo`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from cli.calls import Oracle
from flatline.cli import Engine, answer
from flatline.families import all_families
from flatline.render import format_named
from flatline.verify import Check
from render import verdicts


def written(tmp_path: Path) -> str:
    file = tmp_path / "v.json"
    file.write_text(format_named("json").render(verdicts.found()))
    return str(file)


def checking(*checks: Check) -> Engine:
    return Engine(verify=lambda document, targets, server: checks)


def test_verify_is_zero_where_all_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The number of citations is said."""
    engine = checking(Check("e1", True, ""), Check("e2", True, ""))
    assert answer(["verify", written(tmp_path), "run"], engine) == 0
    assert capsys.readouterr().out == "All 2 citations hold.\n"


def test_verify_is_one_and_lists_what_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each failure with its id and what was found instead, disarmed."""
    engine = checking(Check("e1", True, ""), Check("e2", False, "the line is \x1b[2J" + "a " * 90))
    assert answer(["verify", written(tmp_path), "run"], engine) == 1
    page = capsys.readouterr().out
    assert "1 of 2 citations do not hold" in page
    assert "  e2    the line is \\x1b[2J" in page
    assert max(map(len, page.splitlines())) <= 80


def test_verify_of_a_verdict_without_evidence_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing to check is not the same as all holds."""
    assert answer(["verify", written(tmp_path), "run"], checking()) == 0
    assert "cites nothing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"not json", "is no JSON"),
        (b"\xff\xfe", "is no JSON"),
        (b"[]", "is no verdict"),
        (b'{"schema_version": 1}', "is no verdict"),
        (b'{"schema_version": 2, "evidence": []}', "has schema_version 2"),
    ],
)
def test_verify_refuses_what_is_no_verdict(
    content: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The wrong file is a wrong call, not a failed check."""
    (tmp_path / "x.json").write_bytes(content)
    assert answer(["verify", str(tmp_path / "x.json"), "run"], checking()) == 2
    assert said in capsys.readouterr().err


def test_verify_of_a_file_that_is_not_there_is_a_wrong_call(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The operating system's own words, and the name."""
    assert answer(["verify", "/no/v.json", "run"], checking()) == 2
    assert "/no/v.json: No such file" in capsys.readouterr().err


def test_families_are_listed_with_code_and_name(capsys: pytest.CaptureFixture[str]) -> None:
    """One entry a family."""
    assert answer(["families"], Engine()) == 0
    page = capsys.readouterr().out
    assert all(f"{family.code}  {family.name}" in page for family in all_families())
    assert max(map(len, page.splitlines())) <= 80


@pytest.mark.parametrize("spell", [str.lower, str.upper])
def test_a_family_is_shown_by_code_or_name(
    spell: object, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page is the module's own, whatever the case of the letters."""
    family = all_families()[0]
    for word in (family.code, family.name):
        assert answer(["families", spell(word)], Engine()) == 0  # type: ignore[operator]
        page = capsys.readouterr().out
        assert page.startswith(f"{family.code} {family.name}\n\n{family.title}")
        assert "\nSymptom:\n" in page
        assert max(map(len, page.splitlines())) <= 80


def test_a_page_keeps_every_word(capsys: pytest.CaptureFixture[str]) -> None:
    """Setting paragraphs anew loses and adds nothing."""
    for family in all_families():
        assert answer(["families", family.code], Engine()) == 0
        page = capsys.readouterr().out
        assert page.split()[2:] == family.page.split()


def test_an_unknown_family_is_a_wrong_call(capsys: pytest.CaptureFixture[str]) -> None:
    """With what was perhaps meant."""
    assert answer(["families", all_families()[0].name + "x"], Engine()) == 2
    assert all_families()[0].name in capsys.readouterr().err


def demos(folder: Path, **truth: str) -> Path:
    for name, text in truth.items():
        (folder / name / "run").mkdir(parents=True)
        (folder / name / "truth.toml").write_text(text)
    return folder


def test_demo_tells_expected_and_got_and_shows_one_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All right is status 0."""
    folder = demos(tmp_path, lost='title = "A GPU is lost."\ncode = "B2"\nargs = []\n')
    oracle = Oracle(verdicts.found())
    assert answer(["demo"], replace(oracle.engine, demos=lambda: folder)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["lost", "expected", "B2", "got", "B2", "ok"]
    assert lines[2] == "lost: A GPU is lost."
    assert lines[4].startswith("✗ FAULT")
    assert oracle.asked[0].targets == (str(folder / "lost" / "run"),)


def test_demo_is_one_where_an_answer_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The one that went wrong is the one that is shown."""
    folder = demos(
        tmp_path,
        lost='title = "lost"\ncode = "B2"\n',
        other='title = "other"\ncodes = ["A1", "undetermined"]\nargs = ["--job", "9"]\n',
    )
    oracle = Oracle(verdicts.found())
    assert answer(["demo"], replace(oracle.engine, demos=lambda: folder)) == 1
    page = capsys.readouterr().out
    assert "expected A1 or undetermined got B2           WRONG" in page
    assert "\nother: other\n" in page
    assert oracle.asked[1].job == "9"


def test_demo_by_name_runs_only_that(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Undetermined can be the right answer."""
    truth = 'title = "t"\ncode = "undetermined"\n'
    folder = demos(tmp_path, one=truth, two=truth)
    oracle = Oracle(verdicts.undetermined())
    assert answer(["demo", "two"], replace(oracle.engine, demos=lambda: folder)) == 0
    assert len(oracle.asked) == 1
    assert capsys.readouterr().out.startswith("two ")


def test_demo_lists_without_running(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names and titles."""
    folder = demos(tmp_path, lost='title = "A GPU is lost."\ncode = "B2"\n')
    oracle = Oracle(verdicts.found())
    assert answer(["demo", "--list"], replace(oracle.engine, demos=lambda: folder)) == 0
    assert capsys.readouterr().out == "lost  A GPU is lost.\n"
    assert oracle.asked == []


@pytest.mark.parametrize(
    "truth", ["title = 3", "code =", 'title = "t"\ncode = "B2"\nargs = ["-x"]']
)
def test_a_broken_demo_is_our_own_failure(
    truth: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """4, with the file that is wrong."""
    engine = replace(Oracle(verdicts.found()).engine, demos=lambda: demos(tmp_path, bad=truth))
    assert answer(["demo"], engine) == 4
    assert "demo/bad/truth.toml" in capsys.readouterr().err


def test_an_installation_without_demos_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And an unknown name is the caller's."""
    engine = replace(Oracle(verdicts.found()).engine, demos=lambda: tmp_path / "none")
    assert answer(["demo"], engine) == 4
    folder = demos(tmp_path, lost='title = "t"\ncode = "B2"\n')
    assert answer(["demo", "x"], replace(engine, demos=lambda: folder)) == 2
    assert "no demo is called 'x': lost" in capsys.readouterr().err


def test_what_diagnose_writes_verify_reads(tmp_path: Path) -> None:
    """The document reaches the checker as it was made."""
    seen: list[object] = []
    engine = Engine(
        verify=lambda document, targets, server: seen.append((document, targets)) or ()
    )  # type: ignore[func-returns-value]
    assert answer(["verify", written(tmp_path), "a", "b"], engine) == 0
    made = orjson.loads(format_named("json").render(verdicts.found()))
    assert seen == [(made, ("a", "b"))]
