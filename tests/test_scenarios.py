"""Every family judges every scenario, and exactly the findings on file are allowed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from flatline.judging.claims import same_rank
from flatline.render.json import render
from flatline.verify import verify
from scenario import Scenario, answer, found, objections, scenarios

EACH = pytest.mark.parametrize("scenario", scenarios(), ids=lambda s: s.name)
CONFIDENT = 0.8


@EACH
def test_the_verdict_is_one_the_truth_allows(scenario: Scenario) -> None:
    """State, family, class, attribution, culprits and cited lines agree with what was done."""
    assert objections(scenario.verdict(), scenario.expect) == []


@EACH
def test_exactly_the_findings_on_file_are_made(scenario: Scenario, golden: bool) -> None:
    """A family that fires in another's scenario has met a near miss."""
    file = scenario.folder / "found.txt"
    text = found(scenario.verdict())
    if golden:
        file.write_text(text, "utf-8")

    assert text == file.read_text("utf-8")


@EACH
def test_the_answers_the_scenario_is_about(scenario: Scenario) -> None:
    """Found, ruled out and undetermined are three things."""
    verdict = scenario.verdict()
    wanted = scenario.expect.get("answers", {})

    assert {code: answer(verdict, code) for code in wanted} == wanted


@EACH
def test_who_is_cleared_is_nobodys_culprit(scenario: Scenario) -> None:
    """What one finding shows to be sound, none names as a place to act on."""
    findings = [judged.finding for judged in scenario.verdict().findings]
    cleared = [place for finding in findings for place in finding.cleared]
    blamed = [
        f"{finding.code} blames {place}"
        for finding in findings
        for place in finding.culprits
        if place in cleared or any(same_rank(place, sound) for sound in cleared)
    ]

    assert blamed == []


@EACH
def test_every_citation_holds(scenario: Scenario) -> None:
    """`verify` re-reads, re-runs and recomputes each of them from the document alone."""
    document = json.loads(render(scenario.verdict()))
    checks = verify(document, (str(scenario.run),), None, scenario.baseline)
    broken = [c for c in checks if not c.ok]

    assert broken == []


@EACH
def test_removing_a_source_never_clears_a_fault(scenario: Scenario, tmp_path: Path) -> None:
    """With any one file gone, a fault is not called healthy, nor another fault with confidence."""
    whole = scenario.verdict()
    files = [path for path in sorted(scenario.run.rglob("*")) if path.is_file()]
    if whole.state != "found" or len(files) < 2:
        return
    allowed = {j.finding.code for j in whole.findings} | {whole.code}
    other_run = scenario.expect.get("another_run_without", ())
    for number, path in enumerate(files):
        if path.relative_to(scenario.run).as_posix() in other_run:
            continue
        copy = tmp_path / str(number)
        shutil.copytree(scenario.run, copy / "run")
        (copy / "run" / path.relative_to(scenario.run)).unlink()
        left = scenario.verdict(copy / "run")

        assert left.state != "healthy", f"without {path.name}"
        assert left.confidence < CONFIDENT or left.code in allowed, f"without {path.name}"


@EACH
def test_a_run_is_left_as_it_was(scenario: Scenario) -> None:
    """Diagnosis writes nothing into its target."""
    before = {p: p.stat().st_mtime_ns for p in scenario.run.rglob("*")}
    scenario.verdict(scenario.run)

    assert {p: p.stat().st_mtime_ns for p in scenario.run.rglob("*")} == before
