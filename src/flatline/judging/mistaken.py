"""
A node that Ray gave up while it was at work, by what its own raylet wrote.

A raylet that finds itself given up says so and leaves; so does one whose host stood still for a
minute.  What it wrote between, by its own clock, tells the two apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.model import Claim, LogCite, Match, Place

TAG, GIVEN_UP = "ray-mistaken", "ray-node-lost"
WINDOW_S = 30.0
"""`num_heartbeats_timeout` of 300 in tenths of a second (Ray 1.x); five health checks three
seconds apart, of ten seconds at most each (Ray 2.x, ray_config_def.h)."""
BACK, LEAST = 400, 2
"""Lines looked at above its leave, and those that show that it was at work."""
_STAMP = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3} \w ")


@dataclass(frozen=True, slots=True)
class Mistaken:
    """The line a raylet left with, what it wrote in the time in which it was not heard, and the
    lines by which its node was given up."""

    left: Match
    wrote: Claim
    given_up: tuple[Match, ...]

    @property
    def places(self) -> tuple[Place, ...]:
        """The node, where it is named."""
        hosts = {m.groups["host"] for m in self.given_up if m.groups.get("host")}
        if len(hosts) == 1:
            return (Place(host=hosts.pop()),)
        return (self.left.cite.place,) if self.left.cite.place else ()


def mistaken(facts: Facts) -> Mistaken | None:
    """The first node that was given up while its raylet was at work."""
    for left in facts.standing(TAG):
        wrote = _wrote(facts, left.cite)
        if len(wrote) >= LEAST:
            text = "The raylet of the node wrote lines of its own inside the window"
            shown = claim(text, wrote[0], wrote[-1])
            return Mistaken(left, shown, facts.standing(GIVEN_UP))
    return None


def _wrote(facts: Facts, leave: LogCite) -> list[LogCite]:
    """Its lines of the window before it left, oldest first."""
    end = _time(leave.text)
    if end is None:
        return []
    first = max(1, leave.line - BACK)
    found = []
    for number, text in enumerate(facts.lines(leave.source, first, leave.line - first), first):
        at = _time(text)
        if at is not None and timedelta() <= end - at <= timedelta(seconds=WINDOW_S):
            found.append(LogCite(leave.source, number, facts.text(leave.source, number),
                                 leave.place))  # fmt: skip
    return found


def _time(text: str) -> datetime | None:
    stamp = _STAMP.search(text)
    try:
        return datetime.fromisoformat(stamp[1]) if stamp else None
    except ValueError:
        return None
