"""How full the run's GPUs were, by the exporter's numbers, before an allocation failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from flatline.facts import Facts
from flatline.judging.addresses import local_rank
from flatline.judging.claims import claim
from flatline.judging.gpus import Readings, readings
from flatline.judging.timeline import instant
from flatline.model import Claim, Place

BEFORE_S = 900
"""How long before the failure memory is looked at: a climb takes minutes, a sample seconds."""
FULL = 0.9
"""Of the device's memory. Below this the numbers say nothing: the allocation that failed, and a
spike between two samples, are in none of them."""

ROOMY = 0.8
"""Of the device's memory: below it a GPU had room to spare beside one that was full."""

TAKES = "placement-device-taken"
WHOLE = 1.02
"""Of what the allocator says the card has; one that holds more is another card's size, or what was
said is no card's."""


@dataclass(frozen=True, slots=True)
class Filled:
    """The GPUs that were nearly full, the fullest first, and what says so of that one."""

    gpus: tuple[Place, ...]
    shows: Claim
    alone: bool
    """Whether every other GPU of the run was read, and had room."""
    alike: Claim | None = None
    """That every GPU of all hosts of the run was nearly full."""
    only: str | None = None
    """The one host whose GPUs were read, where the run is known to have no other."""


def filled(
    facts: Facts,
    at: datetime | None,
    culprits: Sequence[Place],
    said_bytes: float | None = None,
    until: datetime | None = None,
) -> Filled | None:
    """
    Which GPUs of the culprits' hosts (of any host where none is known) were nearly full.

    `said_bytes` is what the allocator says the card has, for exporters that give no total: the
    card that failed has that much, so that one of another size cannot be taken for it.  `until` is
    when it was at the latest, where `at` is when it was at the earliest; where nothing dates it,
    the only one that was ever full is it.
    """
    if facts.window is None or not facts.measured("gpu_memory_used_bytes"):
        return None
    moment, later_s = _when(facts, facts.window, at, until)
    undated = at is None and facts.last.ended_at is None
    before_s = int(moment - facts.window[0].timestamp()) if undated else BEFORE_S
    hosts = {facts.node_of(place.host) for place in culprits if place.host}
    used, total, every = _shares(facts, moment + later_s, before_s + later_s, said_bytes)
    if used is None:
        return None
    parts = {place: part for place, part in every.items()
             if not hosts or facts.node_of(place.host or "") in hosts}  # fmt: skip
    full = sorted((place for place, part in parts.items() if FULL <= part <= WHOLE),
                  key=lambda place: (-parts[place], str(place)))  # fmt: skip
    if not full:
        return None
    fullest = full[0]
    cites = [
        read.cite(fullest, read.rows[fullest].times[-1], text)
        for read, text in ((used, "most memory in use"), (total, "memory there is"))
        if read is not None
    ]
    when = "at some time" if undated else f"within the {BEFORE_S // 60} minutes before"
    text = (
        f"{fullest} was {parts[fullest]:.0%} full {when}"
        f"{', or by its end' if later_s else ''}, by the exporter's numbers"
    )
    room = all(parts[place] < ROOMY for place in parts if place != fullest)
    if undated and not room:
        return None  # which of them it was then, and which later, nothing tells
    read = {facts.node_of(place.host or "") for place in parts}
    alone = room and read >= (hosts or set(facts.hosts))
    nodes = {facts.node_of(place.host or "") for place in every}
    own = [part for place, part in every.items()
           if not facts.hosts or facts.node_of(place.host or "") in facts.hosts]  # fmt: skip
    alike = None
    if len(own) > 1 and min(own) >= FULL and nodes >= set(facts.hosts):
        alike = claim(
            f"All {len(own)} GPUs of the run were at least {min(own):.0%} full then: the one that"
            " failed is where it came first, not a place apart.", *cites,
        )  # fmt: skip
    only = next(iter(nodes)) if len(nodes) == 1 and set(facts.hosts) <= nodes else None
    return Filled(tuple(full), claim(text, *cites), alone, alike, only)


def _shares(
    facts: Facts, until: int, length_s: int, said_bytes: float | None
) -> tuple[Readings | None, Readings | None, dict[Place, float]]:
    """The most that was in use of every card and what it has, and the part of it that this is;
    nothing in use where neither an exporter nor the allocator says what there is."""
    used, total = (
        readings(instant(facts, f"max_over_time({one}[{max(1, length_s)}s])", until))
        for one in ("gpu_memory_used_bytes", "gpu_memory_total_bytes")
    )
    if used is None or (total is None and not said_bytes):
        return None, None, {}
    whole = {
        place: said_bytes or 0.0 if total is None else total.rows[place].last
        for place in (used if total is None else total).rows
    }
    return used, total, {place: row.last / whole[place] for place, row in used.rows.items()
                         if whole.get(place, 0.0) > 0}  # fmt: skip


def _when(
    facts: Facts, window: tuple[datetime, datetime], at: datetime | None, until: datetime | None
) -> tuple[int, int]:
    """When it failed at the earliest (POSIX seconds), and how much later it may have been."""
    start, end = window
    at = at or facts.last.ended_at
    moment = min(end, at) if at is not None and at > start else end
    latest = moment if until is None else max(moment, min(end, until))
    return int(moment.timestamp()), int((latest - moment).total_seconds())


def counted_card(facts: Facts, place: Place, said: str) -> Place | None:
    """A rank on a known host with the card of this number, where the job had every card that its
    hosts have and the rank's number counts to it, there or by its launcher: one that was given a
    card alone calls it 0."""
    if facts.window is None or place.host is None or place.rank is None or facts.job is None:
        return None
    host, end = facts.node_of(place.host), int(facts.window[1].timestamp())
    span = max(1, end - int(facts.window[0].timestamp()))
    read = readings(instant(facts, f"max_over_time(gpu_memory_used_bytes[{span}s])", end))
    here = {p.gpu for p in read.rows if facts.node_of(p.host or "") == host} if read else set()
    count = facts.job.gpus or facts.world_size
    if count is None and len(facts.hosts) == 1:  # each process takes one of those it sees
        count = len({m.groups["key"] for m in facts.matches if m.signature.id == TAKES})
    own = count == len(here) * len(facts.hosts)
    local = place.rank % len(here) if own else None
    if count is None:
        local = local_rank(facts, place.rank, len(here))
    if said not in here or not 0 < int(said) == local:
        return None
    return replace(place, gpu=said)
