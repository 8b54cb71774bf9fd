"""
Workers that a site's own launcher gave up for missed heartbeats, and that made steps meanwhile.

Such launchers name a worker by its host.  Its own log is the one whose lines or name bear it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from flatline.facts import Facts, Track
from flatline.judging.claims import claim, distinct
from flatline.judging.heartbeats import DEFAULT_TIMEOUT_S, made_until
from flatline.model import Claim, LogCite, Match, Place
from flatline.rank_hosts import named_after

MARKED = "supervisors-marked-dead"
_SECONDS = re.compile(r"\b(\d{1,5})(?:\.\d{1,6})? ?s(?:ec(?:ond)?s?)?\b")


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The lines that gave workers up, whom, when, and what shows that each was at work."""

    lines: tuple[Match, ...]
    places: tuple[Place, ...]
    at: datetime
    shows: tuple[Claim, ...]


def given_up(facts: Facts) -> GivenUp | None:
    """None where nobody was, or one of them is not known to have been at work."""
    lines = [m for m in facts.matches if m.signature.id == MARKED and m.attempt == facts.last.n]
    shows, times = [], []
    for match in lines:
        at = None if match.cite.at_assumed else match.cite.at
        made = None if at is None else _worked(facts, match.groups["host"], at, _timeout_s(match))
        if at is None or made is None:
            return None
        text = f"{match.groups['host']} made steps inside the window of that accusation"
        shows.append(claim(text, *made))
        times.append(at)
    if not times:
        return None
    places = distinct(facts.on_host(Place(host=match.groups["host"])) for match in lines)
    return GivenUp(tuple(lines), places, min(times), tuple(shows))


def _worked(facts: Facts, host: str, at: datetime, timeout_s: float) -> tuple[LogCite, ...] | None:
    own = (track for track in facts.tracks if _of(facts, track, host))
    made = (made_until(facts, track, at, timeout_s) for track in own)
    return next((cites for cites in made if cites is not None), None)


def _of(facts: Facts, track: Track, host: str) -> bool:
    if track.place.host is not None:
        return facts.node_of(track.place.host) == facts.node_of(host)
    return host in track.source.split("/")[:-1] or named_after(track.source, (host,)) == host


def _timeout_s(match: Match) -> float:
    """How long it was silent by that line, or JAX's default."""
    found = _SECONDS.search(match.cite.text, match.cite.text.find("heartbeat"))
    return float(found[1]) if found is not None else DEFAULT_TIMEOUT_S
