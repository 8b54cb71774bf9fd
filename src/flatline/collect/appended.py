"""
A log that was appended to: what an earlier job of the records wrote into it is not this job's, nor
is what a later one did.

Only lines that are dated within another job, which was over before this one began, count as its
own, with all that stands above them; or of one that began once this one was over, with all that
stands below.  Tries of the same job stay: they are its history.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime
from math import inf, isfinite

from flatline.collect.events import LogEvents
from flatline.collect.side_steps import without_side_steps
from flatline.model import Crash, Gap, Job, Match, ProcessExit
from flatline.tracks import LOG, Marker, Track

SLACK_S = 120.0
"""By which clocks of hosts and of the controller differ."""
LATE_S = 5.0
"""After its end on record, a whole second by the controller's clock, a job may still have printed,
where what comes is seen to begin anew.  A judgement: else clocks may differ by as much as they
do."""


def of_this_run(logs: Sequence[LogEvents], rows: Sequence[Job], known: Sequence[Job]) -> list[Gap]:
    """Leaves what is of the run and its own steps, and says what was left out."""
    return [*without_earlier_jobs(logs, rows, known), *without_later_jobs(logs, rows, known),
            *without_side_steps(logs, rows)]  # fmt: skip


def without_earlier_jobs(
    logs: Sequence[LogEvents], rows: Sequence[Job], known: Sequence[Job]
) -> list[Gap]:
    """Takes from each log what an earlier one of the `known` jobs wrote, and says so."""
    began = min((row.started_at for row in rows if row.started_at), default=None)
    own = {row.id for row in rows}
    if began is None:
        return []
    spans = [
        (job.id, job.started_at.timestamp() - SLACK_S, job.ended_at.timestamp() + SLACK_S)
        for job in known
        if job.id not in own and job.started_at and job.ended_at and job.ended_at <= began
    ]  # fmt: skip
    gaps = []
    for events in logs if spans else ():
        last, of = _written_before(events, spans, began.timestamp() - SLACK_S)
        if not last and all(row.disposition == "failed" for row in rows):
            done = {job.id for job in known if job.disposition == "completed"}
            whole = [span for span in spans if span[0] in done]
            last, of = _failed_behind(events, whole, began.timestamp() - SLACK_S)
        if last:
            _cut(events, last)
            events.kept = last + 1, events.lines
            reason = f"its lines up to {last} are dated within job {of}, which ended before"
            gaps.append(Gap(LOG, reason, events.source))
    return gaps


def without_later_jobs(
    logs: Sequence[LogEvents], rows: Sequence[Job], known: Sequence[Job]
) -> list[Gap]:
    """Takes from each log what a later one of the `known` jobs of the same user wrote, and says
    so: on a busy cluster somebody's begins as soon as this one is over, and its daemons speak on.
    """
    ends = [row.ended_at for row in rows]
    own, ended = {row.id for row in rows}, max(filter(None, ends), default=None)
    if ended is None or None in ends:
        return []
    spans = [
        (
            job.id,
            job.started_at.timestamp() - SLACK_S,
            job.ended_at.timestamp() + SLACK_S if job.ended_at else inf,
        )
        for job in known
        if job.id not in own and job.user == rows[-1].user
        and job.started_at and job.started_at >= ended
    ]  # fmt: skip
    gaps = []
    for events in logs if spans else ():
        first, of = _written_after(events, spans, ended.timestamp() + LATE_S)
        if first and not _begins_anew(events, first):
            first, of = _written_after(events, spans, ended.timestamp() + SLACK_S)
        if first:
            _cut_below(events, first)
            events.kept = events.kept[0] if events.kept else 1, first - 1
            reason = f"its lines from {first} on are dated within job {of}, which began after"
            gaps.append(Gap(LOG, reason, events.source))
    return gaps


def _written_after(
    events: LogEvents, spans: Sequence[tuple[str, float, float]], ended: float
) -> tuple[int, str]:
    """The first line that was written in a later job, and that job; 0 where earlier lines are of
    that time as well, or none is of this job's."""
    begins = min(start for _, start, _ in spans)
    dated = sorted(_dated(events))
    later = [(line, at) for line, at in dated if at >= begins and at > ended]
    if not later or len(later) == len(dated) or dated[-len(later) :] != later:
        return 0, ""
    line, at = later[0]
    job = next((job for job, start, end in spans if start <= at <= end), None)
    return (_try_above(events, dated[-len(later) - 1][0], line), job) if job else (0, "")


def _begins_anew(events: LogEvents, first: int) -> bool:
    """Whether a later try is told of from a line on than above it."""
    tries = [(one.cite.line, one.attempt) for one in _said(events)]
    for track in events.tracks.values():
        tries += zip(track.lines, track.attempts, strict=True)
    above = max((n for line, n in tries if line < first), default=0)
    return any(n > above for line, n in tries if line >= first)


def _try_above(events: LogEvents, last: int, first: int) -> int:
    """Where the try of line `first` began below line `last`: its first lines may be undated."""
    until = [one.attempt for one in _said(events) if one.cite.line <= last]
    for track in events.tracks.values():
        until += track.attempts[: bisect_right(track.lines, last)]
    after = (one.cite.line for one in _said(events)
             if last < one.cite.line < first and one.attempt > max(until))  # fmt: skip
    return min(after, default=first)


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


def _failed_behind(
    events: LogEvents, spans: Sequence[tuple[str, float, float]], began: float
) -> tuple[int, str]:
    """The same where nothing of this job is dated: it failed below the last dated line of a job
    that did not fail, which dates all."""
    dated = sorted(_dated(events))
    if not dated:
        return 0, ""
    (_, first), (line, last) = dated[0], dated[-1]
    job = next((job for job, start, end in spans if start <= first and last <= end), "")
    said = [one.cite.line for one in events.exits if one.exit_code or one.signal]
    said += [one.cite.line for one in events.crashes if not one.caught]
    failed = last < began and max(said, default=0) > line
    return (line, job) if job and failed else (0, "")


def _said(events: LogEvents) -> list[Match | Crash | ProcessExit | Marker]:
    return [*events.matches, *events.crashes, *events.exits, *events.markers]


def _dated(events: LogEvents) -> list[tuple[int, float]]:
    said = (one.cite for one in _said(events))
    times = [(c.line, c.at.timestamp()) for c in said if c.at is not None and not c.at_assumed]
    for track in events.tracks.values():
        points = zip(track.lines, track.at, strict=True)
        times += [(line, at) for line, at in points if isfinite(at)]
    return times


def _cut_below(events: LogEvents, first: int) -> None:
    events.matches = [one for one in events.matches if one.cite.line < first]
    events.crashes = [one for one in events.crashes if one.cite.line < first]
    events.exits = [one for one in events.exits if one.cite.line < first]
    events.markers = [one for one in events.markers if one.cite.line < first]
    for key, track in list(events.tracks.items()):
        _cut_track(track, 0, bisect_left(track.lines, first))
        if not len(track):
            del events.tracks[key]
    last = max(at for _, at in _dated(events))
    events.last_seen, events.last_line = datetime.fromtimestamp(last, UTC), None


def _cut(events: LogEvents, last: int) -> None:
    events.matches = [one for one in events.matches if one.cite.line > last]
    events.crashes = [one for one in events.crashes if one.cite.line > last]
    events.exits = [one for one in events.exits if one.cite.line > last]
    events.markers = [one for one in events.markers if one.cite.line > last]
    for key, track in list(events.tracks.items()):
        _cut_track(track, bisect_right(track.lines, last), len(track))
        if not len(track):
            del events.tracks[key]


def _cut_track(track: Track, first: int, end: int) -> None:
    for field in fields(track):
        if isinstance(column := getattr(track, field.name), array):
            setattr(track, field.name, column[first:end])
