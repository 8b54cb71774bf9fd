"""Without a model every command still answers, and says that none did."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agent.scripted import DEMOS, STOPPED, bench
from cli.calls import environment
from flatline.agent import rules
from flatline.cli import Engine, answer

WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('pydantic_ai', 'pydantic', 'openai', 'anthropic', 'genai_prices',
                                  'opentelemetry', 'httpx2', 'mcp'):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
from flatline.cli import main
main(sys.argv[1:])
"""


@pytest.fixture(autouse=True)
def unconfigured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("FLATLINE_MODEL", "FLATLINE_BASE_URL", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("run", "question", "word"),
    [
        ("one-rank-stopped", "which rank did the others wait for?", "rank 3"),
        ("memory-limit", "was it out of memory?", "memory"),
        ("nan-loss", "what happened to the loss?", "loss"),
        ("one-rank-stopped", "is it a straggler?", "straggler"),
        ("node-lost", "which node was lost?", "node"),
    ],
)
def test_the_rules_answer_with_what_they_say_of_it(run: str, question: str, word: str) -> None:
    """Their own sentences, with their evidence."""
    made = rules.answered(bench(DEMOS / run), question, "none is configured")
    assert made.model is None
    assert word in " ".join(one.text.lower() for one in made.claims[:3])
    assert any(one.cites for one in made.claims) or word == "straggler"
    assert len(made.claims) <= rules.MOST


def test_a_question_that_nothing_speaks_of_gets_the_verdict() -> None:
    """Not an empty page."""
    made = rules.answered(bench(), "xyzzy plugh", "none")
    assert made.claims


def test_ask_answers_without_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    """The verdict, the reason, the answer; the status is the verdict's."""
    assert answer(["ask", str(STOPPED), "which rank?"], Engine()) == 1
    said = capsys.readouterr()
    assert said.out.startswith("✗ FAULT: Training froze")
    assert "No model was asked: none is configured" in said.out
    assert "rank 3" in said.out
    assert max(map(len, said.out.splitlines())) <= 80


def test_a_model_without_a_key_is_a_reason_and_no_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What to set stands there."""
    assert answer(["ask", str(STOPPED), "why?", "--model", "anthropic:x"], Engine()) == 1
    assert "set ANTHROPIC_API_KEY" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "argv",
    [
        ("ask", str(STOPPED), "why?"),
        ("ask", str(STOPPED), "why?", "--model", "ollama:x"),
        ("diagnose", str(STOPPED), "--agent", "--model", "compatible:x", "--base-url",
         "http://127.0.0.1:9/v1"),
        ("diagnose", str(STOPPED)),
    ],
)  # fmt: skip
def test_without_the_extra_everything_answers(argv: tuple[str, ...]) -> None:
    """None of its packages is there; the verdict and the reason are."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *argv],
        capture_output=True,
        encoding="utf-8",
        env=environment(),
        check=False,
        timeout=120,
    )
    assert done.returncode == 1, done.stderr
    assert "Training froze" in done.stdout
    assert "Traceback" not in done.stderr
    if "--model" in argv:
        assert "pip install 'flatline[agent]'" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["--model", "x"], "PROVIDER:NAME"),
        (["--model", "zzz:x"], "PROVIDER one of"),
        (["--model", "compatible:x"], "--base-url"),
        (["--base-url", "http://h/v1"], "name its model too"),
        (["--model", "vllm:x", "--base-url", "ftp://h"], "http://HOST:PORT"),
        (["--model", "vllm:x", "--base-url", "http://u:p@h/v1"], "password"),
        (["--max-calls", "0"], "above 0"),
        (["--max-tokens", "-3"], "above 0"),
        (["--price", "cheap"], "--price"),
        (["--model", "vllm:x", "--max-cost", "1"], "no price of vllm:x is known"),
        (["--save", str(STOPPED / "x.jsonl")], "lies in the target"),
        (["--allow-source", "/no/such/folder"], "No such file"),
    ],
)
def test_a_wrong_call_is_two(
    argv: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Told from a model that is not there."""
    assert answer(["ask", str(STOPPED), "why?", *argv], Engine()) == 2
    assert why in capsys.readouterr().err


def test_questions_come_by_the_line_from_a_pipe() -> None:
    """Until an empty line or the end."""
    done = subprocess.run(
        [sys.executable, "-m", "flatline", "ask", str(STOPPED)],
        input="which rank?\nwas it the network?\n\nnever asked\n",
        capture_output=True,
        encoding="utf-8",
        env=environment(),
        check=False,
        timeout=120,
    )
    assert done.returncode == 1
    assert done.stdout.count("What the rules say of it") == 2


def test_no_question_at_all_is_a_wrong_call() -> None:
    """With an example."""
    done = subprocess.run(
        [sys.executable, "-m", "flatline", "ask", str(STOPPED)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env=environment(),
        check=False,
        timeout=120,
    )
    assert done.returncode == 2
    assert "ask something" in done.stderr
