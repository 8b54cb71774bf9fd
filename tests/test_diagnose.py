"""Cause before symptom, and three answers: judged with families that say what a test wants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from flatline.diagnose import diagnose
from flatline.facts import LOG, Facts, FileRead
from flatline.families import Family
from flatline.model import (
    Attempt,
    Claim,
    Cleared,
    Disposition,
    Finding,
    Judgement,
    LogCite,
    Match,
    Signature,
    Verdict,
)

START = datetime(2026, 3, 1, 4, tzinfo=UTC)
CITE = LogCite("train.log", 7, "it happened")


def finding(code: str, at_s: float | None = None, **more: Any) -> Finding:
    """What a family says; its onset is so many seconds after the start."""
    onset = None if at_s is None else START + timedelta(seconds=at_s)
    return Finding(
        code=code,
        summary=f"{code} happened",
        attribution="job",
        shows=(Claim("it happened", (more.pop("cite", CITE),)),),
        implies=(),
        **{"strength": 0.8, "onset": onset, **more},
    )


def family(
    code: str,
    answer: Judgement = None,
    needs: tuple[str, ...] = (),
    explains: Mapping[str, str] | None = None,
    judge: Callable[[Facts], Judgement] | None = None,
) -> Family:
    return Family(
        code=code,
        name=f"family-{code}",
        title=code,
        page="",
        needs=needs,
        decided_by=f"what decides {code}",
        explains=explains or {},
        judge=judge or (lambda facts: answer),
    )


def facts(disposition: Disposition = "failed", attempts: int = 1, **more: Any) -> Facts:
    made = [Attempt(n, "failed") for n in range(attempts - 1)]
    files = (FileRead("train.log", LOG, 100, 5_000),)
    return Facts(
        targets=("run",),
        attempts=(*made, Attempt(attempts - 1, disposition)),
        **{"files": files, **more},
    )


def roles(verdict: Verdict) -> dict[str, str]:
    return {judged.finding.code: judged.role for judged in verdict.findings}


def cleared(code: str, *, decisive: bool = False) -> Cleared:
    return Cleared(code, "measured", (CITE,), decisive=decisive)


def marker(tag: str, line: int) -> Match:
    signature = Signature("x.y", "x", "marker", "", "", "", ("x",), tags=(tag,))
    return Match(signature, LogCite("train.log", line, tag), {})


MECHANISM = {"C2": "a dead rank never enters the collective"}


def test_a_cause_explains_its_consequence_by_mechanism() -> None:
    """The verdict is the cause, and the consequence says how it follows."""
    verdict = diagnose(
        facts(),
        [family("A2", finding("A2", 0), explains=MECHANISM), family("C2", finding("C2", 60))],
    )

    (freeze,) = [j for j in verdict.findings if j.finding.code == "C2"]
    assert (verdict.code, roles(verdict)) == ("A2", {"A2": "cause", "C2": "consequence"})
    assert [e.mechanism for e in freeze.explained_by] == [MECHANISM["C2"]]


def test_what_came_later_explains_nothing() -> None:
    """Time order forbids it, though a mechanism is written."""
    verdict = diagnose(
        facts(),
        [family("A2", finding("A2", 60), explains=MECHANISM), family("C2", finding("C2", 0))],
    )

    assert (verdict.code, roles(verdict)["C2"]) == ("C2", "cause")


def test_line_order_counts_where_no_time_is_known() -> None:
    """Within one log only."""
    late = finding("A2", order=("train.log", 90))
    early = finding("C2", order=("train.log", 10))
    verdict = diagnose(facts(), [family("A2", late, explains=MECHANISM), family("C2", early)])
    other = diagnose(
        facts(),
        [
            family("A2", replace(late, order=("other.log", 90)), explains=MECHANISM),
            family("C2", early),
        ],
    )

    assert roles(verdict)["C2"] == "cause"
    assert roles(other)["C2"] == "consequence"


@pytest.mark.parametrize("apart_s", [None, 0.5, -0.5])
def test_the_mechanism_decides_where_the_order_is_unknown(apart_s: float | None) -> None:
    """No time, or less apart than clocks may be: a family that goes first explains the other,
    though each could."""
    at = (None, None) if apart_s is None else (0.0, apart_s)
    verdict = diagnose(
        facts(),
        [
            family("A2", finding("A2", at[0]), explains=MECHANISM),
            family("C2", finding("C2", at[1]), explains={"A2": "a watchdog aborts"}),
        ],
    )

    assert roles(verdict) == {"A2": "cause", "C2": "consequence"}


def test_a_mechanism_for_the_fault_class_outweighs_one_for_the_family() -> None:
    """Where the order is unknown and each could explain the other."""
    verdict = diagnose(
        facts(),
        [
            family("A2", finding("A2", fault_class="abort"), explains=MECHANISM),
            family("C2", finding("C2"), explains={"A2/abort": "the watchdog aborts"}),
        ],
    )

    assert roles(verdict) == {"A2": "consequence", "C2": "cause"}


def test_nothing_explains_across_attempts() -> None:
    """What ended the first try did not end the second, which is the verdict."""
    verdict = diagnose(
        facts(attempts=2),
        [
            family("A2", finding("A2", 0, attempt=0, strength=0.95), explains=MECHANISM),
            family("C2", finding("C2", 600, attempt=1)),
        ],
    )

    assert (verdict.code, roles(verdict)) == ("C2", {"A2": "cause", "C2": "cause"})
    assert verdict.attempt_codes == {0: "A2", 1: "C2"}


def test_two_unexplained_causes_leave_less_confidence() -> None:
    """The earlier one is the verdict; both stay causes."""
    alone = diagnose(facts(), [family("B1", finding("B1", 0))])
    verdict = diagnose(facts(), [family("A2", finding("A2", 60, strength=0.9)),
                                 family("B1", finding("B1", 0))])  # fmt: skip

    assert (verdict.code, roles(verdict)) == ("B1", {"A2": "cause", "B1": "cause"})
    assert verdict.confidence < alone.confidence


def test_what_is_found_on_a_completed_run_warns() -> None:
    """A line that looks like a fault is beside a run that reached its end."""
    verdict = diagnose(facts("completed"), [family("B2", finding("B2", 0))])

    assert (verdict.state, roles(verdict)) == ("undetermined", {"B2": "warning"})


def test_a_completed_run_can_have_learned_nothing() -> None:
    """Families of the training itself stand all the same."""
    verdict = diagnose(facts("completed"), [family("E1", finding("E1", 0))])

    assert (verdict.code, roles(verdict)) == ("E1", {"E1": "cause"})


def test_a_warning_explains_nothing() -> None:
    """A mild fault beside the failure is not behind it."""
    warning = finding("B2", 0, role="warning", severity="warning", ended_run=False)
    verdict = diagnose(
        facts(), [family("B2", warning, explains=MECHANISM), family("C2", finding("C2", 60))]
    )

    assert (verdict.code, roles(verdict)) == ("C2", {"B2": "warning", "C2": "cause"})


def test_a_weak_cause_is_shown_and_is_no_verdict() -> None:
    """Below three tenths of belief."""
    verdict = diagnose(facts(), [family("A3", finding("A3", 0, strength=0.2))])

    assert (verdict.state, verdict.confidence) == ("undetermined", 0.0)
    assert roles(verdict) == {"A3": "cause"}


def test_a_family_that_breaks_becomes_a_gap_that_names_it() -> None:
    """The others are heard, and it is not ruled out."""

    def broken(_: Facts) -> Judgement:
        raise ZeroDivisionError("by nought")

    verdict = diagnose(facts(), [family("A2", judge=broken), family("B1", finding("B1", 0))])

    assert verdict.code == "B1"
    assert [(gap.need, "by nought" in gap.reason) for gap in verdict.gaps] == [("family-A2", True)]
    assert [(u.code, u.missing) for u in verdict.undetermined] == [
        ("A2", ("its judgement broke",))
    ]


def test_cleared_without_coverage_is_undetermined() -> None:
    """What it needs and was not read is named."""
    verdict = diagnose(facts(), [family("B2", cleared("B2"), needs=("kernel log", "job log"))])

    assert not verdict.ruled_out
    assert [(u.code, u.missing) for u in verdict.undetermined] == [("B2", ("kernel log",))]


def test_cleared_with_coverage_is_ruled_out() -> None:
    """Either of two stores is enough where the family says so."""
    verdict = diagnose(
        facts(), [family("B2", cleared("B2"), needs=("kernel log|job log",))]
    )  # fmt: skip

    assert [r.code for r in verdict.ruled_out] == ["B2"]


def test_decisively_cleared_is_ruled_out_whatever_was_not_read() -> None:
    """A run that reached its end did not hang."""
    answer = cleared("C2", decisive=True)
    verdict = diagnose(facts(), [family("C2", answer, needs=("flight-recorder dumps",))])

    assert [r.code for r in verdict.ruled_out] == ["C2"]


def test_not_measurable_is_undetermined_even_with_coverage() -> None:
    """Nothing is ruled out because nothing was found, nor by a need that nobody knows."""
    verdict = diagnose(
        facts(),
        [family("B1", None, needs=("job log",)), family("B2", cleared("B2"), needs=("tea",))],
    )

    assert not verdict.ruled_out
    assert [(u.code, u.missing) for u in verdict.undetermined] == [
        ("B1", ("what decides B1",)),
        ("B2", ("tea",)),
    ]


@pytest.mark.parametrize("open_code", ["E1", "E2", "E3", None])
def test_healthy_needs_the_training_families_ruled_out(open_code: str | None) -> None:
    """Each of E1, E2 and E3; the rest may stay open."""
    training = [
        family(code, None if code == open_code else cleared(code)) for code in ("E1", "E2", "E3")
    ]
    sound = family("G1", finding("G1", severity="none", ended_run=False))
    verdict = diagnose(facts("completed"), [*training, family("B2"), sound])

    assert verdict.state == ("healthy" if open_code is None else "undetermined")
    assert (verdict.confidence == 0.0) is (open_code is not None)
    assert open_code is None or any(open_code in said for said in verdict.cannot_decide)


def _sound() -> list[Family]:
    """Families by which a completed run is healthy."""
    training = [family(code, cleared(code)) for code in ("E1", "E2", "E3")]
    return [*training, family("G1", finding("G1", severity="none", ended_run=False))]


def test_a_judgement_that_broke_forbids_healthy() -> None:
    """What it would have found is unknown, and said so."""

    def broken(_: Facts) -> Judgement:
        raise ZeroDivisionError("by nought")

    assert diagnose(facts("completed"), _sound()).state == "healthy"
    verdict = diagnose(facts("completed"), [*_sound(), family("D3", judge=broken)])

    assert verdict.state == "undetermined"
    assert any("D3" in said and "broke" in said for said in verdict.cannot_decide)


def test_a_weak_cause_forbids_healthy() -> None:
    """Too weak for a verdict is not the same as absent."""
    weak = finding("D3", 0, strength=0.2, ended_run=False)
    verdict = diagnose(facts("completed"), [*_sound(), family("D3", weak)])

    assert verdict.state == "undetermined"
    assert any("D3" in said for said in verdict.cannot_decide)


def test_a_circle_beside_a_cause_still_has_a_cause() -> None:
    """Findings that explain one another are not lost because another stands alone."""
    verdict = diagnose(
        facts(),
        [
            family("B1", finding("B1")),
            family("C1", finding("C1", strength=0.9), explains={"C2": "one"}),
            family("C2", finding("C2"), explains={"C4": "two"}),
            family("C4", finding("C4"), explains={"C1": "three"}),
        ],
    )

    assert roles(verdict) == {
        "B1": "cause",
        "C1": "cause",
        "C2": "consequence",
        "C4": "consequence",
    }


def test_what_warns_on_a_completed_run_explains_nothing() -> None:
    """A loss that diverged stands, whatever line was printed before it."""
    verdict = diagnose(
        facts("completed"),
        [
            family("A3", finding("A3", 0), explains={"E1": "broken"}),
            family("E1", finding("E1", 9)),
        ],
    )

    assert (verdict.code, roles(verdict)) == ("E1", {"A3": "warning", "E1": "cause"})


def test_a_fault_outweighs_healthy() -> None:
    """A run that ended as planned and diverged is not healthy."""
    verdict = diagnose(
        facts("completed"),
        [family("E1", finding("E1", 0)), family("E2", cleared("E2")), family("E3", cleared("E3")),
         family("G1", finding("G1", ended_run=False))],
    )  # fmt: skip

    assert (verdict.state, verdict.code) == ("found", "E1")


@pytest.mark.parametrize(("line", "code"), [(40, "C2"), (80, None)])
def test_a_cancelled_run_is_judged_on_what_came_before(line: int, code: str | None) -> None:
    """The cancel stands in line 60: a hang before it is the verdict, debris after it is not."""
    before = finding("C2", cite=LogCite("train.log", line, "watchdog"))
    verdict = diagnose(
        facts("cancelled", matches=(marker("cancelled", 60),)), [family("C2", before)]
    )

    assert verdict.code == code


def test_a_verdict_names_what_could_stand_behind_it_and_was_not_read() -> None:
    """A consequence must say what would show its cause."""
    verdict = diagnose(
        facts(),
        [
            family("B2", None, needs=("kernel log",), explains=MECHANISM),
            family("C2", finding("C2", 0)),
        ],
    )

    assert any("kernel log (B2)" in said for said in verdict.cannot_decide)


def test_without_families_nothing_is_healthy() -> None:
    """Nothing judged, nothing known."""
    verdict = diagnose(facts("completed"), [])

    assert (verdict.state, verdict.code, verdict.ruled_out) == ("undetermined", None, ())
