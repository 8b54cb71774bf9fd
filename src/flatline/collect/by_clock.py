"""When the undated steps of a log began and ended: by the program's own clock, which its bar
shows, and the dated lines beside them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, datetime
from math import isfinite

from flatline.collect.events import LogEvents
from flatline.tracks import Track


def spans(events: LogEvents) -> Iterator[tuple[datetime, datetime]]:
    """Of each stream whose points are undated, from its first to its last attempt: a line was
    printed after the step above it, so the clock began no later than that tells."""
    dated: dict[int, list[tuple[int, float]]] = {}
    for attempt, cite in (
        *((one.attempt, one.cite) for one in events.markers),
        *((one.attempt, one.cite) for one in events.matches),
    ):
        if cite.at is not None and not cite.at_assumed:
            dated.setdefault(attempt, []).append((cite.line, cite.at.timestamp()))
    for track in events.tracks.values() if dated else ():
        for attempt, lines in dated.items():
            points = [i for i in track.of_attempt(attempt) if isfinite(track.since_s[i])]
            if points and not any(isfinite(track.at[i]) for i in points):
                yield from _span(track, points, lines)


def _span(
    track: Track, points: list[int], dated: list[tuple[int, float]]
) -> Iterator[tuple[datetime, datetime]]:
    lines = [track.lines[i] for i in points]
    since = [track.since_s[i] for i in points]
    began = [at - since[above - 1] for line, at in dated if (above := bisect_left(lines, line))]
    if began and since == sorted(since):
        first, last = min(began) + since[0], min(began) + since[-1]
        yield datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC)
