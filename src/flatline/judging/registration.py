"""
Ranks that go to the rendezvous under numbers that others have, while others never come.

Where a launcher is not recognised each node numbers its processes from nought: ranks 0 to 3 come
twice and 4 to 7 never, and everybody waits.  Only what is printed is judged, and only of a run
that shows neither a complete group, nor a step, nor any failure.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.crashes import failures
from flatline.model import Claim, Crash, LogCite

MEMBER, COMPLETE = "ddp-member", "lightning-world-size"
SHOWN = 4


@dataclass(frozen=True, slots=True)
class Doubled:
    """What shows that ranks were numbered twice, with the first line that does."""

    shows: Claim
    first: LogCite


def numbered_twice(facts: Facts) -> Doubled | None:
    """None where every number came once, came again everywhere, or the group was complete."""
    said = [m for m in facts.tagged(MEMBER) if m.attempt == facts.last.n]
    worlds = {int(m.groups["key"]) for m in said}
    if len(worlds) != 1 or _came_further(facts) or failures(facts) or facts.exits:
        return None
    if any(m.signature.id == COMPLETE for m in facts.matches):
        return None
    world = worlds.pop()
    times = Counter(int(m.groups["seq"]) for m in said)
    again = [rank for rank, count in sorted(times.items()) if count > 1]
    if not again or len(times) >= world or len(said) > world:
        return None
    cites = [m.cite for m in said if int(m.groups["seq"]) == again[0]]
    text = (
        f"{len(said)} processes of a world of {world} went to the rendezvous under"
        f" {len(times)} numbers: rank {again[0]} came {times[again[0]]} times,"
        f" {world - len(times)} ranks never"
    )
    return Doubled(claim(text, *cites[:SHOWN]), cites[0])


def _came_further(facts: Facts) -> bool:
    """Whether steps were made or the run came to its end, however its ranks met."""
    said = (*facts.markers_of("finished"), *facts.tagged("end-ok"))
    return facts.has_progress or bool(said) or facts.disposition == "completed"


_AT_THE_DOOR = ("init_process_group", "_store_based_barrier", "_create_c10d_store")
_BY_ITS_WORDS = re.compile(r"retrieving ncclUniqueId from \[\d{1,6}\] via c10d key-value store")
_CONNECTION = re.compile(
    r"\bConnection (?:reset by peer|refused|closed|timed out|was likely closed)|\bBroken pipe\b"
    r"|\bfailed to recv\b|\brecvValue failed\b|\bconnect\(\) timed out"
)


def turned_away(facts: Facts) -> Crash | None:
    """The first exception of a rank that lost its connection while the process group was being
    made, of a run that shows no other failure: only victims are heard of."""
    if _came_further(facts) or any(failure.fatal for failure in failures(facts)):
        return None
    if any(event.signal for event in facts.exits):
        return None
    found = [c for c in facts.crashes if c.attempt == facts.last.n and not c.caught and _away(c)]
    first = facts.earliest(crash.cite for crash in found)
    return next((crash for crash in found if crash.cite == first), None)


def _away(crash: Crash) -> bool:
    at_the_door = any(frame.function in _AT_THE_DOOR for frame in crash.frames)
    return bool(_CONNECTION.search(crash.message)) and (
        at_the_door or _BY_ITS_WORDS.search(crash.message) is not None
    )
