"""Steps that stand in a text which a program prints, and were made by nobody."""

from __future__ import annotations

from array import array
from dataclasses import fields

from flatline.collect.events import LogEvents
from flatline.collect.shares import Shares
from flatline.logs.labels import Labels

SHOWN_POINTS = 64
"""Points that stand together at the end of a stream: more are no sample."""
SHOWN_CHARS = 600
"""A longer line is no sample either."""


def without_shown(events: LogEvents, near: Shares, labels: Labels) -> None:
    """Drops what a stream ends with where it stands in a text that the program prints: a plan
    is not reached by a sample that tells of it."""
    for key, track in list(events.tracks.items()):
        first = len(track) - 1
        while first > 0 and track.lines[first] - track.lines[first - 1] == 1:
            first -= 1
        last = track.lines[-1] if first >= 0 else 0
        if first < 0 or last - track.lines[first] > SHOWN_POINTS:
            continue
        text = near.line(track.lines[first])
        bare = labels.split(text)
        if len(text) > SHOWN_CHARS or near.of(bare, track.lines[first], bare.text, last):
            continue
        for column in fields(track):
            if isinstance(held := getattr(track, column.name), array):
                del held[first:]
        if not len(track):
            del events.tracks[key]
