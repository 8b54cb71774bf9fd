"""Over the wire, in two protocols: whatever an endpoint does, there is a clear word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.scripted import FIRST, SECOND, STOPPED, third
from flatline.cli import Engine, answer
from wire_server import Act, WireServer, wire

KEY = "sk-wire0123456789abcdefXYZ"
TRUE = {"evidence": "e1", "quantity": "line", "comparator": "contains", "value": "Timed out"}
LOOK = Act(calls=[("search_log", {"pattern": "Timed out"}), ("topology", {})])
SOUND = (LOOK, Act(FIRST), Act(SECOND), Act(third(claims=[TRUE])))
PROTOCOLS = ("compatible", "anthropic")


@pytest.fixture(autouse=True)
def configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("FLATLINE_MODEL", "FLATLINE_BASE_URL", "FLATLINE_KEYS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FLATLINE_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-neverSENT0123456789abc")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-neverSENT0123456789")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("flatline.agent.metered.WAITS_S", (0.05, 0.1))


def call(server: WireServer, protocol: str, *more: str) -> list[str]:
    base = server.url if protocol == "anthropic" else f"{server.url}/v1"
    return ["ask", str(STOPPED), "which rank?", "--model", f"{protocol}:wire", "--base-url", base,
            *more]  # fmt: skip


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_whole_investigation(
    protocol: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Streamed answers, calls of tools in parallel, three rounds, and what it cost."""
    saved = tmp_path / "t.jsonl"
    with wire(*SOUND) as server:
        status = answer(call(server, protocol, "--save", str(saved), "--price", "3,15"), Engine())
    said = capsys.readouterr()
    assert status == 1
    assert said.out.startswith("✗ FAULT: Training froze after step 110")
    assert "It says C2 collective-hang, as the rules do." in said.out
    assert "The line says “Timed out” [e1]." in said.out
    assert "4 calls, 4,400 tokens (400 written)" in flat(said.out)
    assert "$0.0180" in said.out
    assert "given with --price" in flat(said.out)
    assert "search_log Timed out: 6 rows" in said.err
    assert max(map(len, said.out.splitlines())) <= 80
    assert max(map(len, said.err.splitlines())) <= 80
    assert all(body["stream"] for body in server.asked)
    assert len(server.asked) == 4
    assert all(body["max_tokens"] <= 4_096 for body in server.asked)
    assert KEY not in said.out + said.err + saved.read_text()
    sent = {
        h.get("x-api-key") or h["authorization"].removeprefix("Bearer ") for h in server.headers
    }
    assert sent == {KEY}
    assert "neverSENT" not in json.dumps(server.headers)


TROUBLE = [
    ("400", (Act(status=400, message="bad tools"),), "(HTTP 400)", 1),
    ("401", (Act(status=401, message=f"no such key {KEY}"),), "the key was refused", 1),
    ("404", (Act(status=404, message="no model"),), "no such model", 1),
    ("429 for long", (Act(status=429, headers={"retry-after": "3600"}),), "wait 3600 s", 1),
    ("500", (Act(status=500, message="<html>oops"),), "(HTTP 500)", 3),
    ("529", (Act(status=529, message="Overloaded"),), "overloaded", 3),
    ("cut off", (Act('<reasoning><proposition id="p1">x', stop="length"),), "cut off at", 3),
    ("no form", (Act("I think it hangs."),), "exactly one <reasoning>", 3),
    ("broken json", (Act(calls=[("search_log", '{"pattern": "Ti')]),), "did not keep", 3),
    ("no such tool", (Act(calls=[("rm_rf", {"path": "/"})]),), "Unknown tool name", 3),
    ("loop", (Act(calls=[("overview", {})]),), "all 6 calls", 6),
    ("silence", (Act(""),), "did not keep", None),
    ("disconnect", (Act(FIRST, cut_after=2),), "broke off in the middle", None),
    ("at once", (Act(FIRST, cut_after=0),), "gave no answer", None),
    ("slow", (Act(FIRST, delay_s=8),), "seconds are over (--max-seconds)", 1),
    ("redirect", (Act(status=307, headers={"location": "http://127.0.0.1:9/v1/x"}),), "", 1),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("acts", "why", "asked"), [row[1:] for row in TROUBLE], ids=[row[0] for row in TROUBLE]
)
def test_trouble_is_said_and_the_verdict_stands(
    protocol: str,
    acts: tuple[Act, ...],
    why: str,
    asked: int | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No traceback, no key, the rules' words, and no call beyond the budget."""
    seconds = "1.5" if acts[0].delay_s else "60"
    with wire(*acts) as server:
        status = answer(
            call(server, protocol, "--max-calls", "6", "--max-seconds", seconds), Engine()
        )
        count = len(server.asked)
    said = capsys.readouterr()
    out = flat(said.out)
    assert status == 1, said.err
    assert out.startswith("✗ FAULT: Training froze after step 110")
    assert f"{protocol}:wire gave no answer" in out
    assert "The rules' verdict stands" in out
    assert "rank 3" in out
    assert why in out
    assert asked is None or count == asked
    assert "Traceback" not in said.out + said.err
    assert KEY not in said.out + said.err


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("status", [429, 503, 529])
def test_a_refusal_that_passes_is_waited_for(
    protocol: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """As long as the endpoint says, and it is told."""
    refused = Act(status=status, headers={"retry-after": "0.1"})
    with wire(refused, *SOUND) as server:
        assert answer(call(server, protocol), Engine()) == 1
        assert len(server.asked) == 5
    said = capsys.readouterr()
    assert f"the endpoint answers {status}; again in" in said.err
    assert "as the rules do" in said.out


def test_an_endpoint_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    """Its address is said."""
    with wire(Act("")) as server:
        argv = call(server, "compatible")
    assert answer(argv, Engine()) == 1
    assert "cannot be reached" in flat(capsys.readouterr().out)


def test_a_proxy_is_taken_from_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As httpx does; the endpoint's own name is asked of it."""
    with wire(*SOUND) as server:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, server.url)
        for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.delenv(name, raising=False)
        argv = ["ask", str(STOPPED), "why?", "--model", "compatible:wire", "--base-url",
                "http://model.invalid/v1"]  # fmt: skip
        assert answer(argv, Engine()) == 1
    assert "as the rules do" in capsys.readouterr().out
    assert set(server.paths) == {"http://model.invalid/v1/chat/completions"}


def test_a_model_that_is_only_told_to_is_not_sent_the_data(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An endpoint that sends one on elsewhere is not followed."""
    with wire(Act("")) as other:
        away = Act(status=308, headers={"location": f"{other.url}/v1/chat/completions"})
        with wire(away) as server:
            assert answer(call(server, "compatible"), Engine()) == 1
        assert other.asked == []
    assert "gave no answer" in flat(capsys.readouterr().out)


def test_usage_that_is_not_reported_is_estimated(capsys: pytest.CaptureFixture[str]) -> None:
    """A budget without counts would be none."""
    silent = [Act(a.text, a.calls, usage=False) for a in SOUND]
    with wire(*silent) as server:
        answer(call(server, "compatible"), Engine())
    assert " 0 tokens" not in capsys.readouterr().out


def test_a_budget_of_money_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """The next call is not made where it would go beyond it."""
    with wire(*SOUND) as server:
        answer(call(server, "compatible", "--price", "1000,1000", "--max-cost", "4"), Engine())
        assert len(server.asked) < 4
    out = flat(capsys.readouterr().out)
    assert "--max-cost" in out


def test_a_diagnosis_with_an_agent(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The same verdict, the answer beside it, every citation of both holds."""
    with wire(*SOUND) as server:
        argv = ["diagnose", str(STOPPED), "--agent", *call(server, "anthropic")[3:], "--format",
                "json", "--quiet"]  # fmt: skip
        assert answer(argv, Engine()) == 1
    made = json.loads(capsys.readouterr().out)
    assert answer(["diagnose", str(STOPPED), "--format", "json"], Engine()) == 1
    plain = json.loads(capsys.readouterr().out)
    reasoning = made.pop("reasoning")
    brought = [item for item in made["evidence"] if item["id"][0] == "t"]
    made["evidence"] = [item for item in made["evidence"] if item not in brought]
    assert made == plain
    assert [item["id"] for item in brought] == ["t1"]
    assert [t["role"] for t in reasoning["thoughts"]] == [
        "proposition", "critique", "refinement", "verification"]  # fmt: skip
    whole = {**made, "evidence": [*made["evidence"], *brought], "reasoning": reasoning}
    file = tmp_path / "v.json"
    file.write_text(json.dumps(whole))
    assert answer(["verify", str(file), str(STOPPED)], Engine()) == 0
