"""
Ranks that never come to the rendezvous, or come under numbers that others have.

Where a launcher is not recognised each node numbers its processes from nought: ranks 0 to 3 come
twice and 4 to 7 never, and everybody waits.  Where a node was never started its ranks are not
heard of at all.  Only what is printed is judged, and only of a run that shows neither a complete
group, nor a step, nor any failure; that some are missing counts where something shows that the
others waited, for a log may have been cut off before they came.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from flatline.facts import LOG, Facts
from flatline.judging.claims import claim, name_places
from flatline.judging.classing import with_frames
from flatline.judging.crashes import failures
from flatline.judging.meeting import turned_away
from flatline.model import Claim, Crash, LogCite, Match, Place

MEMBER, COMPLETE = "ddp-member", "lightning-world-size"
LISTED = "squeue-table"
SHOWN, MOST_RANKS = 4, 100_000
WAITED_S = 600.0
"""Processes of one job come within minutes of one another; the rendezvous is given up after half
an hour (torch `default_pg_timeout`)."""
LISTED_LINES = 16
START_LINES = 5_000
_RANK = r"\brank[ =:#]{0,2}(\d{1,6})\b"
_GROUP = r"(?:init_process_group|process group|rendezvous|distributed init)\b"
_GOES = re.compile(rf"(?i){_RANK}[^\n]{{0,120}}?\b{_GROUP}|\b{_GROUP}[^\n]{{0,80}}?{_RANK}")
VAGUE = 0.3
"""A traceback whose end is cut off may be that of the wait."""
_ENDED = ("timeout", "cancelled")
_RUNS = re.compile(
    r"\b\d{3,12}(?:_\S{1,20})? .{1,200}? (?P<state>[A-Z]{1,2}) +"
    r"(?P<elapsed>(?:\d{1,3}-)?(?:\d{1,2}:){1,2}\d{2}) +\d{1,6} "
)


@dataclass(frozen=True, slots=True)
class Doubled:
    """What shows that ranks were numbered twice, with the first line that does."""

    shows: Claim
    first: LogCite


def numbered_twice(facts: Facts) -> Doubled | None:
    """None where every number came once, came again everywhere, or the group was complete."""
    said = [m for m in facts.tagged(MEMBER) if m.attempt == facts.last.n]
    worlds = {int(m.groups["key"]) for m in said}
    failed = any(f.strength >= VAGUE for f in failures(facts))
    if len(worlds) != 1 or came_further(facts) or failed or facts.exits:
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


@dataclass(frozen=True, slots=True)
class Absent:
    """The ranks that never came, and what shows that those which did waited for them."""

    ranks: tuple[int, ...]
    world: int
    shows: tuple[Claim, ...]
    first: LogCite


def never_came(facts: Facts) -> tuple[tuple[int, ...], tuple[Match, ...]]:
    """The ranks of which nothing is heard, and the lines of those that came, rank 0 and another
    among them: only the log of rank 0 tells whether the group was complete."""
    said = tuple(m for m in facts.tagged(MEMBER) if m.attempt == facts.last.n)
    worlds = {int(m.groups["key"]) for m in said}
    came = {int(m.groups["seq"]) for m in said}
    if len(worlds) != 1 or len(came) != len(said) or len(came) < 2 or 0 not in came:
        return (), ()
    if came_further(facts) or any(m.signature.id == COMPLETE for m in facts.matches):
        return (), ()
    return tuple(sorted(set(range(min(worlds.pop(), MOST_RANKS))) - came)), said


def said_to_go(facts: Facts, world: int) -> dict[int, LogCite]:
    """The ranks that say in words of their own that they set up the process group, each with the
    first line in which it does; none where a log is long enough to show more than a start."""
    out: dict[int, LogCite] = {}
    for read in facts.log_files(LOG):
        if read.lines > START_LINES:
            return {}
        for n, text in enumerate(facts.lines(read.source, 1, read.lines), 1):
            found = _GOES.search(text)
            rank = int(found[1] or found[2]) if found is not None else world
            if rank < world:
                out.setdefault(rank, LogCite(read.source, n, text, Place(rank=rank)))
    return out


def waited_for(facts: Facts) -> Absent | None:
    """None where all came, something else is known to have failed, or nothing shows a wait."""
    ranks, said = never_came(facts)
    if not ranks or failures(facts) or facts.exits:
        return None
    waited = _waited(facts, said[-1].cite)
    if waited is None:
        return None
    world = len(ranks) + len(said)
    text = (
        f"{len(said)} of {world} ranks went to the rendezvous;"
        f" {name_places([Place(rank=rank) for rank in ranks])} never did"
    )
    shows = (claim(text, *(m.cite for m in said[:SHOWN])), waited)
    return Absent(ranks, world, shows, said[0].cite)


def _waited(facts: Facts, last: LogCite) -> Claim | None:
    """What shows that time went by, or that somebody ended the wait."""
    ends = [cite.at for cite in facts.last_lines.values() if cite.at is not None]
    now = max((*ends, *filter(None, (facts.now,))), default=None)
    if last.at is not None and now is not None:
        since_s = (now - last.at).total_seconds()
        if since_s < WAITED_S:
            return None
        return claim(f"Nothing of it followed in {since_s / 60:.0f} minutes", last)
    job = facts.job
    if job is not None and job.started_at is not None:
        ended = job.ended_at or facts.now
        held_s = (ended - job.started_at).total_seconds() if ended is not None else 0.0
        if held_s >= WAITED_S and job.disposition != "completed":
            return claim(f"The job held its nodes for {held_s / 60:.0f} minutes", job.cite)
        return None
    listed = [row for m in facts.matches if m.signature.id == LISTED
              for row in _listed(facts, m.cite)]  # fmt: skip
    if listed and min(seconds for seconds, _ in listed) >= WAITED_S:
        return claim("The job had run for longer than any process takes to come", listed[-1][1])
    if facts.disposition in _ENDED:
        tag = "time-limit" if facts.disposition == "timeout" else "cancelled"
        cites = [m.cite for m in facts.standing(tag)]
        return claim("Nothing of it followed until the job was ended", *cites) if cites else None
    return None


def _listed(facts: Facts, header: LogCite) -> Iterator[tuple[float, LogCite]]:
    """The jobs that squeue says run, and for how long, in the rows below its header."""
    for line in range(header.line + 1, header.line + 1 + LISTED_LINES):
        text = facts.text(header.source, line)
        row = _RUNS.search(text)
        if row is None:
            break
        if row["state"] == "R":
            yield _seconds(row["elapsed"]), LogCite(header.source, line, text, header.place)


def _seconds(elapsed: str) -> float:
    """Of Slurm's days-hours:minutes:seconds."""
    days, _, rest = elapsed.rpartition("-")
    total = 0
    for part in rest.split(":"):
        total = 60 * total + int(part)
    return 86_400.0 * int(days or 0) + total


def came_further(facts: Facts) -> bool:
    """Whether steps were made or the run came to its end, however its ranks met."""
    said = (*facts.markers_of("finished"), *facts.tagged("end-ok"))
    return facts.has_progress or bool(said) or facts.disposition == "completed"


def turned_away_first(facts: Facts) -> Crash | None:
    """The first exception of a rank that lost its connection while the process group was being
    made, of a run that shows no other failure: only victims are heard of."""
    if came_further(facts) or any(failure.fatal for failure in failures(facts)):
        return None
    if any(event.signal for event in facts.exits):
        return None
    raised = (with_frames(facts, c) for c in facts.crashes
              if c.attempt == facts.last.n and not c.caught)  # fmt: skip
    found = [crash for crash in raised if turned_away(crash)]
    first = facts.earliest(crash.cite for crash in found)
    return next((crash for crash in found if crash.cite == first), None)
