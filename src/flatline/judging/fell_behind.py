"""
A rank that the program's own timing of kernels shows behind: while the run is slow, or throughout
one whose pace never fell.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from flatline.facts import Facts
from flatline.judging.claims import claim, name_places
from flatline.judging.reported import SCORE, Reported, among_all
from flatline.judging.throughput import DROP, Course, Slow, course, course_in_order
from flatline.model import Cite, Match, Place

LEAST_WORK, SPAN = "megatron-least-throughput", "megatron-throughput-span"
REPORTS, OFTEN = 3, 0.8
"""Reports of the slow time, and the share of them that must show it.  A judgement."""
FAST = 2
"""Reports of the fast time, in none of which it may be far behind.  Where there are fewer, it may
be so by design, and has to be just as far behind as the run is slower."""
EDGE = 2
"""Points from where the pace changes, within which a report of fast time tells nothing: cuts are
laid where the levels fit best, and may be a point late."""
ACCOUNTS = 0.1
"""A synchronised step is as slow as its slowest rank: its score is the part of the best pace that
the run still has, but for what a step does besides its kernels."""
_CLOCKS = re.compile(
    r"\bMnClk/Rnk: ([\d.]{1,12}) ?MHz/(\d{1,6}) \| MxClk/Rnk: ([\d.]{1,12}) ?MHz/"
)
LOWER = 0.97
"""Of the highest clock: repeats of a run differ by 2 %, as do like cards."""
RANKS, BESIDE, NEXT = 16, 2, 0.25
"""Of so many, and beside so many others that a report lists, one that is four times as far behind
as the next is no stage of a model, or one that has no other rank.  A judgement."""
EARLY, LATE = 0.5, 0.7
"""Of the run's points, before which the first and behind which the last report must come."""


@dataclass(frozen=True, slots=True)
class _Report:
    """How far the run was, and the ranks that the report lists as slowest, with their scores."""

    points: int
    scores: dict[int, tuple[float, Match]]


@dataclass(frozen=True, slots=True)
class Behind:
    """The rank, and the slow phase in which it is behind."""

    told: Reported
    run: Course
    phase: Slow
    just: bool
    """Whether no fast time shows that it was not so before."""


def fell_behind(facts: Facts) -> Behind | None:
    """None where reports are few, do not agree, or show the rank behind in the fast time, too."""
    reports = _reports(facts)
    run = (course(facts) or course_in_order(facts)) if len(reports) >= REPORTS else None
    if run is None or run.pace.track is None or not run.slow:
        return None
    span = run.pace.track.of_attempt(facts.last.n)
    at = [span[min(r.points, len(span)) - 1] for r in reports]
    phases = [_phase_at(run, index) for index in at]
    slow = [(r, p) for r, p in zip(reports, phases, strict=True) if p.part < 1 - DROP]
    fast = [r for r, p, index in zip(reports, phases, at, strict=True)
            if p.part >= 1 - DROP and not _at_an_edge(run, index)]  # fmt: skip
    if len(slow) < REPORTS:
        return None
    just = len(fast) < FAST
    named = {
        rank
        for rank in {rank for r, _ in slow for rank in r.scores}
        if sum(_accounts(r, rank, p, just=just) for r, p in slow) >= OFTEN * len(slow)
        and not any(_was_so(r, rank, [r for r, _ in slow]) for r in fast)
    }
    if len(named) != 1:
        return None
    (rank,) = named
    low = [r.scores[rank] for r, p in slow if _accounts(r, rank, p)]
    score, worst = min(low, key=lambda pair: pair[0])
    place = _place(facts, rank, [m for _, m in low])
    text = (f"In {len(low)} of {len(slow)} reports of the slow time {name_places([place])} is"
            " behind the others by the program's own timing of its kernels, down to"
            f" {score:.2f} of the fastest"
            + ("; in none of the fast time" if fast else "")
            + _clocked(facts, rank, [m for _, m in low]))  # fmt: skip
    cites: list[Cite] = [low[0][1].cite, low[-1][1].cite, worst.cite]
    return Behind(
        Reported((place,), score, claim(text, *dict.fromkeys(cites))), run, slow[0][1], just
    )


def _clocked(facts: Facts, rank: int, told: Sequence[Match]) -> str:
    """That the same reports name its clock as the lowest, where most do."""
    found = [_CLOCKS.search(facts.text(m.cite.source, m.cite.line)) for m in told]
    clocks = [(float(f[1]), float(f[3])) for f in found if f is not None and int(f[2]) == rank]
    clocks = [(own, most) for own, most in clocks if own < LOWER * most]
    if len(clocks) < max(OFTEN * len(told), 1):
        return ""
    own, most = min(clocks)
    return f"; its clock is the lowest there, at {own:.0f} of {most:.0f} MHz"


def lags(facts: Facts) -> Reported | None:
    """One of many ranks that does far less work a second than any other in nearly every report of
    a run; not the first or the last, which have the embedding and the output."""
    reports = [r for r in _reports(facts) if _lists_the_slowest(r)]
    run = (course(facts) or course_in_order(facts)) if len(reports) >= REPORTS else None
    world = facts.world_size or 1 + max((rank for r in reports for rank in r.scores), default=0)
    if run is None or run.pace.track is None or run.slow or world < RANKS:
        return None
    points = len(run.pace.track.of_attempt(facts.last.n))
    if reports[0].points > EARLY * points or reports[-1].points < LATE * points:
        return None
    far = [(r, rank) for r in reports if (rank := _far_behind(r)) is not None]
    ranks = {rank for _, rank in far}
    if len(ranks) != 1 or len(far) < OFTEN * len(reports) or ranks & {0, world - 1}:
        return None
    (rank,) = ranks
    low = [r.scores[rank] for r, _ in far]
    score, worst = min(low, key=lambda pair: pair[0])
    place = _place(facts, rank, [m for _, m in low])
    text = (f"In {len(low)} of {len(reports)} reports {name_places([place])} did less work a"
            f" second than any other by the program's own timing of its kernels, down to"
            f" {score:.2f} of those listed beside it")  # fmt: skip
    cites: list[Cite] = [low[0][1].cite, low[-1][1].cite, worst.cite]
    return Reported((place,), score, claim(text, *dict.fromkeys(cites)))


def _lists_the_slowest(report: _Report) -> bool:
    """Whether ranks are listed beside the slowest: a span names no other but the fastest."""
    kinds = {match.signature.id for _, match in report.scores.values()}
    return LEAST_WORK in kinds and SCORE not in kinds


def _far_behind(report: _Report) -> int | None:
    """The rank that alone is far behind those that are listed beside it."""
    by_score = sorted((score, rank) for rank, (score, _) in report.scores.items())
    if len(by_score) <= BESIDE:
        return None
    (lowest, rank), (second, _) = by_score[:2]
    return rank if lowest < 1 - DROP and 1 - second <= NEXT * (1 - lowest) else None


def _phase_at(run: Course, index: int) -> Slow:
    """The phase in which a point of the track lies."""
    at = bisect_right(run.pace.indexes, index) - 1
    return next((p for p in run.phases if p.points[0] <= at <= p.points[1]), run.phases[0])


def _at_an_edge(run: Course, index: int) -> bool:
    """Whether a slow phase begins or ends within some points of it."""
    at = bisect_right(run.pace.indexes, index) - 1
    return any(abs(at - edge) <= EDGE for phase in run.slow for edge in phase.points)


def _accounts(report: _Report, rank: int, phase: Slow, *, just: bool = False) -> bool:
    """Whether the rank is as far behind as the run is slower; no farther where it is `just`."""
    found = report.scores.get(rank)
    if found is None or found[0] > phase.part + ACCOUNTS:
        return False
    return not just or found[0] >= phase.part - ACCOUNTS


def _was_so(report: _Report, rank: int, slow: Sequence[_Report]) -> bool:
    """Whether the rank is nearer in it to where it was in the slow time than to the fastest."""
    found = report.scores.get(rank)
    low = [r.scores[rank][0] for r in slow if rank in r.scores]
    return found is not None and bool(low) and found[0] < (1.0 + median(low)) / 2


def _reports(facts: Facts) -> list[_Report]:
    """Those of the last attempt, in order; of several logs the one that holds most."""
    logs: dict[str, list[Match]] = {}
    for match in facts.matches:
        if match.signature.id in (SCORE, LEAST_WORK, SPAN) and match.attempt == facts.last.n:
            logs.setdefault(match.cite.source, []).append(match)
    found: dict[int, dict[int, tuple[float, Match]]] = {}
    for match in max(logs.values(), key=len, default=[]):
        scores = _scores(facts, match)
        points = facts.steps_before(match.cite, facts.last.n) if scores else None
        if points:
            table = found.setdefault(points, {})
            table |= {rank: (score, match) for rank, score in scores.items()}
    return [_Report(points, scores) for points, scores in sorted(found.items())]


def _scores(facts: Facts, match: Match) -> dict[int, float]:
    """Ranks with their part of the fastest's work a second."""
    if match.signature.id == SCORE:
        beside = among_all(facts, match)
        return {int(match.groups["rank"]): float(match.groups["score"])} if beside else {}
    listed = [*match.groups["key"].split(","), match.groups.get("what", "")]
    pairs = [one.partition("/") for one in listed if one]
    work = {int(rank): float(value.removesuffix("TF")) for value, _, rank in pairs}
    most = max(work.values())
    return {rank: value / most for rank, value in work.items()} if most else {}


def _place(facts: Facts, rank: int, told: Sequence[Match]) -> Place:
    said = (m.groups.get("host") or m.groups.get("node") for m in told)
    nodes = {facts.node_of(node) for node in said if node}
    return facts.on_host(Place(rank=rank, host=nodes.pop() if len(nodes) == 1 else None))
