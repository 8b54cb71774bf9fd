"""
A run on record as completed whose last line is one printing interval short of its plan.

A loop that counts from nought and prints each fifth step prints the last one it makes at 795 of
800.  Whether it made the others, only the time that it went on for tells.
"""

from __future__ import annotations

from itertools import pairwise
from math import isfinite
from statistics import median

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.model import Claim

UNPRINTED = "Whether the last steps were made: none of them was printed."
EVEN = 10
"""Intervals up to the last one that must be of as many steps each."""
TIME_LEFT = 0.8
"""Of what the other steps take at the usual pace: so long it must have gone on for at least."""


def all_but_one_print(facts: Facts) -> tuple[Claim, ...]:
    """That it went on for long enough; empty where it did not, or more is missing."""
    track, job, plan = facts.main_track(facts.last.n), facts.job, facts.planned_steps
    if track is None or job is None or not plan or job.ended_at is None or job.exit_code:
        return ()
    span = track.of_attempt(facts.last.n)[-EVEN - 1 :]
    gaps = {track.steps[b] - track.steps[a] for a, b in pairwise(span)}
    took = [track.at[b] - track.at[a] for a, b in pairwise(span)]
    left = plan - track.steps[span[-1]] if span else 0
    if len(span) <= EVEN or len(gaps) > 1 or not 0 < left <= min(gaps):
        return ()
    if not all(map(isfinite, took)):
        return ()
    went_on_s = job.ended_at.timestamp() - track.at[span[-1]]
    needed_s = median(took) * left / min(gaps)
    if went_on_s < TIME_LEFT * needed_s:
        return ()
    point = facts.point(track, span[-1])
    text = (f"One step of {min(gaps)} is printed, and {left} are missing up to the plan; the job"
            f" went on for {went_on_s:.0f} s, and they take {needed_s:.0f}")  # fmt: skip
    return (claim(text, point.cite, job.cite),)
