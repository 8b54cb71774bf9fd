"""
From facts to the verdict: the only place that says "ruled out".

Every family judges; findings are put in the order of cause and consequence by mechanisms that the
families write down; what remains unexplained and ended the run is the verdict.  Nothing is ruled
out without coverage, and nothing is healthy because errors are absent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from flatline.calibration import CONFIDENT, with_confidence
from flatline.collect.masking import masked
from flatline.coverage import missing, stores_of
from flatline.facts import Facts
from flatline.families import Family, all_families
from flatline.impact import impact
from flatline.judging.belonging import told_of
from flatline.judging.both_ends import as_it_was_ended
from flatline.judging.comparison import beside_baseline, slower_unexplained, unexplained
from flatline.judging.doubts import doubted
from flatline.judging.order import later
from flatline.judging.other_job import of_another_job
from flatline.judging.unanswered import fell, lastly, why_open
from flatline.model import (
    Cleared,
    Comparison,
    Explained,
    Finding,
    Gap,
    Judged,
    LogCite,
    Role,
    RuledOut,
    Run,
    Undetermined,
    Verdict,
)

Explains = Mapping[str, Mapping[str, str]]
UNDETERMINED_BELOW = 0.3
"""A cause believed less than this is shown as a finding and not as the verdict."""
FIRST = ("A2", "A3", "B1", "B2", "F1")
"""DESIGN: these go before the C2 they caused, where the order in time is unknown."""
ROOTS = ("A1", "A2", "A3", "B1", "B2", "C5", "C6", "F1", "F2", "F4")
"""Families that can stand behind another's sign without a line of their own in the job log."""
DONE_BUT_BAD = ("B3", "D1", "D2", "D3", "D4", "D5", "D6", "E1", "E2", "E3", "F2")
"""Families that stand though the run completed; any other finding on a completed run warns, but
for one that says what slowed it."""
UNSEEN = 3
"""Needs that the verdict's own open question names; `undetermined` has them all."""
_MUST_BE_CLEAR = ("E1", "E2", "E3")
_NO_FAILURE = ("completed", "running", "unknown", "cancelled")
_SURE = 0.99


def diagnose(facts: Facts, families: Sequence[Family] | None = None) -> Verdict:
    """The verdict on one run, its confidence as often right as it says (see `calibration`)."""
    return with_confidence(judge(facts, families))


def judge(facts: Facts, families: Sequence[Family] | None = None) -> Verdict:
    """The verdict with the strengths that families state. Families judge in the order of their
    codes and do not see each other; a family that breaks becomes a gap that names it."""
    known = tuple(families) if families is not None else all_families()
    found: list[tuple[Family, Finding]] = []
    cleared: dict[str, Cleared] = {}
    broken: list[Gap] = []
    for family in known:
        try:
            answer = family.judge(facts)
        except Exception as fault:  # one broken family must not hide the others
            broken.append(
                Gap(family.name, f"its judgement broke: {type(fault).__name__}: {fault}")
            )
            if facts.strict:
                raise
            continue
        if isinstance(answer, Cleared):
            cleared[family.code] = answer
        elif answer is not None:
            several = (answer,) if isinstance(answer, Finding) else answer
            found.extend((family, finding) for finding in several)
    gaps = [*facts.gaps, *broken]
    healthy = next((of_another_job(facts, f) for _, f in found if f.code == "G1"), None)
    found = [(family, f) for family, f in found if f.code != "G1"]
    judged = _judged(facts, known, found)
    ruled, open_ = _answers(facts, known, judged, cleared, gaps)
    beside = beside_baseline(facts, gaps)
    verdict = _verdict(facts, known, judged, healthy, ruled, open_, gaps, beside)
    return masked(_compared(verdict, beside))


def _compared(verdict: Verdict, beside: Comparison | None) -> Verdict:
    """The verdict beside its baseline, with what of their difference stays unexplained."""
    if beside is None:
        return verdict
    left = unexplained(beside, found=verdict.state == "found")
    return replace(verdict, comparison=beside, cannot_decide=(*verdict.cannot_decide, *left))


# --- cause before symptom ---


def _judged(
    facts: Facts, known: Sequence[Family], found: Sequence[tuple[Family, Finding]]
) -> list[Judged]:
    explains = {family.code: family.explains for family in known}
    made: list[Judged] = []
    findings = [finding for _, finding in found]
    numbered = [
        (f"f{n}", family, told_of(facts, doubted(facts, finding), findings))
        for n, (family, finding) in enumerate(found, 1)
    ]
    for own, family, finding in numbered:
        reasons = []
        for other, _, cause in numbered:
            if other == own or cause.strength < UNDETERMINED_BELOW:
                continue
            mechanism = _mechanism(explains, cause, finding)
            if mechanism and _explains(facts, explains, cause, finding):
                reasons.append(Explained(other, mechanism))
        role: Role = "warning" if _warns(facts, finding) else "consequence" if reasons else "cause"
        made.append(Judged(own, family.name, finding, role, finding.strength, tuple(reasons)))
    made = _broken_circles(made)
    rivals = sum(1 for j in made if j.role == "cause" and j.finding.ended_run)
    return [replace(j, confidence=_confidence(facts, j, rivals)) for j in made]


def _broken_circles(made: list[Judged]) -> list[Judged]:
    """Consequences that only one another explain lead back to no cause: the strongest of them
    is made one, until every consequence has a cause behind it."""
    while True:
        sound = {j.id for j in made if j.role != "consequence"}
        while more := {
            j.id
            for j in made
            if j.id not in sound and any(reason.by in sound for reason in j.explained_by)
        }:
            sound |= more
        circle = [j for j in made if j.id not in sound]
        if not circle:
            return made
        first = max(circle, key=lambda j: j.finding.strength)
        made = [replace(j, role="cause", explained_by=()) if j is first else j for j in made]


def _mechanism(explains: Explains, cause: Finding, effect: Finding) -> str | None:
    table = explains.get(cause.code, {})
    return table.get(f"{effect.code}/{effect.fault_class}") or table.get(effect.code)


def _explains(facts: Facts, explains: Explains, cause: Finding, effect: Finding) -> bool:
    """Whether a written mechanism applies: no later in time, in the same attempt, and, where
    each could explain the other in unknown order, the one that goes first."""
    if _warns(facts, cause) or cause.attempt != effect.attempt or not _live(facts, cause):
        return False
    after = later(facts, cause, effect)
    if after is True:
        return False
    if after is False or _mechanism(explains, effect, cause) is None:
        return True
    specific = f"{effect.code}/{effect.fault_class}" in explains.get(cause.code, {})
    counter = f"{cause.code}/{cause.fault_class}" in explains.get(effect.code, {})
    if specific != counter:
        return specific
    if (cause.code in FIRST) != (effect.code in FIRST):
        return cause.code in FIRST
    return (cause.strength, effect.code) > (effect.strength, cause.code)


def _live(facts: Facts, finding: Finding) -> bool:
    return finding.ended_run or _stays(finding)


def _stays(finding: Finding) -> bool:
    return finding.code in DONE_BUT_BAD or finding.severity == "degraded"


def _warns(facts: Facts, finding: Finding) -> bool:
    if finding.role == "warning":
        return True
    return facts.disposition == "completed" and not _stays(finding)


def _confidence(facts: Facts, judged: Judged, rivals: int) -> float:
    """
    The finding's own strength, raised by independent stores that cite it and lowered by rivals.

    Each further store closes half of the distance to certainty: a kernel line beside a launcher's
    report leaves half the ways to be wrong.  A rival cause that nothing explains takes a fifth.
    """
    doubt = 1.0 - judged.finding.strength
    stores = stores_of(facts, judged.finding.cites)
    doubt *= 0.5 ** max(0, len(stores) - 1)
    value = min(_SURE, judged.finding.most, 1.0 - doubt)
    if judged.role == "cause" and judged.finding.ended_run and rivals > 1:
        value *= 0.8 ** (rivals - 1)
    if facts.disposition == "unknown" and judged.finding.ended_run:
        value *= 0.97
    return round(value, 3)


# --- three answers ---


def _answers(
    facts: Facts,
    known: Sequence[Family],
    judged: Sequence[Judged],
    cleared: dict[str, Cleared],
    gaps: list[Gap],
) -> tuple[list[RuledOut], list[Undetermined]]:
    found = {j.finding.code for j in judged}
    ruled: list[RuledOut] = []
    open_: list[Undetermined] = []
    for family in known:
        if family.code in found or family.code == "G1":
            continue
        lacking = missing(facts, family.needs)
        answer = cleared.get(family.code)
        if answer is not None and (answer.decisive or not lacking):
            ruled.append(RuledOut(family.code, family.name, answer.why, answer.cites))
            continue
        broken = any(gap.need == family.name for gap in gaps)
        what = ("its judgement broke",) if broken else lacking or (family.decided_by,)
        open_.append(Undetermined(family.code, family.name, what))
    return ruled, open_


# --- the verdict ---


def _verdict(
    facts: Facts,
    known: Sequence[Family],
    judged: list[Judged],
    healthy: Finding | None,
    ruled: list[RuledOut],
    open_: list[Undetermined],
    gaps: list[Gap],
    beside: Comparison | None,
) -> Verdict:
    lead = _lead(facts, judged)
    if lead is None:
        doubts = _doubts(known, judged, open_, gaps)
        slow = slower_unexplained(beside)
        if healthy is not None and not doubts and slow is None:
            return _told(facts, healthy, "healthy", healthy.strength, judged, ruled, open_, gaps)
        return _open_verdict(facts, judged, healthy, doubts, ruled, open_, gaps, slow)
    ordered = [lead, *(j for j in judged if j is not lead)]
    unseen = _unseen_causes(known, lead, open_)
    finding = lead.finding
    if unseen:
        finding = replace(finding, cannot_decide=(*finding.cannot_decide, *unseen))
    return _told(facts, finding, lead.family, lead.confidence, ordered, ruled, open_, gaps)


def _doubts(
    known: Sequence[Family],
    judged: Sequence[Judged],
    open_: Sequence[Undetermined],
    gaps: Sequence[Gap],
) -> tuple[str, ...]:
    """What forbids "healthy": a family of bad training not ruled out, a judgement that broke,
    a cause too weak to be the verdict. Empty: nothing does."""
    open_codes = [a for a in open_ if a.code in _MUST_BE_CLEAR]
    doubts = []
    if open_codes:
        names = ", ".join(f"{a.code} {a.family}" for a in open_codes)
        doubts.append(f"Whether {names} applies: that needs {open_codes[0].missing[0]}.")
    unasked = [code for code in _MUST_BE_CLEAR if code not in {family.code for family in known}]
    doubts.extend(f"Whether {code} applies: it was not asked." for code in unasked)
    lost = {gap.need for gap in gaps}
    unheard = [(f.code, f.name, "its judgement broke") for f in known if f.name in lost]
    weak = [
        (j.finding.code, j.family, f"its signs are too weak ({j.confidence:.2f})")
        for j in judged
        if j.role == "cause"
    ]
    doubts.extend(
        f"Whether {code} {name} applies: {why}." for code, name, why in (*unheard, *weak)
    )
    return tuple(doubts)


SLOWS_ONLY = ("B3", "D1", "D2", "D3", "D4", "D5", "D6")


def _lead(facts: Facts, judged: Sequence[Judged]) -> Judged | None:
    """The unexplained cause that ended the last failed attempt, else the costliest."""
    causes = [j for j in judged if j.role == "cause" and j.confidence >= UNDETERMINED_BELOW]
    if facts.disposition == "cancelled":
        causes = [j for j in causes if _before_cancel(facts, j)]
    if facts.disposition == "timeout" and facts.tagged("output-ends"):  # another job's tries
        causes = [j for j in causes if j.finding.attempt == facts.last.n]
    ended = [j for j in causes if j.finding.ended_run]
    if ended:
        last = max(j.finding.attempt for j in ended)
        anew = [j for j in causes if j.finding.code == "E2" and j.finding.attempt > last]
        taken = all(j.finding.code in ("F1", "F2") for j in ended if j.finding.attempt == last)
        if anew and (taken or anew[0].confidence >= CONFIDENT):
            return anew[0]  # what had ended a try before it is over
        ended = [j for j in ended if j.finding.attempt == last]
        return max(ended, key=lambda j: (_precedes_all(facts, j, ended), j.confidence))
    if facts.disposition == "failed":  # being slow ends no process
        causes = [j for j in causes if j.finding.code not in SLOWS_ONLY]
    weight = {"fatal": 3, "degraded": 2, "warning": 1, "none": 0}
    return max(causes, key=lambda j: (weight[j.finding.severity], j.confidence), default=None)


def _precedes_all(facts: Facts, one: Judged, others: Sequence[Judged]) -> bool:
    return all(
        other is one or later(facts, one.finding, other.finding) is False for other in others
    )


def _before_cancel(facts: Facts, judged: Judged) -> bool:
    """A cancelled run is judged on what came before the cancel."""
    lines = [cite for cite in judged.finding.cites if isinstance(cite, LogCite)]
    if not judged.finding.ended_run or not lines:
        return True
    times = [cite.at for cite in lines if cite.at is not None and not cite.at_assumed]
    if judged.finding.fault_class == "lost-peer" and times and as_it_was_ended(facts, times):
        return False
    return not any(
        all(facts.after(cite, match.cite) is True for cite in lines)
        for match in facts.tagged("cancelled")
    )


def _unseen_causes(
    known: Sequence[Family], lead: Judged, open_: Sequence[Undetermined]
) -> tuple[str, ...]:
    """Which families could stand behind this one and could not be looked for, and for want of
    what: a consequence must say what would show its cause."""
    finding = lead.finding
    lacking = {answer.code: answer.missing for answer in open_}
    behind: dict[str, list[str]] = {}
    for family in known:
        key = f"{finding.code}/{finding.fault_class}"
        if (
            family.code in lacking
            and family.code in ROOTS
            and (key in family.explains or finding.code in family.explains)
            and lacking[family.code] != (family.decided_by,)
        ):
            for need in lacking[family.code]:
                behind.setdefault(need, []).append(family.code)
    if not behind:
        return ()
    told = [f"{need} ({', '.join(codes)})" for need, codes in behind.items()]
    told[UNSEEN:] = [f"and {len(told) - UNSEEN} more"] if len(told) > UNSEEN else []
    asked = "Whether something earlier caused it. What would show that, and was not read: "
    return (f"{asked}{'; '.join(told)}.",)


def _told(
    facts: Facts,
    finding: Finding,
    family: str,
    confidence: float,
    judged: Sequence[Judged],
    ruled: Sequence[RuledOut],
    open_: Sequence[Undetermined],
    gaps: Sequence[Gap],
) -> Verdict:
    return Verdict(
        run=run_of(facts),
        state="healthy" if finding.code == "G1" else "found",
        headline=finding.summary,
        code=finding.code,
        family=family,
        fault_class=finding.fault_class,
        attribution=finding.attribution,
        confidence=confidence,
        scope=finding.scope,
        culprits=finding.culprits,
        cleared=finding.cleared,
        severity=finding.severity,
        onset=finding.onset,
        onset_step=finding.onset_step,
        impact=impact(facts, finding),
        resubmit=finding.resubmit,
        shows=finding.shows,
        implies=finding.implies,
        cannot_decide=finding.cannot_decide,
        actions=finding.actions,
        findings=tuple(judged),
        ruled_out=tuple(ruled),
        undetermined=tuple(open_),
        gaps=tuple(gaps),
        domain=finding.domain,
        catalogue=facts.catalogue,
        attempt_codes=_codes(judged),
    )


def _codes(judged: Sequence[Judged]) -> dict[int, str]:
    codes: dict[int, str] = {}
    for item in judged:
        if item.role == "cause":
            codes.setdefault(item.finding.attempt, item.finding.code)
    return codes


def _open_verdict(
    facts: Facts,
    judged: Sequence[Judged],
    healthy: Finding | None,
    doubts: Sequence[str],
    ruled: Sequence[RuledOut],
    open_: Sequence[Undetermined],
    gaps: Sequence[Gap],
    slow: str | None,
) -> Verdict:
    headline, cannot = why_open(facts, healthy, doubts)
    shows = healthy.shows if healthy is not None else lastly(facts)
    if facts.disposition in _NO_FAILURE:
        slower = fell(facts)
        if slower is not None:
            headline, shows = slower.text, (*slower.shows, *shows)
        elif slow is not None and not doubts:
            headline = slow
    return Verdict(
        run=run_of(facts),
        state="undetermined",
        headline=headline,
        code=None,
        family=None,
        fault_class=None,
        attribution="unknown",
        confidence=0.0,
        scope="none",
        culprits=(),
        cleared=(),
        severity=None,
        onset=None,
        onset_step=None,
        impact=impact(facts, None),
        resubmit="unknown",
        shows=shows,
        implies=(),
        cannot_decide=cannot,
        actions=(),
        findings=tuple(judged),
        ruled_out=tuple(ruled),
        undetermined=tuple(open_),
        gaps=tuple(gaps),
        catalogue=facts.catalogue,
        attempt_codes=_codes(judged),
    )


def run_of(facts: Facts) -> Run:
    """The run as its evidence describes it."""
    job = facts.job
    frameworks = [t.framework for t in facts.tracks if t.framework and len(t)]
    frameworks += [m.framework for m in facts.markers if m.framework]
    reporters = [e.reporter.partition("-")[0] for e in facts.exits]
    starts = [a.started_at for a in facts.attempts if a.started_at]
    return Run(
        id=job.id if job else None,
        target=facts.targets,
        disposition=facts.disposition,
        framework=Counter(frameworks).most_common(1)[0][0] if frameworks else None,
        launcher=Counter(reporters).most_common(1)[0][0] if reporters else None,
        hosts=facts.hosts,
        world_size=facts.world_size,
        started_at=min(starts, default=None),
        ended_at=facts.last.ended_at,
        now=facts.now,
        last_step=facts.last_step,
        planned_steps=facts.planned_steps,
        attempts=facts.attempts,
    )
