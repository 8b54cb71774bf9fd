"""
A job that its workflow manager gave up for missed heartbeats, and that made steps meanwhile.

Such a manager (cryoSPARC) hears of a job as a whole, so nobody is named: the job's only log is
that of the accused.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.heartbeats import made_until
from flatline.judging.last_printed import heard
from flatline.judging.supervised import SOON, ended_otherwise
from flatline.model import Claim, Match

UNHEARD = "job-unheard"


@dataclass(frozen=True, slots=True)
class Unheard:
    """The line that gave the job up, when that was, and its steps until then."""

    said: Match
    at: datetime
    shows: Claim


def unheard_job(facts: Facts) -> Unheard | None:
    """None where it is not known to have been at work, went on long after it, or ended otherwise;
    nor where logs of several told of steps."""
    told = [m for m in facts.tagged(UNHEARD) if m.attempt == facts.last.n]
    tracks = [track for track in facts.tracks if len(track)]
    if not told or len({track.source for track in tracks}) != 1 or ended_otherwise(facts):
        return None
    said, track = told[0], facts.main_track(facts.last.n)
    at = None if said.cite.at_assumed else said.cite.at
    if at is None or track is None or any(seen > at + SOON for seen in heard(facts).values()):
        return None
    made = made_until(facts, track, at, float(said.groups["seconds"]))
    if made is None:
        return None
    return Unheard(said, at, claim("It made steps inside the window of that accusation", *made))
