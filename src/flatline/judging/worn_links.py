"""
GPUs whose links err while the run is slow, and then alone.

NVLink and PCIe send again what arrives damaged; each retry is time in which every collective over
that link waits.  A few retries are normal on a sound link, so only errors far above the other
GPUs' count, and only where their bursts make up the slow phases (`judging.bursts`), or where the
run was slower in them than around them (`judging.anchored`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flatline.facts import Facts
from flatline.judging.anchored import Anchored, anchored, finest
from flatline.judging.bursts import Bar, align, marked
from flatline.judging.claims import claim
from flatline.judging.gpus import Readings, readings
from flatline.judging.throughput import Slow, course, shown
from flatline.judging.timeline import Timeline, instant, timeline, usual
from flatline.model import Claim, Place
from flatline.series.answer import by_exporter, grid

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
    """GPUs with such a link, most bursts first, what shows it, and by what part throughput was
    lower from `begins` (POSIX seconds) on, at its worst."""

    places: tuple[Place, ...]
    begins: float
    lower: float
    shows: tuple[Claim, ...]
    implies: Claim
    strength: float
    most: float = 1.0
    anchored: bool = False
    """Whether it shows at the moments of the errors alone, and in no phase of the pace."""


def worn_links(facts: Facts) -> Worn | None:
    """None where nothing was slow or measured, none stands apart, or chance explains it."""
    known = [signal for signal in COUNTERS if facts.measured(signal)]
    run = course(facts) if known else None
    cut = (
        None if run is None
        else timeline(facts, known, run.pace.span, run.stretch_s)
    )  # fmt: skip
    if run is None or cut is None:
        return None
    read = _read(facts, known, cut)
    lit = _lit(read, cut)
    found = align(lit, run.low(cut))
    if found is None:
        at = anchored(run.pace, cut, lit)
        fine = finest(facts, known, run.pace, cut) if at is None and lit else None
        if fine is not None:
            at = anchored(run.pace, fine, _lit(_read(facts, known, fine), fine), cuts=2)
        return _by_the_counters(facts, read, at)
    places = _named(read, found.hosts)
    slow = [phase for phase in run.slow if _bursts(phase, cut, lit, found.hosts)]
    worst = min(slow, key=lambda phase: phase.part)
    shows = _all_beside(facts, read, dict.fromkeys(places, worst), "the slow phase")
    if not shows:
        return None
    chance = claim(
        f"Their bursts cover {found.recall:.0%} of the slow time; by chance phases meet so well in"
        f" {found.chance:.1%} of random cuts.",
        *(cite for one in shows for cite in one.cites),
    )
    phases = tuple(shown(facts, run, phase) for phase in slow[:_SHOWN])
    strength = 0.85 if len(slow) > 1 else 0.75
    return Worn(places, slow[0].begins, 1 - worst.part, (*shows, *phases), chance, strength)


def _bursts(
    phase: Slow, cut: Timeline, lit: Mapping[str, Sequence[bool]], names: Sequence[str]
) -> bool:
    """Whether one of these burst in a phase: another may be slow for a cause of its own."""
    return any(
        lit[name][at] for name in names for at, end in enumerate(cut.ends)
        if phase.begins <= end - cut.length_s / 2 <= phase.ends
    )  # fmt: skip


def _read(facts: Facts, known: Sequence[str], cut: Timeline) -> dict[str, Readings]:
    asked = {signal: readings(cut.ask(facts, f"increase({signal}[w])")) for signal in known}
    return {signal: rows for signal, rows in asked.items() if rows is not None}


def _by_the_counters(
    facts: Facts, read: Mapping[str, Readings], found: Anchored | None
) -> Worn | None:
    """Where the pace alone shows no phase, or others: asked at the moments of the errors."""
    places = () if found is None else _named(read, found.places)
    if found is None or not places:
        return None
    bursts = {place: found.longest[str(place)][0] for place in places}
    shows = _all_beside(facts, read, bursts, "its longest burst")
    if not shows:
        return None
    shows = (*shows, found.shown(facts))
    return Worn(
        places,
        found.begins,
        found.lower,
        shows,
        found.told(shows),
        found.strength,
        found.most,
        anchored=True,
    )


def _named(read: Mapping[str, Readings], names: Sequence[str]) -> tuple[Place, ...]:
    """The GPUs of these names; none where they are too many for a link's fault."""
    named = {str(place): place for rows in read.values() for place in rows.rows}
    few = len(names) <= max(1.0, MOST_SHARE * len(named))
    return tuple(named[name] for name in names) if few else ()


def _all_beside(
    facts: Facts, read: Mapping[str, Readings], phases: Mapping[Place, Slow], when: str
) -> tuple[Claim, ...]:
    told = (_beside(facts, read, *one, when) for one in [*phases.items()][:_SHOWN])
    return tuple(one for one in told if one is not None)


def _lit(read: Mapping[str, Readings], cut: Timeline) -> dict[str, list[bool]]:
    """Per GPU and stretch whether any of its links' counters rose far above the other GPUs' that
    the same exporter reads."""
    laid = ((gpus, grid([signal.rows[gpu] for gpu in gpus], cut.ends))
            for signal in read.values() for gpus in by_exporter(signal.rows).values())  # fmt: skip
    return {str(place): marks for place, marks in marked(laid, Bar().above).items()}


def _beside(
    facts: Facts, read: Mapping[str, Readings], place: Place, phase: Slow, when: str
) -> Claim | None:
    """What its links counted in a phase, beside the median GPU's."""
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
    own = rows.cite(place, end, f"{COUNTERS[signal]} in {when}")
    others = usual(facts, f"increase({signal}[{length_s}s])", end, "the median GPU")
    beside = f", the median GPU {others.value:,.0f}" if others is not None else ""
    if own is None:
        return None
    return claim(f"{place} counted {value:,.0f} {COUNTERS[signal]} in {when}{beside}",
                 own, others)  # fmt: skip
