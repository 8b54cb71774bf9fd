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
from flatline.collect.logs import Setting, read_log
from flatline.errors import SourceError
from flatline.tracks import KERNEL

NEAR, SCRAPED = timedelta(days=1), timedelta(minutes=15)
"""Of another log's time, by which only the year is sought; and of metrics, scraped while it ran:
what ends hours beside them is of another run, or of a zone that nothing states."""
Log = tuple[Found, Setting, LogEvents]


def dated(logs: list[Log], window: tuple[datetime, datetime] | None) -> None:
    """Reads those logs again, near the newest time of the others, else the end of the metrics: a
    kernel's wherever that puts it, a program's where that is beside the metrics or that time."""
    seen = [events.last_seen for _, _, events in logs if events.last_seen]
    near = max(seen, default=None if window is None else window[1])
    if near is None:
        return
    for n, (file, setting, events) in enumerate(logs):
        if not events.yearless:
            continue
        setting = replace(setting, near=near)
        try:
            again = read_log(file.path, file.source, catalogue(), setting)
        except SourceError:
            continue
        if file.kind == KERNEL or _beside(again.last_seen, window, near):
            logs[n] = file, setting, again


def _beside(
    last: datetime | None, window: tuple[datetime, datetime] | None, near: datetime
) -> bool:
    if last is None or window is None:
        return last is not None and abs(last - near) <= NEAR
    return window[0] - SCRAPED <= last <= window[1] + SCRAPED
