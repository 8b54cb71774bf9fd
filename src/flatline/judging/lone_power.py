"""
One GPU that draws more than every other throughout a run, at their clock and as busy as they.

Where nothing measures what the SMs do, power tells who computes and who waits: a card that waits
in a collective runs a kernel all the time and draws far less than one that computes.  One that
computes longer than all others in each step draws more than they from the first step on.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from flatline.facts import Facts
from flatline.judging.apart import Fleet, fleet
from flatline.judging.claims import claim
from flatline.judging.gpus import readings
from flatline.judging.throughput import Course
from flatline.judging.timeline import instant, usual
from flatline.model import Claim, Place

POWER, SMS = "gpu_power_watts", "gpu_sm_active_ratio"
BUSY = ("gpu_utilization_ratio", "gpu_engine_active_ratio")
LEAST_GPUS = 8
MORE, ALIKE, NO_LESS = 1.15, 1.06, 0.9
"""Times the median card's power: what it must draw, and what every other one stays within.  Cards
of one model differ by some per cent at the same work."""
ALWAYS = 0.9
"""Of the stretches it must stand above all others."""
APART, NEARER, TIMES = 0.15, 0.06, 4.0
"""Of the median card's power, by which the card of a rank that something else names must differ,
to either side: a slow card waits less and works less a second.  Less is enough where it differs
by so many times as much as any other card does."""
AS_BUSY = 0.9
"""Of the time each card must have a kernel: one that has gaps has less to do."""
HOTTER = 1.33
"""Times the median card's temperature: a card that is hotter draws more for the same work."""
SAME = {"gpu_sm_clock_hertz": 0.03, "gpu_memory_used_bytes": 0.15, "gpu_power_limit_watts": 0.01}
"""How near it must be to the median card in what else makes a card draw more: its clock, a larger
part of the model, another limit.  Its power limit is not asked where it is not measured."""


@dataclass(frozen=True, slots=True)
class Drew:
    """The card, how much more it drew, and what shows it."""

    place: Place
    part: float
    shows: Claim


def drew_more(facts: Facts, run: Course) -> Drew | None:
    """None where the SMs are measured, which tell more, the pace fell, or it does not stand alone;
    nor of a host's first card or its last, whose ranks have duties, or a stage, of their own."""
    every = None if run.slow or facts.measured(SMS) or not facts.hosts else fleet(
        facts, run, POWER)  # fmt: skip
    ranks = None if every is None else every.alike()
    if ranks is None or len(ranks.read.rows) < LEAST_GPUS:
        return None
    if {facts.node_of(place.host or "") for place in ranks.read.rows} != set(facts.hosts):
        return None
    levels = _means(facts, run, POWER)
    models = {row.labels.get("model") for row in ranks.read.rows.values()}
    if levels.keys() != ranks.read.rows.keys() or len(models) != 1:
        return None
    middle = median(levels.values())
    found = max(levels, key=lambda place: (levels[place], str(place)))
    others = [level for place, level in levels.items() if place != found]
    if levels[found] < MORE * middle or not NO_LESS * middle <= min(others):
        return None
    if max(others) > ALIKE * middle or not _always(ranks, found):
        return None
    own = [place.gpu or "" for place in levels if place.host == found.host]
    numbers = [int(gpu) for gpu in own if gpu.isdecimal()]
    if found.gpu in ("0", str(max(numbers, default=0))):
        return None
    return _told(facts, run, found) if _like_the_others(facts, run, found) else None


def drew_apart(facts: Facts, run: Course) -> Drew | None:
    """The one card whose power is unlike that of all others, which are alike, from the first step
    to the last.  By itself it tells nothing: it may have more to do, or less."""
    every = fleet(facts, run, POWER) if facts.hosts and facts.measured(POWER) else None
    ranks = None if every is None else every.alike()
    if ranks is None or len(ranks.read.rows) < LEAST_GPUS:
        return None
    levels = _means(facts, run, POWER)
    if levels.keys() != ranks.read.rows.keys():
        return None
    middle = median(levels.values())
    found = max(levels, key=lambda place: (abs(levels[place] - middle), str(place)))
    others = [level for place, level in levels.items() if place != found]
    alike = middle / ALIKE <= min(others) and max(others) <= ALIKE * middle
    sign = 1 if levels[found] > middle else -1
    spread = max(abs(level - middle) for level in others)
    least = min(APART * middle, max(NEARER * middle, TIMES * spread))
    if not alike or abs(levels[found] - middle) < least:
        return None
    return _told(facts, run, found) if _always(ranks, found, sign) else None


def _always(ranks: Fleet, found: Place, sign: int = 1) -> bool:
    """Whether the card stands above all others in nearly every stretch that tells of all; below
    them where the sign is negative."""
    import numpy as np  # where numbers were read alone

    told = ranks.values[:, np.isfinite(ranks.values).all(axis=0)]
    row = [*ranks.read.rows].index(found)
    return bool(told.size) and float(((sign * told).argmax(axis=0) == row).mean()) >= ALWAYS


def _like_the_others(facts: Facts, run: Course, found: Place) -> bool:
    busy = next((read for name in BUSY if (read := _means(facts, run, name))), None)
    if busy is None or min(busy.values()) < AS_BUSY or found not in busy:
        return False
    for signal, near in SAME.items():
        read = {place: value for place, value in _means(facts, run, signal).items() if value}
        if found not in read:
            if signal == "gpu_power_limit_watts":
                continue
            return False
        middle = median(read.values())
        if abs(read[found] - middle) > near * middle:
            return False
    heat = _means(facts, run, "gpu_temperature_celsius")
    return found not in heat or heat[found] <= HOTTER * median(heat.values())


def _means(facts: Facts, run: Course, signal: str) -> dict[Place, float]:
    """Of every card over the run; empty where it was not measured."""
    if not facts.measured(signal):
        return {}
    query, end = _over(run, signal)
    read = readings(instant(facts, query, end))
    return {} if read is None else {
        place: value for place in read.rows if (value := read.value(place, end)) is not None
    }  # fmt: skip


def _over(run: Course, signal: str) -> tuple[str, float]:
    begins, ends = (int(moment) for moment in run.pace.span)
    return f"avg_over_time({signal}[{max(1, ends - begins)}s])", float(ends)


def _told(facts: Facts, run: Course, found: Place) -> Drew | None:
    query, end = _over(run, POWER)
    read = readings(instant(facts, query, end))
    own = None if read is None else read.cite(found, end, "power, over the run")
    others = usual(facts, query, end, "power of the median GPU")
    if own is None or others is None:
        return None
    text = f"{found} drew {own.value:.0f} W all through the run, the median GPU {others.value:.0f}"
    return Drew(found, own.value / others.value - 1.0, claim(text, own, others))
