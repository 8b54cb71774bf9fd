"""
GPUs whose links err in the run's slow phases, and in those alone.

NVLink and PCIe send again what arrives damaged; each retry is time in which every collective over
that link waits.  A few retries are normal on a sound link, so only errors far above the other
GPUs' count, and only where their bursts make up the slow phases (`judging.bursts`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flatline.facts import Facts
from flatline.judging.bursts import Bar, align
from flatline.judging.claims import claim
from flatline.judging.gpus import Readings, readings
from flatline.judging.throughput import Course, Slow, course, shown
from flatline.judging.timeline import Timeline, instant, timeline, usual
from flatline.model import Claim, Place

COUNTERS: Mapping[str, str] = {
    "gpu_nvlink_crc_errors_total": "NVLink checksum errors",
    "gpu_nvlink_replay_errors_total": "NVLink replays",
    "gpu_nvlink_recovery_errors_total": "NVLink recoveries",
    "gpu_pcie_replay_total": "PCIe replays",
}
MOST_SHARE = 0.25
"""Of the GPUs: more of them is no link's fault."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Worn:
    """GPUs with such a link, most bursts first, and what shows it."""

    places: tuple[Place, ...]
    course: Course
    shows: tuple[Claim, ...]
    chance: Claim


def worn_links(facts: Facts) -> Worn | None:
    """None where nothing was slow or measured, none stands apart, or chance explains it."""
    known = [signal for signal in COUNTERS if facts.measured(signal)]
    run = course(facts) if known else None
    if run is None or not run.slow:
        return None
    cut = timeline(facts, known, run.pace.span, 2 * run.pace.interval_s)
    if cut is None:
        return None
    asked = {signal: readings(cut.ask(facts, f"increase({signal}[w])")) for signal in known}
    read = {signal: rows for signal, rows in asked.items() if rows is not None}
    found = align(_lit(read, cut), run.low(cut))
    named = {str(place): place for rows in read.values() for place in rows.rows}
    if found is None or len(found.hosts) > max(1.0, MOST_SHARE * len(named)):
        return None
    places = tuple(named[name] for name in found.hosts)
    worst = min(run.slow, key=lambda phase: phase.part)
    shows = tuple(
        one for place in places[:_SHOWN] if (one := _beside(facts, read, place, worst)) is not None
    )
    if not shows:
        return None
    chance = claim(
        f"Their bursts cover {found.recall:.0%} of the slow time; by chance phases meet so well in"
        f" {found.chance:.1%} of random cuts.",
        *(cite for one in shows for cite in one.cites),
    )
    phases = tuple(shown(facts, run, phase) for phase in run.slow[:_SHOWN])
    return Worn(places, run, (*shows, *phases), chance)


def _lit(read: Mapping[str, Readings], cut: Timeline) -> dict[str, list[bool]]:
    """Per GPU and stretch whether any of its links' counters rose far above the other GPUs'."""
    lit: dict[str, list[bool]] = {}
    for rows in read.values():
        for at, end in enumerate(cut.ends):
            values = {str(p): v for p in rows.rows if (v := rows.value(p, end)) is not None}
            for name in Bar().above(values):
                lit.setdefault(name, [False] * len(cut.ends))[at] = True
    return lit


def _beside(facts: Facts, read: Mapping[str, Readings], place: Place, phase: Slow) -> Claim | None:
    """What its links counted in the slow phase, beside the median GPU's."""
    length_s, end = max(1, int(phase.ends - phase.begins)), float(int(phase.ends))
    best: tuple[float, str, Readings] | None = None
    for signal in read:
        rows = readings(instant(facts, f"increase({signal}[{length_s}s])", end))
        value = None if rows is None else rows.value(place, end)
        if rows is not None and value is not None and (best is None or value > best[0]):
            best = value, signal, rows
    if best is None or best[0] <= 0:
        return None
    value, signal, rows = best
    own = rows.cite(place, end, f"{COUNTERS[signal]} in the slow phase")
    others = usual(facts, f"increase({signal}[{length_s}s])", end, "the median GPU")
    beside = f", the median GPU {others.value:,.0f}" if others is not None else ""
    if own is None:
        return None
    return claim(f"{place} counted {value:,.0f} {COUNTERS[signal]} in the slow phase{beside}",
                 own, others)  # fmt: skip
