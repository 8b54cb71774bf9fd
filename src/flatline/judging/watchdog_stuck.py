"""
Ranks that PyTorch's heartbeat monitor aborted while they made steps.

The monitor ends a process whose NCCL watchdog thread gave no sign for so long.  In a hang the
steps stop before that time begins; where they went on to its end, only the thread was held up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from flatline.facts import Facts
from flatline.judging.claims import claim, number
from flatline.judging.heartbeats import STEPS_ENOUGH, made_until
from flatline.model import Claim, Match, Place

STUCK = "nccl-watchdog-stuck"
DEFAULT_S = 480.0
"""TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC where no line states it (ProcessGroupNCCL.hpp)."""
EARLY_PART = 0.5
"""Of the time without a heartbeat, in which steps must have begun: those after a long pause at its
end alone may be what the thread woke to."""
_SECONDS = re.compile(r"watchdog got stuck for (\d{1,6}) seconds")


@dataclass(frozen=True, slots=True)
class Aborted:
    """The first lines of the monitors, whose they are, their own steps, and when the first was."""

    lines: tuple[Match, ...]
    places: tuple[Place, ...]
    shows: tuple[Claim, ...]
    at: datetime


def watchdog_stuck(facts: Facts) -> Aborted | None:
    """None where one of those ranks had stopped, or a collective timed out."""
    said = [m for m in facts.matches if m.signature.id == STUCK and m.attempt == facts.last.n]
    if not said or any(
        m.signature.role == "root" and "timeout" in m.signature.tags for m in facts.matches
    ):
        return None
    first: dict[int | None, Match] = {}
    for match in said:
        first.setdefault(number(match.cite.place), match)
    stated = next(filter(None, (_SECONDS.search(m.cite.text) for m in said)), None)
    seconds = float(stated[1]) if stated is not None else DEFAULT_S
    shown = [_steps(facts, rank, match, seconds) for rank, match in first.items()]
    proofs = [one for one in shown if one is not None]
    times = [m.cite.at for m in first.values() if m.cite.at is not None]
    if len(proofs) < len(first):
        return None
    places = tuple(facts.on_host(match.cite.place) for match in first.values())
    return Aborted(tuple(first.values()), places, tuple(proofs), min(times))


def _steps(facts: Facts, rank: int | None, match: Match, seconds: float) -> Claim | None:
    """Its own dated steps through that time."""
    at = match.cite.at
    if rank is None or at is None or match.cite.at_assumed:
        return None
    for track in facts.tracks:
        made = None
        if number(track.place) == rank:
            made = made_until(facts, track, at, seconds)
        if made is None or made[0].at is None:
            continue
        since = at - timedelta(seconds=seconds)
        times = (track.time(i) for i in range(len(track)))
        inside = sum(1 for one in times if one is not None and since <= one <= at)
        if inside >= STEPS_ENOUGH and made[0].at <= since + timedelta(
            seconds=EARLY_PART * seconds
        ):
            text = f"Rank {rank} made steps all through the {seconds:.0f} s without a heartbeat"
            return claim(text, *made)
    return None
