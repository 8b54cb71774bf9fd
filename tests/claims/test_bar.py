"""No lie passes and no truth is refused: claims read off the scenarios' own verdicts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

import pytest

from claims.lies import every_lie
from claims.truths import chosen, every_truth, evidence, runs
from flatline.claims import Checked, Claim, Rerun, check, render

BAR = 500
LEAST_TRUE = {
    "about": 100, "absence": 150, "bound": 250, "bound in a line": 500, "elapsed": 4,
    "exit code": 40, "last such line": 300, "line at a place": 250, "line number": 300,
    "lines searched": 120, "number in a line": 500, "order": 60, "place": 300,
    "place of a query": 20, "query": 120, "query, another unit": 200, "quotation": 300,
    "record": 20, "signal by its name": 8, "time": 120, "time bound": 120,
    "time, another zone": 120, "window": 120, "window of a line": 120,
}  # fmt: skip
LEAST_FALSE = {
    "another quantity": 3000, "another's evidence id": 4000, "comparator": 6000, "host": 800,
    "invented evidence": 4000, "invented line": 3000, "number": 8000, "order": 60,
    "rank or GPU": 400, "shifted time": 900, "time zone slip": 800, "unit": 2500, "window": 800,
}  # fmt: skip


@cache
def again(name: str) -> Rerun:
    scenario, told = runs()[name]
    asked = scenario.request()
    return Rerun.of(told, asked.targets, baseline=asked.baseline)


def checked(name: str, claim: Claim) -> Checked:
    return check(claim, evidence(name), again(name))


def test_there_are_as_many_of_every_kind_as_the_bar_wants() -> None:
    """A generator that has run dry proves nothing."""
    true, false = (Counter(one.kind for one in every()) for every in (every_truth, every_lie))

    assert {kind for kind, least in LEAST_TRUE.items() if true[kind] < least} == set()
    assert {kind for kind, least in LEAST_FALSE.items() if false[kind] < least} == set()
    assert set(true) == set(LEAST_TRUE)
    assert set(false) == set(LEAST_FALSE)


def test_of_the_bars_five_hundred_each_all_are_told_apart() -> None:
    """500 of each, as even over the kinds as there are: none goes wrong."""
    truths, lies = chosen(every_truth(), BAR), chosen(every_lie(), BAR)

    assert (len(truths), len(lies)) == (BAR, BAR)
    assert min(Counter(one.kind for one in lies).values()) >= 38
    assert sum(checked(one.name, one.claim).holds for one in truths) == BAR
    assert sum(checked(one.name, one.claim).holds for one in lies) == 0


@pytest.mark.parametrize("kind", LEAST_TRUE)
def test_no_truth_is_refused(kind: str) -> None:
    """Read off the raw files by this suite's own expressions."""
    refused = [
        (one.name, one.claim, found.reason)
        for one in every_truth()
        if one.kind == kind and not (found := checked(one.name, one.claim)).holds
    ]

    assert refused == []


@pytest.mark.parametrize("kind", LEAST_FALSE)
def test_no_lie_passes(kind: str) -> None:
    """Each is a truth changed in one respect, and says why it fell."""
    passed = []
    for one in every_lie():
        if one.kind == kind:
            found = checked(one.name, one.claim)
            assert found.reason
            if found.holds:
                passed.append((one.name, one.claim, one.of.claim))

    assert passed == []


def test_every_truth_has_a_sentence_with_its_evidence() -> None:
    """One line, its id in brackets at the end, its place and its number in it."""
    for one in chosen(every_truth(), BAR):
        said = render(one.claim)
        assert "\n" not in said
        assert said.endswith(f"[{one.claim.evidence}].")
        if one.claim.place.rank is not None:
            assert f"rank {one.claim.place.rank}" in said


def test_a_run_that_changed_bears_no_claim() -> None:
    """The evidence is read again: a verdict of another run's files does not hold."""
    other = Rerun.of(
        runs()["hf_loss_diverges"][1], runs()["one_rank_stopped"][0].request().targets
    )
    known = evidence("hf_loss_diverges")
    claims = [one.claim for one in every_truth() if one.name == "hf_loss_diverges"]

    assert claims
    assert not any(check(claim, known, other).holds for claim in claims)


def test_the_first_and_last_value_of_a_window_are_asked_for_again() -> None:
    """As the file of metrics has them at its ends, read here line by line."""
    name = "gpu_throttled_one_of_many"
    item = next(one for one in evidence(name).values() if "SM_CLOCK{" in one.get("query", ""))
    rows = [
        line.split()
        for line in (runs()[name][0].run / "metrics.prom").read_text().splitlines()
        if line.startswith("DCGM_FI_DEV_SM_CLOCK{") and 'gpu="5"' in line and "node03" in line
    ]
    early = datetime.fromtimestamp(int(rows[2][-1]) / 1000, UTC)
    window = (early, datetime.fromisoformat(item["end"]))
    then = (float(rows[1][-2]) + float(rows[2][-2])) / 2  # of one minute, its left end open
    first = Claim(item["id"], item["query"], "first", then, "MHz", window=window)
    last = replace(first, comparator="last", value=item["value"] / 1e6)

    assert checked(name, first).holds, checked(name, first)
    assert checked(name, last).holds
    assert not checked(name, replace(first, value=last.value)).holds
    assert not checked(name, replace(last, value=first.value)).holds
    assert not checked(name, replace(first, window=None)).holds
