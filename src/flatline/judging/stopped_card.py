"""The cards of a host that worked, stopped, and held their memory on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from math import isfinite

from flatline.facts import Facts
from flatline.judging.by_steps import MOST_SLACK, spent
from flatline.judging.gpus import readings
from flatline.judging.timeline import instant
from flatline.model import Place

LOOK_S = 15.0
TOGETHER_S = 300.0
"""Cards whose memory is taken so near to one another may be one run's: its ranks load together."""
USED = "gpu_memory_used_bytes"


@dataclass(frozen=True, slots=True)
class Stopped:
    """Where, when it first and last worked and up to when it then held its memory (POSIX
    seconds)."""

    place: Place
    first: float
    last: float
    until: float


def stopped_cards(
    facts: Facts, activity: str, window: tuple[float, float], idle: float, held: float
) -> list[Stopped]:
    """Those that were above `idle` within the window and whose memory, in bytes, stayed at `held`
    or above from their last work on, to the window's end or to where it was given back."""
    start, end = (datetime.fromtimestamp(at, UTC) for at in window)
    worked, used = (
        readings(facts.series(signal, start=start, end=end, step_s=LOOK_S))
        for signal in (activity, USED)
    )
    if worked is None or used is None:
        return []
    found = []
    for place, row in worked.rows.items():
        at = [t for t, value in row.points() if isfinite(value) and value > idle]
        kept = used.rows.get(place)
        if not at or kept is None:
            continue
        after = [(t, value) for t, value in kept.points() if t >= at[-1] and isfinite(value)]
        until = at[-1]
        for t, value in after:
            if value < held:
                break
            until = t
        found.append(Stopped(place, at[0], at[-1], until))
    return found


def one_of_several(facts: Facts, card: Stopped, held: float) -> bool:
    """Whether another card of its host took its memory with it, and may be another rank's of one
    run; or gave it back as this one stopped, and may be the run's instead of it."""
    start, end = facts.window or (None, None)
    if start is None or end is None:
        return True
    used = readings(facts.series(USED, start=start, end=end, step_s=LOOK_S))
    taken = {
        place: next((t for t, value in row.points() if value >= held), None)
        for place, row in ({} if used is None else used.rows).items()
        if place.host == card.place.host
    }
    own = taken.pop(card.place, None)
    first = start.timestamp() + LOOK_S
    freed = any(
        before >= held > value and abs(t - card.last) <= TOGETHER_S
        for place, row in ({} if used is None else used.rows).items()
        if place in taken
        for (_, before), (t, value) in pairwise(row.points())
    )
    return (
        own is None
        or freed
        or any(
            at is not None and at > first and abs(at - own) <= TOGETHER_S for at in taken.values()
        )
    )


def as_long_as_said(facts: Facts, card: Stopped) -> bool:
    """Whether it worked about as long as the steps say they took together: the log of an undated
    run is then of this work."""
    track = facts.main_track(facts.last.n)
    known = None if track is None else spent(track, track.of_attempt(facts.last.n))
    if known is None or not known.seconds:
        return False
    lasted = card.last - card.first
    return abs(lasted - known.by[-1]) <= MOST_SLACK * lasted


def power_at_work(facts: Facts, card: Stopped) -> float | None:
    """What it drew on average from its first work to its last, in watts."""
    lasted = max(1, int(card.last - card.first))
    read = readings(instant(facts, f"avg_over_time(gpu_power_watts[{lasted}s])", card.last))
    return None if read is None else read.value(card.place, card.last)
