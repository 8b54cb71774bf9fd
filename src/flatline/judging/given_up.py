"""
Somebody's Ctrl-C that met the program where its ranks meet: it waited for others there.

Whoever starts a program may stop it at once for a wrong argument, so that it counts how long it
had waited: by the dates around the traceback, the job's record or what the shell's `time` says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.crashes import failures
from flatline.judging.meeting import at_the_door
from flatline.judging.registration import COMPLETE, MEMBER, SHOWN, WAITED_S, came_further
from flatline.judging.still_trying import INTERRUPTED
from flatline.judging.wrappers import is_interrupt
from flatline.logs.clock import Clock
from flatline.model import Cite, Claim, Crash, LogCite

ABOVE, BEHIND = 40, 12
"""Lines before the traceback and behind it in which something is looked for that tells of time."""
_TOOK = re.compile(r"\s{0,8}real\s{1,4}(?:(\d{1,4})h)?(\d{1,5})m\d{1,2}(?:[.,]\d{1,6})?s\s*$")


@dataclass(frozen=True, slots=True)
class GivenUp:
    """What shows it, and whether it is known to have waited for longer than ranks take to come."""

    shows: tuple[Claim, ...]
    first: LogCite
    lasted: bool


def given_up(facts: Facts) -> GivenUp | None:
    """None where the group was complete, something failed, or it had hardly waited."""
    if came_further(facts) or facts.disposition != "cancelled" or facts.exits:
        return None
    if failures(facts) or any(m.signature.id == COMPLETE for m in facts.matches):
        return None
    crash = next((crash for crash in facts.crashes if crash.attempt == facts.last.n
                  and is_interrupt(crash) and at_the_door(crash)), None)  # fmt: skip
    if crash is None:
        return None
    seconds, cites = _waited(facts, crash) or (None, ())
    if seconds is not None and seconds < INTERRUPTED.total_seconds():
        return None
    said = [m for m in facts.tagged(MEMBER) if m.attempt == facts.last.n]
    came = len({m.groups["seq"] for m in said})
    shows = [claim("It was interrupted in the call in which the ranks meet", crash.cite)]
    if said:
        text = f"Of {said[0].groups['key']} ranks {came} are heard of on the way there"
        shows.append(claim(text, *(m.cite for m in said[:SHOWN])))
    if seconds is not None:
        shows.append(claim(f"By then it had run for {seconds / 60:.0f} minutes", *cites))
    return GivenUp(tuple(shows), crash.cite, seconds is not None and seconds >= WAITED_S)


def _waited(facts: Facts, crash: Crash) -> tuple[float, tuple[Cite, ...]] | None:
    """For how long at most, and what tells; None where nothing does."""
    source, head, last = crash.cite.source, crash.head.line, crash.cite.line
    behind = facts.lines(source, last + 1, BEHIND)
    for n, text in enumerate(behind, last + 1):
        if took := _TOOK.match(text):
            minutes = 60 * int(took[1] or 0) + int(took[2])
            return 60.0 * minutes, (LogCite(source, n, text, crash.cite.place),)
    job = facts.job
    if job is not None and job.started_at is not None and job.ended_at is not None:
        return (job.ended_at - job.started_at).total_seconds(), (job.cite,)
    start, clock = max(1, head - ABOVE), Clock()
    above = _dates(clock, facts.lines(source, start, head - start))
    ends = _dates(clock, [*facts.lines(source, head, last - head + 1), *behind])
    if not above or not ends:
        return None
    return (ends[0] - above[-1]).total_seconds(), (crash.head, crash.cite)


def _dates(clock: Clock, lines: Iterable[str]) -> list[datetime]:
    return [stamp.at for text in lines if (stamp := clock.read(text)) is not None]
