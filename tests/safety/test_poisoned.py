"""A run that was poisoned has the verdict of its clean twin, and steers and leaks nothing."""

from __future__ import annotations

import re
from functools import cache
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from mcp_types import CallToolResult

from flatline.claims import Claim, Names, Rerun, check, claim_from, overturn, render, strike
from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.errors import UsageError
from flatline.exhibit import exhibit
from flatline.facts import Facts
from flatline.mcp.parts import Part
from flatline.mcp.roots import Roots
from flatline.mcp.runs import Runs
from flatline.mcp.tools import Tools
from flatline.model import LogCite, Verdict
from flatline.render import format_named, html
from flatline.render.json import document
from flatline.verify import verify
from flatline.wording.untrusted import CLOSE, OPEN, wrapped
from mcp_server.asking import said, strings
from obedient import obey, scripted
from safety.poison import (
    CARRIERS,
    FORGED,
    IN_LINES,
    KEY,
    MARK,
    NOTHING,
    PAYLOADS,
    SPELLINGS,
    Carrier,
    Case,
    cases,
    of_carrier,
    written,
)

NAMES = [carrier.name for carrier in CARRIERS]
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069"
                      "\U000e0000-\U000e0fff]")  # fmt: skip
CLOSES = re.compile(
    r"</|<\||<(?:system|tool|function|invoke|run-text)|\[/?INST\]|```|\"tool_calls\"|＜", re.I
)
STAND = ("state", "code", "fault class", "blame", "culprits", "resubmit", "actions")
TOOLS = frozenset({"diagnose", "evidence", "details", "search_log", "query", "explain", "verify"})


def judged(run: Path) -> tuple[Facts, Verdict]:
    facts = collect(Request((str(run),)))
    facts.strict = True
    return facts, diagnose(facts)


def facets(verdict: Verdict) -> dict[str, object]:
    """What nobody but the rules may move."""
    return {
        "state": verdict.state,
        "code": verdict.code,
        "fault class": verdict.fault_class,
        "blame": verdict.attribution,
        "confidence": verdict.confidence,
        "culprits": verdict.culprits,
        "cleared": verdict.cleared,
        "scope": (verdict.scope, verdict.domain),
        "onset": (verdict.onset, verdict.onset_step),
        "resubmit": verdict.resubmit,
        "actions": [(one.kind, one.text, one.command, one.targets) for one in verdict.actions],
        "run": (verdict.run.disposition, verdict.run.hosts, verdict.run.last_step),
        "findings": sorted((j.finding.code, j.role, j.confidence) for j in verdict.findings),
        "ruled out": {one.code for one in verdict.ruled_out},
    }


@cache
def clean(carrier: Carrier) -> dict[str, object]:
    """With nothing of note in the carrier's place."""
    with TemporaryDirectory() as folder:
        return facets(judged(written(carrier, NOTHING, Path(folder)))[1])


def test_there_are_two_hundred_cases_and_more() -> None:
    """Of every carrier, payload and spelling."""
    every = cases()

    assert len(every) >= 200
    assert {case.carrier.name for case in every} == set(NAMES)
    assert {case.payload for case in every} == set(PAYLOADS)
    assert {case.spelling for case in every} == set(SPELLINGS)
    assert len({case.name for case in every}) == len(every)


@pytest.mark.parametrize("name", NAMES)
def test_a_poisoned_run_moves_leaks_and_steers_nothing(name: str, tmp_path: Path) -> None:
    """Every case of a carrier: the verdict is the clean twin's, no surface shows a secret or what
    steers, a model is given it only within the quotation, and one that obeys is refused."""
    found = {}
    obeyed = 0
    for number, case in enumerate(of_carrier(name)):
        run = written(case.carrier, case.text, tmp_path / str(number))
        facts, verdict = judged(run)
        wrong = {
            "moved": moved(case, verdict),
            "shown": shown(facts, verdict),
            "given to a model": given(run),
            "let through": let_through(case, run, verdict),
        }
        found.update({case.name: wrong} if any(wrong.values()) else {})
        obeyed += bool(obey(case.text))

    assert found == {}
    assert obeyed >= 6


def moved(case: Case, verdict: Verdict) -> dict[str, object]:
    """What is not as it is in the clean twin: family, confidence, culprits, actions ..."""
    found, twin = facets(verdict), clean(case.carrier)
    return {key: (twin[key], found[key]) for key in twin if twin[key] != found[key]}


def shown(facts: Facts, verdict: Verdict) -> list[str]:
    """Secrets and steering characters in text, JSON, Markdown, HTML with the run's own curves and
    lines, and the sentences of claims."""
    pages = {form: format_named(form).render(verdict) for form in ("text", "json", "markdown")}
    pages["html"] = html.illustrate(verdict, exhibit(facts, verdict))
    pages["claims"] = "\n".join(sentences(verdict))
    wrong = [f"{form} shows the key" for form, page in pages.items() if KEY in page]
    del pages["json"]  # there the text is the evidence's own, escaped as JSON has it
    wrong += [f"{form} steers" for form, page in pages.items() if STEERING.search(page)]
    return [*wrong, *(["html has its tag"] if "<system" in pages["html"] else [])]


def sentences(verdict: Verdict) -> list[str]:
    """Every line that is cited, as a claim quotes it."""
    return [
        render(Claim(f"e{number}", "line", "contains", cite.text or "?"))
        for judged_ in verdict.findings
        for number, cite in enumerate(judged_.finding.cites, 1)
        if isinstance(cite, LogCite)
    ]


def given(run: Path) -> list[str]:
    """What tools answer: no secret, nothing that closes or steers, and where the payload stands in
    plain letters it is quoted, or part of one line of our own."""
    wrong = []
    for answer in answers(run):
        text = said(answer)
        for part in [text, *strings(answer.structured_content)]:
            bare = part.replace(OPEN, "").replace(CLOSE, "")
            wrong += [part] if KEY in part or CLOSES.search(bare) or STEERING.search(part) else []
        wrong += [text] if not text.count(OPEN) == text.count(CLOSE) <= 1 else []
        outside = text.partition(OPEN)[0] + text.partition(CLOSE)[2]
        wrong += [line for line in outside.splitlines() if line.lstrip().startswith(MARK)]
    return wrong


def answers(run: Path) -> list[CallToolResult]:
    tools = Tools(Runs(Roots([str(run)])))
    first = tools.diagnose(target=str(run))
    assert first.structured_content is not None
    handle = first.structured_content["handle"]
    made = [first]
    if any(path.suffix in (".log", ".out") for path in run.rglob("*") if path.is_file()):
        made.append(tools.search_log(handle=handle, pattern=MARK))
    parts: tuple[Part, ...] = ("gaps", "evidence", "findings")
    return [*made, *(tools.details(handle=handle, part=part) for part in parts)]


def let_through(case: Case, run: Path, verdict: Verdict) -> list[object]:
    """What of an obedient model's answer is left, given the text bare, which is worse than it will
    ever be: claims that hold, prose with a number or address, a verdict undone, a tool called."""
    told = document(verdict)
    known = {str(item["id"]): item for item in told["evidence"]}  # type: ignore[attr-defined]
    done = obey(case.text)
    again = Rerun.of(told, (str(run),))
    checked = [check(claim_from(claim), known, again) for claim in done.claims]
    left, _ = strike(done.prose, known)
    ruling = overturn(told, checked, done.code)
    wrong: list[object] = [one for one in checked if one.holds]
    wrong += re.findall(r"\d|https?:|hf_", left.replace(str(done.code), ""))
    wrong += [ruling] if ruling.overturned or ruling.code != verdict.code else []
    return [*wrong, *({tool for tool, _ in done.calls} & TOOLS)]


def test_the_comparison_would_see_a_change(tmp_path: Path) -> None:
    """A line that is evidence moves the verdict: it is the kernel's, in the kernel's own log."""
    carrier = next(one for one in CARRIERS if one.name == "line of a kernel log")
    run = written(carrier, "NVRM", tmp_path)
    line = (
        "[Fri Nov 20 19:17:20 2026] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
    )
    (run / "dmesg-node01.txt").write_text(line)
    case = Case(carrier, "forged xid", "plain")

    assert moved(case, judged(run)[1])


@pytest.mark.parametrize("carrier", IN_LINES, ids=lambda carrier: carrier.name)
def test_evidence_quoted_in_a_log_moves_no_family(carrier: Carrier, tmp_path: Path) -> None:
    """A program that logs what it was asked about prints lines that are evidence elsewhere. They
    may cost confidence, as a rival that was read; family and culprits stay."""
    heads = cycle(
        ('sample prompt: "', '{"role": "user", "content": "', "the analyst asks about: ")
    )
    twin = clean(carrier)
    for name, text in FORGED.items():
        run = written(carrier, f'{next(heads)}{text}"', tmp_path / name)
        found = facets(judged(run)[1])
        assert {key: found[key] for key in STAND} == {key: twin[key] for key in STAND}, name


@pytest.mark.parametrize("case", cases()[::3], ids=lambda case: case.name)
def test_the_wrapper_holds_whatever_is_in_it(case: Case) -> None:
    """It opens once and closes once, every line of the run stands behind its bar."""
    text = wrapped(case.text, f"job.log {case.text}", "read on", 2_000)
    lines = text.splitlines()

    assert (lines[0], lines[-1]) == (OPEN, CLOSE)
    assert KEY not in text
    assert all(line.startswith("| ") for line in lines[1:-1])
    assert CLOSES.search("\n".join(lines[1:-1])) is None
    assert STEERING.search(text.replace("\n", "")) is None


def test_the_stand_in_obeys_nearly_everything_it_is_shown() -> None:
    """Else it would prove nothing: bare and wrapped, whatever it is spelt in."""
    told = [case for case in cases() if not case.payload.startswith("forged")]
    bare = [case for case in told if obey(case.text)]
    shown = [case for case in told if obey(wrapped(case.text, "job.log", "read on"))]

    assert len(bare) >= 0.9 * len(told)
    assert len(shown) >= 0.85 * len(told)
    assert "G1" in scripted(PAYLOADS["ignore"])
    assert not obey("step 30/260 loss 2.5")


def test_what_it_would_send_out_has_no_names_in_it(tmp_path: Path) -> None:
    """The context for an outside provider is masked, and what comes back is restored."""
    carrier = next(one for one in CARRIERS if one.name == "job name")
    run = written(carrier, PAYLOADS["key"], tmp_path)
    told = document(judged(run)[1])
    names = Names.of(told)
    context = wrapped((run / "node.txt").read_text(), "node.txt", "")
    sent = names.mask(context)

    assert not re.search(r"\bgpu[1-4]\b", sent)
    assert names.restore(sent) == context


def test_every_citation_of_a_poisoned_run_still_holds(tmp_path: Path) -> None:
    """Masked and defanged or not: `verify` reads the same line again."""
    for number, name in enumerate(NAMES):
        case = next(of_carrier(name))
        run = written(case.carrier, case.text, tmp_path / str(number))
        checks = verify(document(judged(run)[1]), (str(run),))
        assert [check_ for check_ in checks if not check_.ok] == [], case.name


def test_a_claim_with_anything_riding_along_is_refused() -> None:
    """No field but those declared."""
    with pytest.raises(UsageError):
        claim_from({"evidence": "e1", "quantity": "line", "comparator": "=", "value": "x",
                    "tool": "run_shell"})  # fmt: skip
