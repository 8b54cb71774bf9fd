"""
Workers that a site's own launcher gave up for missed heartbeats, and that made steps meanwhile.

Such launchers name a worker by its host.  Its own log is the one whose lines or name bear it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from flatline.facts import Facts, Track
from flatline.judging.claims import claim, distinct
from flatline.judging.crashes import failures
from flatline.judging.heartbeats import DEFAULT_TIMEOUT_S, made_until
from flatline.model import Claim, LogCite, Match, Place

MARKED = "supervisors-marked-dead"
MOST = 64
SIGTERM, SIGNALLED = 15, 128
SOON = timedelta(seconds=120)
"""Processes are ended within a minute or two of the decision."""
ABOVE = 200
_ENDED = re.compile(
    r"(?i)\b(?:exit(?:ed|s)?|exit_?code|crash\w*|killed|signal|oom|out of memory|died|core dumped"
    r"|segmentation|reboot\w*|node.?fail\w*|down|unreachable|xid)\b"
)
_SECONDS = re.compile(r"\b(\d{1,5})(?:\.\d{1,6})? ?s(?:ec(?:ond)?s?)?\b")


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The lines that gave workers up, whom, when, and what shows that each was at work."""

    lines: tuple[Match, ...]
    places: tuple[Place, ...]
    at: datetime
    shows: tuple[Claim, ...]


def given_up(facts: Facts) -> GivenUp | None:
    """None where nobody was, one of them is not known to have been at work, the run went on after
    it, or anything else is known to have ended it or one of its processes."""
    lines = [m for m in facts.matches if m.signature.id == MARKED and m.attempt == facts.last.n]
    first: dict[str, Match] = {}
    for match in lines:
        first.setdefault(match.groups["host"], match)
    if not first or len(first) > MOST or _ended_otherwise(facts):
        return None
    shows, times = [], []
    for host, match in first.items():
        at = None if match.cite.at_assumed else match.cite.at
        made = None if at is None else _worked(facts, host, at, _timeout_s(match))
        if at is None or made is None or _went_on(facts, at) or _told_to_end(facts, host, match):
            return None
        shows.append(claim(f"{host} made steps inside the window of that accusation", *made))
        times.append(at)
    places = distinct(facts.on_host(Place(host=host)) for host in first)
    return GivenUp(tuple(lines), places, min(times), tuple(shows))


def _ended_otherwise(facts: Facts) -> bool:
    """Whether a process crashed or was killed, or a host went: that is why heartbeats stopped."""
    if facts.disposition in ("completed", "node_fail", "out_of_memory", "boot_fail", "preempted"):
        return True
    if any(f.fatal and f.family != "C2" for f in failures(facts)):
        return True
    if any(e.signal not in (None, SIGTERM) or (e.exit_code or 0) > SIGNALLED for e in facts.exits):
        return True
    return any(m.signature.role == "root" for m in facts.matches if m.attempt == facts.last.n)


def _told_to_end(facts: Facts, host: str, match: Match) -> bool:
    """Whether the launcher says before it that the worker, or its process, ended by itself."""
    first = max(1, match.cite.line - ABOVE)
    above = facts.lines(match.cite.source, first, match.cite.line - first)
    return any(host in text and _ENDED.search(text) for text in above)


def _went_on(facts: Facts, at: datetime) -> bool:
    """Whether anything of the run is dated long after: it outlived the accusation, or the clocks
    of its logs differ."""
    return any(seen > at + SOON for seen in facts.last_seen.values())


def _worked(facts: Facts, host: str, at: datetime, timeout_s: float) -> tuple[LogCite, ...] | None:
    own = (track for track in facts.tracks if _of(facts, track, host))
    made = (made_until(facts, track, at, timeout_s) for track in own)
    return next((cites for cites in made if cites is not None), None)


def _of(facts: Facts, track: Track, host: str) -> bool:
    """Whether a log is that host's, whose name holds a number, as names of hosts do."""
    if not any(map(str.isdigit, host)):
        return False
    if track.place.host is not None:
        return facts.node_of(track.place.host) == facts.node_of(host)
    *folders, name = track.source.split("/")
    return (
        host in folders or re.search(rf"(?:^|[_.]){re.escape(host)}(?:[_.]|$)", name) is not None
    )


def _timeout_s(match: Match) -> float:
    """How long it was silent by that line, or JAX's default."""
    found = _SECONDS.search(match.cite.text, match.cite.text.find("heartbeat"))
    return float(found[1]) if found is not None else DEFAULT_TIMEOUT_S
