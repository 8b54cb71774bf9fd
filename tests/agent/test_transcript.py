"""A recording: secrets masked, run again without a model, gone on from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from agent.scripted import FIRST, SECOND, STOPPED, third
from flatline.cli import Engine, answer
from wire_server import Act, WireServer, wire

TRUE = {"evidence": "e1", "quantity": "line", "comparator": "contains", "value": "Timed out"}
SOUND = (
    Act(calls=[("search_log", {"pattern": "Timed out"}), ("evidence", {"ids": ["e1", "t1"]})]),
    Act("I am not in the form."),
    Act(FIRST),
    Act(SECOND),
    Act(third(claims=[TRUE, {**TRUE, "value": "Xid"}], prose="It waited 20000 ms. Or 99.5.")),
)
MORE = Act(
    '<reasoning><critique id="c9" on="v1" cites="t1">And the others?</critique></reasoning>'
    '<answer family="C2"><prose>They waited.</prose></answer>'
)
KEY = "sk-tape0123456789abcdefXYZ"


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FLATLINE_API_KEY", KEY)
    monkeypatch.delenv("FLATLINE_MODEL", raising=False)


def to(server: WireServer, saved: Path) -> list[str]:
    return ["--model", "compatible:wire", "--base-url", f"{server.url}/v1", "--save", str(saved)]


@pytest.fixture
def recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[Path, str]:
    """A transcript, and what was shown when it was made."""
    saved = tmp_path / "t.jsonl"
    with wire(*SOUND) as server:
        argv = [
            "ask",
            str(STOPPED),
            "why? my key is sk-abcdef0123456789abcdef",
            *to(server, saved),
        ]
        assert answer(argv, Engine()) == 1
    return saved, capsys.readouterr().out


def test_it_is_json_by_the_line_without_secrets(recorded: tuple[Path, str]) -> None:
    """Only its owner can read it."""
    saved, _ = recorded
    rows = [json.loads(line) for line in saved.read_text().splitlines()]
    kinds = [row["kind"] for row in rows]
    assert kinds[:2] == ["flatline-transcript", "question"]
    assert kinds.count("response") == 5
    assert kinds[-1] == "answer"
    text = saved.read_text()
    assert KEY not in text
    assert "sk-abcdef" not in text
    assert "node01" not in "".join(json.dumps(row) for row in rows if row["kind"] == "prompt")
    assert saved.stat().st_mode & 0o077 == 0


def test_run_again_it_gives_the_same_answer_without_a_model(
    recorded: tuple[Path, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tools and checks run anew; nothing is asked of anybody; the page is the same."""
    saved, shown = recorded
    monkeypatch.delenv("FLATLINE_API_KEY")
    assert answer(["ask", str(STOPPED), "--replay", str(saved)], Engine()) == 1
    said = capsys.readouterr()
    assert said.out == shown
    assert "the same as it was recorded" in said.err


def test_a_target_that_changed_is_told(
    recorded: tuple[Path, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Status 3: what the tools answer now is not what they answered."""
    saved, _ = recorded
    other = tmp_path / "other"
    shutil.copytree(STOPPED, other)
    log = other / "run" / "job.log"
    log.write_text(log.read_text().replace("Timed out waiting", "Got tired waiting"))
    assert answer(["ask", str(other), "--replay", str(saved)], Engine()) == 3
    said = capsys.readouterr().err
    assert "another run" in said
    assert "tools answer otherwise now" in said


def test_an_altered_recording_does_not_pass(
    recorded: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Claims are checked again: what is written into the answer is not believed."""
    saved, _ = recorded
    saved.write_text(saved.read_text().replace("The line says “Timed out”", "The line says “Xid”"))
    assert answer(["ask", str(STOPPED), "--replay", str(saved)], Engine()) == 3
    assert "not as it was recorded: question 1: its claims" in capsys.readouterr().err


def test_one_goes_on_from_it(
    recorded: tuple[Path, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The model is shown what was said; evidence keeps its ids; all of it is saved again."""
    saved, _ = recorded
    both = tmp_path / "both.jsonl"
    with wire(MORE) as server:
        argv = ["ask", str(STOPPED), "and the others?", "--continue", str(saved)]
        argv += to(server, both)
        assert answer(argv, Engine()) == 1
        assert len(server.asked) == 1
        assert "why? my key is [masked]" in json.dumps(server.asked[0])
    out = capsys.readouterr().out
    assert "They waited." in out
    assert "c9 critique of v1: And the others? [t1]" in out
    assert answer(["ask", str(STOPPED), "--replay", str(both)], Engine()) == 1
    assert capsys.readouterr().out.count("What compatible:wire says") == 2


def test_what_was_cut_off_is_said_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A recording of a failure gives that failure, from what was answered until then."""
    saved = tmp_path / "t.jsonl"
    with wire(SOUND[0], Act(FIRST), Act(status=400, message="enough")) as server:
        answer(["ask", str(STOPPED), "why?", *to(server, saved)], Engine())
    shown = capsys.readouterr().out
    assert "enough" in shown
    assert answer(["ask", str(STOPPED), "--replay", str(saved)], Engine()) == 1
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "not json", '{"kind": "flatline-transcript", "version": 99}',
             '{"kind": "flatline-transcript", "version": 1, "run": "x", "model": "y",'
             ' "masked": true}\n{"kind": "response", "response": {}}', "[" * 100_000],
)  # fmt: skip
def test_what_is_no_transcript_is_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a wrong call."""
    file = tmp_path / "x.jsonl"
    file.write_text(text)
    assert answer(["ask", str(STOPPED), "--replay", str(file)], Engine()) == 2
    assert "transcript" in capsys.readouterr().err


def test_a_replay_takes_no_question(capsys: pytest.CaptureFixture[str]) -> None:
    """It runs what was recorded."""
    assert answer(["ask", str(STOPPED), "why?", "--replay", "x"], Engine()) == 2
    assert "give no question" in capsys.readouterr().err
