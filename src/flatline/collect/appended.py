"""
A log that was appended to: what an earlier job of the records wrote into it is not this job's.

Only lines that are dated within another job, which was over before this one began, count as its
own, with all that stands above them.  Tries of the same job stay: they are its history.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import fields
from datetime import timedelta
from math import isfinite

from flatline.collect.events import LogEvents
from flatline.collect.side_steps import without_side_steps
from flatline.model import Gap, Job
from flatline.tracks import LOG, Track

SLACK = timedelta(minutes=2)
"""By which clocks of hosts and of the controller differ."""


def of_this_run(logs: Sequence[LogEvents], rows: Sequence[Job], known: Sequence[Job]) -> list[Gap]:
    """Leaves what is of the run and its own steps, and says what was left out."""
    return [*without_earlier_jobs(logs, rows, known), *without_side_steps(logs, rows)]


def without_earlier_jobs(
    logs: Sequence[LogEvents], rows: Sequence[Job], known: Sequence[Job]
) -> list[Gap]:
    """Takes from each log what an earlier one of the `known` jobs wrote, and says so."""
    began = min((row.started_at for row in rows if row.started_at), default=None)
    own = {row.id for row in rows}
    if began is None:
        return []
    spans = [
        (job.id, (job.started_at - SLACK).timestamp(), (job.ended_at + SLACK).timestamp())
        for job in known
        if job.id not in own and job.started_at and job.ended_at and job.ended_at <= began
    ]  # fmt: skip
    gaps = []
    for events in logs if spans else ():
        last, of = _written_before(events, spans, (began - SLACK).timestamp())
        if last:
            _cut(events, last)
            reason = f"its lines up to {last} are dated within job {of}, which ended before"
            gaps.append(Gap(LOG, reason, events.source))
    return gaps


def _written_before(
    events: LogEvents, spans: Sequence[tuple[str, float, float]], began: float
) -> tuple[int, str]:
    """The last line that was written in an earlier job, and that job; 0 where later lines are of
    that time as well, or none is of this job's: two clocks, or two streams in one file."""
    dated = sorted(_dated(events))
    earlier = [(line, at) for line, at in dated if at < began]
    if not earlier or len(earlier) == len(dated) or dated[: len(earlier)] != earlier:
        return 0, ""
    line, at = earlier[-1]
    job = next((job for job, start, end in spans if start <= at <= end), None)
    return (line, job) if job is not None else (0, "")


def _dated(events: LogEvents) -> list[tuple[int, float]]:
    said = (
        *(one.cite for one in events.matches),
        *(one.cite for one in events.crashes),
        *(one.cite for one in events.exits),
        *(one.cite for one in events.markers),
    )
    times = [(c.line, c.at.timestamp()) for c in said if c.at is not None and not c.at_assumed]
    for track in events.tracks.values():
        points = zip(track.lines, track.at, strict=True)
        times += [(line, at) for line, at in points if isfinite(at)]
    return times


def _cut(events: LogEvents, last: int) -> None:
    events.matches = [one for one in events.matches if one.cite.line > last]
    events.crashes = [one for one in events.crashes if one.cite.line > last]
    events.exits = [one for one in events.exits if one.cite.line > last]
    events.markers = [one for one in events.markers if one.cite.line > last]
    for key, track in list(events.tracks.items()):
        _cut_track(track, bisect_right(track.lines, last))
        if not len(track):
            del events.tracks[key]


def _cut_track(track: Track, first: int) -> None:
    for field in fields(track):
        if isinstance(column := getattr(track, field.name), array):
            setattr(track, field.name, column[first:])
