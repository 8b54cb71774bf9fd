"""
Ports that came to a lower rate when the run became slow.

A link that trains anew after an error may come up at half its rate or with fewer lanes.  Nothing
is lost then, so no counter of losses moves: only the rate tells.  Most hosts alike are no link's
fault, and a rate that fell at another time than the pace explains nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flatline.facts import Facts
from flatline.judging.bursts import align
from flatline.judging.claims import claim
from flatline.judging.throughput import Course, Slow
from flatline.judging.timeline import ByHost, by_host, instant, timeline
from flatline.model import Claim

RATE = "rdma_port_rate_bytes_per_second"
LOWER = 0.9
"""Of the rate before: rates are steps of a half or less (HDR 200, EDR 100 Gb/s; x4, x2, x1)."""
MOST_SHARE = 0.5
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Lowered:
    """Hosts with such a port, the greatest fall first, and what shows it."""

    hosts: tuple[str, ...]
    slow: Slow
    shows: tuple[Claim, ...]


def lowered(facts: Facts, run: Course) -> Lowered | None:
    """None where rates were not measured, nothing slowed after the best phase, or no port fell
    with it."""
    after = [phase for phase in run.slow if phase.begins >= run.best.ends]
    if not after or not facts.measured(RATE):
        return None
    slow = min(after, key=lambda phase: phase.part)
    then, before = (_rates(facts, phase) for phase in (slow, run.best))
    if then is None or before is None:
        return None
    part = {host: then.at(int(slow.ends))[host] / value
            for host, value in before.at(int(run.best.ends)).items()
            if value > 0 and host in then.at(int(slow.ends))}  # fmt: skip
    fell = sorted((h for h, ratio in part.items() if ratio < LOWER), key=lambda h: (part[h], h))
    if not fell or len(fell) > MOST_SHARE * len(part):
        return None
    fell = _with_the_pace(facts, run, {h: before.at(int(run.best.ends))[h] for h in fell})
    shows = []
    for host in fell[:_SHOWN]:
        low = then.cite(host, int(slow.ends), "lowest rate of its ports in the slow phase")
        high = before.cite(host, int(run.best.ends), "lowest rate of its ports before")
        if low is not None and high is not None:
            text = f"A port of {host} ran at {low.value * 8e-9:.0f} Gb/s in the slow phase, at"
            shows.append(claim(f"{text} {high.value * 8e-9:.0f} before", low, high))
    return Lowered(tuple(fell), slow, tuple(shows)) if shows else None


def _with_the_pace(facts: Facts, run: Course, before: Mapping[str, float]) -> list[str]:
    """Those of these hosts whose rate was low while the run was slow, and then alone."""
    cut = timeline(facts, [RATE], run.pace.span, run.stretch_s)
    read = None if cut is None else cut.hosts(facts, f"min by (host) (min_over_time({RATE}[w]))")
    if cut is None or read is None:
        return []
    lit = {host: [0 < read.at(end).get(host, 0.0) < LOWER * rate for end in cut.ends]
           for host, rate in before.items()}  # fmt: skip
    found = align(lit, run.low(cut))
    return [] if found is None else [host for host in before if host in found.hosts]


def _rates(facts: Facts, phase: Slow) -> ByHost | None:
    """Of each host the lowest of its ports' typical rates in a phase."""
    length_s = max(1, int(phase.ends - phase.begins))
    query = f"min by (host) (quantile_over_time(0.5, {RATE}[{length_s}s]))"
    return by_host(instant(facts, query, float(int(phase.ends))))
