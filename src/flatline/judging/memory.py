"""How full the run's GPUs were, by the exporter's numbers, before an allocation failed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.gpus import readings
from flatline.judging.timeline import instant
from flatline.model import Claim, Place

BEFORE_S = 900
"""How long before the failure memory is looked at: a climb takes minutes, a sample seconds."""
FULL = 0.9
"""Of the device's memory. Below this the numbers say nothing: the allocation that failed, and a
spike between two samples, are in none of them."""


def filled(facts: Facts, at: datetime | None, culprits: Sequence[Place]) -> Claim | None:
    """That a GPU of the culprits' hosts (of any host where none is known) was nearly full."""
    needed = ("gpu_memory_used_bytes", "gpu_memory_total_bytes")
    if facts.window is None or not all(map(facts.measured, needed)):
        return None
    start, end = facts.window
    moment = min(end, at) if at is not None and at > start else end
    hosts = {place.host for place in culprits if place.host}
    query = (f"max_over_time(gpu_memory_used_bytes[{BEFORE_S}s])",
             f"max_over_time(gpu_memory_total_bytes[{BEFORE_S}s])")  # fmt: skip
    used, total = (readings(instant(facts, one, int(moment.timestamp()))) for one in query)
    if used is None or total is None:
        return None
    parts = {
        place: row.last / total.rows[place].last
        for place, row in used.rows.items()
        if place in total.rows and total.rows[place].last > 0
        and (not hosts or place.host in hosts)
    }  # fmt: skip
    fullest = max(parts, key=lambda place: (parts[place], str(place)), default=None)
    if fullest is None or parts[fullest] < FULL:
        return None
    cites = [
        read.cite(fullest, read.rows[fullest].times[-1], text)
        for read, text in ((used, "most memory in use"), (total, "memory there is"))
    ]
    return claim(
        f"{fullest} was {parts[fullest]:.0%} full within the {BEFORE_S // 60} minutes before, by"
        " the exporter's numbers", *cites,
    )  # fmt: skip
