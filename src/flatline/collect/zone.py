"""
The zone of times that state none, where the rest of a run tells it.

Logs and Slurm's text print local time; metrics and Slurm's JSON count seconds since 1970.  Where a
run as read in UTC lies outside what dates it, and inside at one of the offsets that are in use and
at no other, that is its zone.  Metrics that are far longer than the run fit many, and tell none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import TypeVar

from flatline.collect.events import LogEvents
from flatline.collect.files import Found
from flatline.collect.logs import Setting
from flatline.collect.numbers import Numbers
from flatline.model import Job
from flatline.tracks import LOG, METRICS

Logs = Sequence[tuple[Found, Setting, LogEvents]]
Span = tuple[datetime | None, datetime | None]
T = TypeVar("T")

OFFSETS_H = (*range(-12, 15), -9.5, -3.5, -2.5, 3.5, 4.5, 5.5, 5.75, 6.5, 8.75, 9.5, 10.5, 12.75,
             13.75)  # fmt: skip
"""Hours before or behind UTC that are in use (IANA time zone database, 2025)."""
SLACK = timedelta(minutes=5)
"""By which clocks differ, and a run may begin before what dates it."""
LEAST = timedelta(minutes=10)
"""A shorter run fits anywhere."""
OUT = timedelta(minutes=25)
"""By which a run must stand out of what dates it: no offset in use is smaller than half an hour,
and little is printed so long after a job's end."""
MOST = 0.5
"""Of a run within what dates it as it was read: of metrics that miss a part of it no other zone
makes more."""


def when(rows: Sequence[Job], logs: Logs) -> Span:
    """When the run began and ended, as its records and else its dated log lines have it."""
    started = [row.started_at for row in rows if row.started_at]
    ended = rows[-1].ended_at if rows else None
    told = _told(logs)
    seen = [events.last_seen for _, _, events in logs if events.last_seen]
    first = min(started, default=None) or min(told, default=None)
    return first, ended or max(seen, default=None)


def _told(logs: Logs) -> list[datetime]:
    """Times of what was read first, log by log."""
    times = (
        (at for at in track.at if at == at)
        for _, _, events in logs
        for track in events.tracks.values()
    )
    told = [
        datetime.fromtimestamp(earliest, UTC)
        for of in times
        if (earliest := min(of, default=None)) is not None
    ]
    return told + [cite.at for _, _, e in logs for cite in (m.cite for m in e.matches) if cite.at]


def zone_of(
    found: Sequence[Found], rows: Sequence[Job], local: bool, logs: Logs, numbers: Numbers
) -> tzinfo | None:
    """None where it is not told, or is UTC. `local` records state no zone."""
    if rows and not local:
        return _by_records(rows, logs)
    run = when(rows, logs)
    if not rows and not any(events.zone_assumed for _, _, events in logs):
        return None
    if numbers.window is not None and _zone(run, numbers.window) is None:
        return None
    whole = Numbers([file for file in found if file.kind == METRICS], [])
    return _zone(run, whole.window or (None, None))


def _by_records(rows: Sequence[Job], logs: Logs) -> tzinfo | None:
    """By rows that are known to be in UTC: the job's own logs lie within them."""
    own = [e for file, _, e in logs if file.kind == LOG and e.zone_assumed]
    first = [events.first_seen for events in own if events.first_seen]
    last = [events.last_seen for events in own if events.last_seen]
    return _zone((min(first, default=None), max(last, default=None)), when(rows, ()), 1.0)


def _zone(run: Span, dated: Span, most: float = MOST) -> tzinfo | None:
    """Where the run lies within what dates it at one offset alone, and as read no more than `most`
    of it does."""
    (start, end), (first, last) = run, dated
    if start is None or end is None or first is None or last is None:
        return None
    length, inside = end - start, min(end, last) - max(start, first)
    if length < LEAST or inside > most * length or max(end - last, first - start) < OUT:
        return None
    fitting = [
        offset
        for offset in (timedelta(hours=hours) for hours in OFFSETS_H if hours)
        if first - SLACK <= start - offset and end - offset <= last + SLACK
    ]
    return timezone(fitting[0]) if len(fitting) == 1 else None


def in_zone(value: T, zone: tzinfo) -> T:
    """The same with every time, which was read as UTC's, as that zone's."""
    if zone is UTC:
        return value
    moved: object = value
    if isinstance(value, datetime):
        moved = value.replace(tzinfo=zone).astimezone(UTC)
    elif isinstance(value, tuple):
        moved = tuple(in_zone(item, zone) for item in value)
    elif is_dataclass(value) and not isinstance(value, type):
        held = {field.name: getattr(value, field.name) for field in fields(value)}
        moved = replace(value, **{name: in_zone(item, zone) for name, item in held.items()})
    return moved  # type: ignore[return-value]
