"""
One GPU whose SMs work longer than every other's throughout a run.

In a synchronous run all ranks do the same work between two collectives: one that always takes
longer for it keeps the others waiting, whose SMs rest meanwhile.  Nothing changes in such a run,
so that no phase tells it; but it stands alone.  A part of the model that has more to do stands on
as many GPUs as share it, and rank 0 has duties of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from flatline.facts import Facts
from flatline.judging.apart import Fleet, fleet
from flatline.judging.claims import claim
from flatline.judging.throughput import Course
from flatline.judging.timeline import instant, usual
from flatline.model import Claim, Place

ACTIVITY = "gpu_sm_active_ratio"
LONGER, ALIKE = 1.05, 1.02
"""Times the median of the others: what it must reach, and no other may."""
ALWAYS = 0.9
"""Of the stretches it must stand so."""
LEAST_GPUS, LEAST_HOSTS = 32, 4
"""Fewer may each have a part of the model of their own."""


@dataclass(frozen=True, slots=True)
class Lone:
    """The GPU, how much longer it works, and what shows it."""

    place: Place
    part: float
    shows: Claim


def lone_worker(facts: Facts, run: Course) -> Lone | None:
    """None where SM activity was not measured, too few GPUs were, none stands alone, or the pace
    fell: what is always so does not explain a fall."""
    if run.slow:
        return None
    ranks = fleet(facts, run, ACTIVITY)
    if ranks is None or len(ranks.read.rows) < LEAST_GPUS:
        return None
    if len({place.host for place in ranks.read.rows}) < LEAST_HOSTS:
        return None
    ratios = _ratios(ranks)
    if not ratios:
        return None
    found = max(ratios, key=lambda place: (ratios[place][0], str(place)))
    typical, always = ratios[found]
    others = max(ratio for place, (ratio, _) in ratios.items() if place != found)
    first = facts.hosts[0] if facts.hosts else min(str(p.host) for p in ranks.read.rows)
    if typical < LONGER or others > ALIKE or always < ALWAYS:
        return None
    if (found.host, found.gpu) == (first, "0"):
        return None
    shows = _shown(facts, ranks, found)
    return None if shows is None else Lone(found, typical - 1.0, shows)


def _ratios(ranks: Fleet) -> dict[Place, tuple[float, float]]:
    """Of each GPU its usual activity as a part of the median GPU's, and in which share of the
    stretches it stands above all others."""
    rows: dict[Place, list[float]] = {}
    above: dict[Place, int] = {}
    count = 0
    for end in ranks.cut.ends:
        now = {p: v for p in ranks.read.rows if (v := ranks.read.value(p, end)) is not None}
        middle = median(now.values()) if now else 0.0
        if len(now) < LEAST_GPUS or middle <= 0:
            continue
        count += 1
        for place, value in now.items():
            rows.setdefault(place, []).append(value / middle)
        most = max(now, key=lambda place: now[place])
        above[most] = above.get(most, 0) + (now[most] >= LONGER * middle)
    return {p: (median(row), above.get(p, 0) / count) for p, row in rows.items()}


def _shown(facts: Facts, ranks: Fleet, place: Place) -> Claim | None:
    begins, ends = (int(moment) for moment in ranks.run.pace.span)
    query = f"avg_over_time({ACTIVITY}[{max(1, ends - begins)}s])"
    answer = instant(facts, query, float(ends))
    row = None if answer is None else next((r for r in answer.rows if r.place == place), None)
    others = usual(facts, query, float(ends), "SM activity of the median GPU")
    if answer is None or row is None or others is None:
        return None
    own = answer.cite(row, "SM activity over the run")
    text = (
        f"{place} had its SMs active {own.value:.1%} of the run, the median GPU {others.value:.1%}"
    )
    return claim(text, own, others)
