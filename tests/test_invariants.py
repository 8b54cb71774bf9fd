"""What must not change a verdict, and what the scenarios as a whole must hold."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from flatline.model import Verdict
from scenario import Scenario, answer, scenarios

JUDGED = ["A1", "A2", "A3", "B1", "B2", "C1", "C2", "C3", "C4", "D4", "D5", "D6"]
JUDGED += ["E1", "E2", "E3", "F1", "F2", "F3", "F4"]
RECORDED = [s for s in scenarios() if s.expect.get("provenance") == "recorded"]
EACH = pytest.mark.parametrize("scenario", RECORDED, ids=lambda s: s.name)


def rewritten(scenario: Scenario, folder: Path, pattern: str, by: str) -> Verdict:
    """The verdict on a copy in which a pattern is replaced in every text and file name."""
    shutil.copytree(scenario.run, folder / "run")
    for path in sorted((folder / "run").rglob("*")):
        if path.is_file():
            text = path.read_bytes().decode("utf-8", "surrogateescape")
            path.write_bytes(re.sub(pattern, by, text).encode("utf-8", "surrogateescape"))
    return scenario.verdict(folder / "run")


def shape(verdict: Verdict) -> list[tuple[str, str | None, str, tuple[int | None, ...]]]:
    """Findings without the names of hosts and the times."""
    return sorted(
        (
            j.finding.code,
            j.finding.fault_class,
            j.role,
            tuple(sorted((p.rank if p.rank is not None else p.task or -1)
                         for p in j.finding.culprits)),
        )
        for j in verdict.findings
    )  # fmt: skip


@EACH
def test_other_host_names_change_nothing_but_names(scenario: Scenario, tmp_path: Path) -> None:
    """`node01` and `gpu3` are names, not evidence."""
    renamed = rewritten(scenario, tmp_path, r"\b(?:node0|gpu)(?=\d\b|\[\d)", "worker")

    assert shape(renamed) == shape(scenario.verdict())


@EACH
def test_another_year_changes_nothing_but_times(scenario: Scenario, tmp_path: Path) -> None:
    """A verdict rests on order and distance in time, not on the date."""
    shifted = rewritten(scenario, tmp_path, r"\b2026-11-", "2025-11-")

    assert shape(shifted) == shape(scenario.verdict())


@pytest.mark.parametrize("code", JUDGED)
def test_a_family_has_a_scenario_for_each_of_its_answers(code: str) -> None:
    """Found, ruled out and undetermined are all seen, and a near miss that is about it."""
    answers = {s.name: answer(s.verdict(), code) for s in scenarios()}
    near = [s for s in scenarios() if code in s.expect["about"] and answers[s.name] != "found"]

    assert set(answers.values()) == {"found", "ruled_out", "undetermined"}
    assert near
