"""
Logs whose stamps have no year, where no scheduler's record tells it: the other logs of the target
do, or its metrics.  Without one a fault of days before cannot be told from one of the run.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from flatline.collect.catalogue import catalogue
from flatline.collect.events import LogEvents
from flatline.collect.files import Found
from flatline.collect.logs import read_log
from flatline.collect.setting import Setting
from flatline.errors import SourceError
from flatline.tracks import KERNEL

NEAR, SCRAPED, BEFORE = timedelta(days=1), timedelta(minutes=15), timedelta(minutes=2)
"""Of another log's time, by which only the year is sought; and of metrics, scraped while it ran:
what ends hours beside them is of another run, or of a zone that nothing states."""
Log = tuple[Found, Setting, LogEvents]
Span = tuple[datetime | None, datetime | None]


def dated(logs: list[Log], window: tuple[datetime, datetime] | None, record: Span) -> None:
    """Reads those logs again, near the newest time of the others, else the end of the metrics: a
    kernel's wherever that puts it, a program's where that is beside the metrics or that time.
    Times alone are of the run that the record, the metrics or the other logs date, where all of
    them lie within it."""
    seen = [events.last_seen for _, _, events in logs if events.last_seen]
    near = max(seen, default=None if window is None else window[1])
    began = [events.first_seen for _, _, events in logs if events.first_seen]
    others = (min(began), max(seen)) if began and seen else None
    start, end = record
    known = (start, end) if start is not None and end is not None else window or others
    for n, (file, setting, events) in enumerate(logs):
        within = known if events.dayless else None
        moment = near if within is None else _anchor(within, of_record=start is not None)
        if not events.yearless or moment is None:
            continue
        again = _again(file, replace(setting, near=moment))
        if again is None:
            continue
        slack = BEFORE if start is not None else SCRAPED
        fits = (
            _beside(again.last_seen, window, moment)
            if within is None
            else _inside(again, within, slack)
        )
        if file.kind == KERNEL or fits:
            logs[n] = file, setting, again


def _again(file: Found, setting: Setting) -> LogEvents | None:
    try:
        return read_log(file.path, file.source, catalogue(), setting)
    except SourceError:
        return None


def _anchor(span: tuple[datetime, datetime], *, of_record: bool) -> datetime:
    """What the first time is near to: a record's start, or the middle of what was measured."""
    return span[0] if of_record else span[0] + (span[1] - span[0]) / 2


def _inside(events: LogEvents, span: tuple[datetime, datetime], slack: timedelta) -> bool:
    """Of what lasted longer than a day the same time is there twice."""
    first, last = events.first_seen, events.last_seen
    if first is None or last is None or span[1] - span[0] >= NEAR:
        return False
    return span[0] - slack <= first and last <= span[1] + SCRAPED


def _beside(
    last: datetime | None, window: tuple[datetime, datetime] | None, near: datetime
) -> bool:
    if last is None or window is None:
        return last is not None and abs(last - near) <= NEAR
    return window[0] - SCRAPED <= last <= window[1] + SCRAPED
