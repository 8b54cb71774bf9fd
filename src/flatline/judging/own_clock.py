"""
When steps were made by the program's own clock: what a progress bar says it has run.

It dates nothing, but unlike the times that steps print it runs on between them: a save, an
evaluation and a wait are in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import isfinite

from flatline.tracks import Track

LEAST_S = 3.0
"""Bars show whole seconds: over less than three the pace of steps that took alike may look half
as long again, which is what makes a pause (`judging.pauses`)."""
MOST_SILENT = 0.1
"""Of the steps so many may be printed without it."""
RUNS = 0.5
"""A clock that shows less than this part of what its own steps say they took does not run: a bar's
rate is a moving average, which after a pause holds too much for the steps that it stands for."""


def own_clock(track: Track, span: Sequence[int]) -> Mapping[int, float]:
    """
    Seconds run by each point, the first of each step; empty where few say so, where the clock
    does not run, and where it or the steps go back: another bar, another attempt, another loop.

    Between readings LEAST_S apart the steps are spread evenly.  What took as long by itself has
    both of its ends kept.
    """
    steps = {track.steps[i] for i in span if track.steps[i] >= 0}
    known: list[int] = []
    for i in span:
        if not isfinite(track.since_s[i]) or track.steps[i] < 0:
            continue
        if known and track.since_s[i] < track.since_s[known[-1]]:
            return {}
        if known and track.steps[i] <= track.steps[known[-1]]:
            return {}
        known.append(i)
    if len(known) < 2 or len(known) < (1.0 - MOST_SILENT) * len(steps):
        return {}
    took_s = sum(
        track.step_s[b] * (track.steps[b] - track.steps[a])
        for a, b in pairwise(known)
        if isfinite(track.step_s[b])
    )
    if track.since_s[known[-1]] - track.since_s[known[0]] < RUNS * took_s:
        return {}
    return _spread(track, known)


def told_beside(track: Track, span: Sequence[int]) -> Mapping[int, float]:
    """What each step took by a line of its own, where a bar is drawn beside: its rate is a moving
    average, or the mean since it began.  Empty where that is told of less than half of the steps:
    the two are not to be mixed."""
    drawn = {track.steps[i] for i in span if isfinite(track.since_s[i])}
    told = {
        track.steps[i]: track.step_s[i]
        for i in span
        if track.step_s[i] > 0 and not isfinite(track.since_s[i])
    }
    return told if 2 * len(drawn & told.keys()) > len(drawn) else {}


def _spread(track: Track, known: Sequence[int]) -> Mapping[int, float]:
    anchors = [known[0]]
    for before, i in pairwise(known):
        if track.since_s[i] - track.since_s[before] >= LEAST_S and before != anchors[-1]:
            anchors.append(before)
        if track.since_s[i] - track.since_s[anchors[-1]] >= LEAST_S:
            anchors.append(i)
    if anchors[-1] != known[-1]:
        anchors.append(known[-1])
    out: dict[int, float] = {}
    upto = iter(anchors[1:])
    low, high = anchors[0], next(upto, anchors[-1])
    for i in known:
        while i > high:
            low, high = high, next(upto)
        part = (track.steps[i] - track.steps[low]) / max(1, track.steps[high] - track.steps[low])
        out[i] = track.since_s[low] + part * (track.since_s[high] - track.since_s[low])
    return out
