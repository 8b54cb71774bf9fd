"""
Connections that broke while every rank was alive: each of them says that it lost a peer.

Of a rank that died its peers say so, and it says nothing.  Where all ranks of the world report a
lost connection, on several hosts and within moments, and nothing else failed on any of them, none
had gone before: what is between them broke.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from flatline.facts import Facts
from flatline.judging.crashes import failures
from flatline.judging.kills import kills
from flatline.judging.waiting import of_a_stranger
from flatline.model import LogCite

LAST_LINES = 60
WITHIN_S = 60.0
"""Of one another: later ones may have lost a rank that had gone for having lost another."""

VAGUE = 0.3
"""A traceback whose end is cut off says less than what stands above it."""
BY_SCHEDULER = ("cancelled", "timeout", "preempted", "requeued", "node_fail")
ENDING = timedelta(seconds=120)
"""What does not end by itself is killed KillWait later (slurm.conf, 30 s by default)."""


def broke(facts: Facts) -> tuple[LogCite, ...]:
    """The line of each rank; nothing where a rank says none, or anything else failed."""
    attempt, world = facts.last.n, facts.world_size
    if world is None or world < 2 or len(facts.hosts) < 2:
        return ()
    said: dict[int, LogCite] = {}
    for match in facts.tagged("lost-peer"):
        rank = match.cite.place.rank
        if match.attempt == attempt and rank is not None:
            said.setdefault(rank, match.cite)
    if set(said) != set(range(world)):
        return ()
    if any(f.attempt == attempt and f.fatal for f in failures(facts)) or _killed(facts, attempt):
        return ()
    times = [cite.at for cite in said.values() if cite.at is not None]
    if as_it_was_ended(facts, times):
        return ()
    if times and (max(times) - min(times)).total_seconds() > WITHIN_S + facts.skew_s:
        return ()
    return tuple(said[rank] for rank in sorted(said))


def closed_at_the_end(facts: Facts) -> LogCite | None:
    """
    The line by which the only log of a run, or each of its logs, tells that a peer closed its
    connection, if that is near its end and all that is told.

    Nothing where another log is there (a rank that died would show in it), where a record or a
    launcher tells how processes ended, or where anything else failed.
    """
    logs = {read.source: read.lines for read in facts.files if read.lines}
    if not logs or facts.job is not None or facts.disposition == "completed":
        return None
    # that those which tell of it ended with an error is what such an error does
    if len(facts.exits) > len(logs) or any(e.signal or e.exit_code != 1 for e in facts.exits):
        return None
    ended = facts.markers_of("finished") or facts.tagged("end-ok")
    if facts.disposition in BY_SCHEDULER or ended or facts.tagged("heartbeat"):
        return None
    if facts.tagged("timeout"):
        return None
    attempt = facts.last.n
    lines = [
        m.cite
        for m in facts.tagged("lost-peer")
        if m.attempt == attempt and not of_a_stranger(facts, m)
    ]
    if 1 < len(logs) < (facts.world_size or 0):
        return None  # the log of the one that died may be missing
    last = {cite.source: cite.line for cite in lines}
    if last.keys() != logs.keys() or any(logs[s] - last[s] > LAST_LINES for s in logs):
        return None
    told = (f for f in failures(facts) if f.attempt == attempt and f.strength >= VAGUE)
    if any(f.fatal for f in told) or _killed(facts, attempt):
        return None
    return None if any(facts.went_on(cite, attempt) for cite in lines) else lines[0]


def as_it_was_ended(facts: Facts, times: Sequence[datetime]) -> bool:
    """Whether peers may have been lost, at these times, because the scheduler or a person ended
    the run: its ranks go one after another, and each loses those that went first."""
    ended = facts.last.ended_at
    known = bool(times) and ended is not None and ended - max(times) > ENDING
    return facts.disposition in BY_SCHEDULER and not known


def _killed(facts: Facts, attempt: int) -> bool:
    found = kills(facts)
    return found is not None and found.first.attempt == attempt and found.first.fatal
