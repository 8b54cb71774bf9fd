"""
A trainer whose container the kubelet ended for a liveness probe, and that made steps meanwhile.

The probe asks a thread of the same process, which starves while Python computes.  The events bear
ages and no time; the program dates the signal that it was sent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.counted_on import MOST_CHARS, MOST_LINES, counted_until
from flatline.judging.heartbeats import made_until
from flatline.judging.supervised import ended_otherwise
from flatline.logs.clock import Clock
from flatline.model import Claim, Match

TAG = "liveness-failed"
NEAR = 12
"""Lines behind the last step, and above the one that tells of the container's end, that are
read."""
DEFAULT_S = 30.0
"""Three probes, ten seconds apart (failureThreshold, periodSeconds)."""
_SIGNALLED = re.compile(r"(?i)\b(?:sigterm|signal[ :=(]{1,2}15)\b")
_FAILED = re.compile(r"\bUnhealthy\s{1,8}(\S{1,12}) \(x\d{1,6} over (\S{1,12})\)")
_AGE = re.compile(r"(\d{1,6})([dhms])")
_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


@dataclass(frozen=True, slots=True)
class Unprobed:
    """The event by which the container was ended, when its program was told, and its steps."""

    said: Match
    at: datetime
    shows: Claim
    stepping: bool = True
    """Whether it made steps; else it was at other work, as an evaluation."""


def unprobed(facts: Facts) -> Unprobed | None:
    """None where the program is not known to have been at work or it ended otherwise, and where
    logs of several told of steps."""
    told = facts.tagged(TAG)
    track = facts.main_track(facts.last.n)
    sources = {one.source for one in facts.tracks if len(one)}
    if not told or track is None or len(sources) != 1 or ended_otherwise(facts):
        return None
    since, window_s = track.lines[-1] + 1, _window_s(facts, told[-1])
    at = _signalled(facts.lines(track.source, since, NEAR))
    made = None if at is None else made_until(facts, track, at, window_s)
    if at is not None and made is not None:
        return Unprobed(told[-1], at, claim("It made steps while the probe failed", *made))
    at = at or _signalled(facts.lines(track.source, since, MOST_LINES, MOST_CHARS)[-NEAR:])
    went = None if at is None else counted_until(facts, track.source, since, at, window_s)
    if at is None or went is None:
        return None
    text = "What it counted beside its steps went up while the probe failed"
    return Unprobed(told[-1], at, claim(text, *went), stepping=False)


def _signalled(texts: Sequence[str]) -> datetime | None:
    """When a line says that a signal to end was received."""
    clock = Clock()
    for text in texts:
        stamp = clock.read(text)
        if stamp is not None and _SIGNALLED.search(text):
            return stamp.at
    return None


def _window_s(facts: Facts, said: Match) -> float:
    """From the first probe that failed to the last, where the events beside it tell."""
    first = max(1, said.cite.line - NEAR)
    for text in facts.lines(said.cite.source, first, 2 * NEAR):
        if "iveness" in text and (ages := _FAILED.search(text)) is not None:
            return max(DEFAULT_S, _age_s(ages[2]) - _age_s(ages[1]))
    return DEFAULT_S


def _age_s(text: str) -> float:
    return float(sum(int(count) * _UNITS[unit] for count, unit in _AGE.findall(text)))
