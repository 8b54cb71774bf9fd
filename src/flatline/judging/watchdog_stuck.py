"""
Ranks that PyTorch's heartbeat monitor aborted while they made steps.

The monitor ends a process whose NCCL watchdog thread gave no sign for so long.  In a hang the
steps stop before that time begins; where they went on to its end, only the thread was held up.
An evaluation makes no steps that are dated: its bar, drawn on behind the monitor's words, says as
much by the time that it shows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from flatline.facts import Facts
from flatline.judging.claims import claim, number
from flatline.judging.heartbeats import STEPS_ENOUGH, made_until
from flatline.model import Claim, LogCite, Match, Place

STUCK = "nccl-watchdog-stuck"
DEFAULT_S = 480.0
"""TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC where no line states it (ProcessGroupNCCL.hpp)."""
EARLY_PART = 0.5
"""Of the time without a heartbeat, in which steps must have begun: those after a long pause at its
end alone may be what the thread woke to."""
DRAWN_BEHIND = 2
"""Passes of a bar behind the monitor's first words: one may have been under way."""
BELOW = 3
"""Lines below the monitor's last, where a bar may be drawn as it ends the process."""
_SECONDS = re.compile(r"watchdog got stuck for (\d{1,6}) seconds")
_RANK = re.compile(r"\bRank (\d{1,6})\]")
_BAR = re.compile(r"\d{1,3}%\|[^|]{0,80}\| (\d{1,9})/(\d{1,9}) \[((?:\d{1,4}:)?\d{1,2}:\d\d)<")


@dataclass(frozen=True, slots=True)
class Aborted:
    """The first lines of the monitors, whose they are, their own steps, and when the first was."""

    lines: tuple[Match, ...]
    places: tuple[Place, ...]
    shows: tuple[Claim, ...]
    at: datetime | None
    own: bool = True
    """Whether dated steps show it, not a bar."""


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
    shown = [made_through(facts, rank, match, seconds) for rank, match in first.items()]
    bar = _bar(facts, said, seconds) if shown == [None] else None
    proofs = [one for one in (*shown, bar) if one is not None]
    times = [m.cite.at for m in first.values() if m.cite.at is not None]
    if len(proofs) < len(first):
        return None
    places = tuple(facts.on_host(match.cite.place) for match in first.values())
    at = min(times, default=None)
    return Aborted(tuple(first.values()), places, tuple(proofs), at, bar is None)


def made_through(facts: Facts, rank: int | None, match: Match, seconds: float) -> Claim | None:
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


def _bar(facts: Facts, said: list[Match], seconds: float) -> Claim | None:
    """A bar of its own, drawn on behind the monitor's first words at the pace that it had kept
    all through that time.  Of several ranks of one log it is the first that draws."""
    cite, last = said[0].cite, said[-1].cite
    # A bar without an end stands before a rank's own label.
    ranks = {rank for m in said for rank in _RANK.findall(m.cite.text)}
    if ranks != {"0"} or {m.cite.source for m in said} != {cite.source}:
        return None
    above = _drawn(facts, cite.source, max(1, cite.line - 1), cite.line)
    below = _drawn(facts, cite.source, cite.line + 1, last.line + BELOW)
    if not above or not below:
        return None
    (line, n, total, spent_s), (end, reached, whole, then_s) = above[-1], below[-1]
    if whole != total or reached - n < DRAWN_BEHIND or then_s <= spent_s or n < STEPS_ENOUGH:
        return None
    stood_s = spent_s - n * (then_s - spent_s) / (reached - n)
    if spent_s < EARLY_PART * seconds or stood_s > EARLY_PART * seconds:
        return None
    text = (f"A bar of rank 0 went from {n} to {reached} of {total} behind the monitor's first"
            f" words, as fast as in the {spent_s:.0f} s before")  # fmt: skip
    cites = (LogCite(cite.source, at, facts.text(cite.source, at), cite.place)
             for at in (line, end))  # fmt: skip
    return claim(text, *cites)


def _drawn(facts: Facts, source: str, first: int, last: int) -> list[tuple[int, int, int, float]]:
    """Where bars stand on these lines, how far they were, of how many, and after how long."""
    found = []
    for line, text in enumerate(facts.lines(source, first, last - first + 1), first):
        for bar in _BAR.finditer(text):
            hours, minutes, seconds = f"0:{bar[3]}".rsplit(":", 2)
            shown_s = 3600 * int(hours.rpartition(":")[2]) + 60 * int(minutes) + int(seconds)
            found.append((line, int(bar[1]), int(bar[2]), float(shown_s)))
    return found
