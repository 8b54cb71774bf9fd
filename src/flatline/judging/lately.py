"""
When an undated log last told of progress: its last dated line, and the steps that followed it.

Trainers print steps without a time between lines of a library that has one.  What the steps say
they took leaves out what lies between them, so that progress is placed too early, never too late:
good enough to show that a run goes on, and no proof that one stands still.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from math import isfinite
from statistics import median

from flatline.facts import Facts
from flatline.judging.pace import RECENT, Pace
from flatline.model import LogCite

LEAST = 3
"""Points: an interval is told from no fewer."""


def lately(facts: Facts) -> tuple[Pace, LogCite] | None:
    """The last progress of the main track with the dated line it is reckoned from; None where its
    points are dated, do not say what they took, or no dated line stands before the last."""
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    span = track.of_attempt(facts.last.n)
    if len(span) < LEAST or any(isfinite(track.at[i]) for i in span):
        return None
    said = [(m.attempt, m.cite) for m in facts.markers] + [
        (m.attempt, m.cite) for m in facts.matches
    ]
    last = track.lines[span[-1]]
    own = [cite for attempt, cite in said
           if attempt == facts.last.n and cite.source == track.source]  # fmt: skip
    dated = [cite for cite in own if cite.at and not cite.at_assumed and cite.line < last]
    anchor = max(dated, key=lambda cite: cite.line, default=None)
    took = {b: (track.steps[b] - track.steps[a]) * track.step_s[b] for a, b in pairwise(span)}
    if anchor is None or anchor.at is None:
        return None
    if any(not isfinite(length) or length <= 0 for length in took.values()):
        return None
    since = [i for i in span if track.lines[i] > anchor.line]
    seconds = sum(took[i] for i in since[1:])
    usual = median(list(took.values())[-RECENT:])
    at = anchor.at + timedelta(seconds=seconds)
    return Pace(facts.point(track, span[-1]).cite, at, usual), anchor
