"""
Kernel logs whose stamps have no year, where no scheduler's record tells it: the other logs of the
target do, or its metrics.  Without one a fault of days before cannot be told from one of the run.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from flatline.collect.catalogue import catalogue
from flatline.collect.events import LogEvents
from flatline.collect.files import Found
from flatline.collect.logs import Setting, read_log
from flatline.errors import SourceError
from flatline.tracks import KERNEL

Log = tuple[Found, Setting, LogEvents]


def dated(logs: list[Log], window: tuple[datetime, datetime] | None) -> None:
    """Reads those logs again, near the newest time of the others, else the end of the metrics."""
    seen = [events.last_seen for _, _, events in logs if events.last_seen]
    near = max(seen, default=None if window is None else window[1])
    if near is None:
        return
    for n, (file, setting, events) in enumerate(logs):
        if file.kind != KERNEL or not events.yearless:
            continue
        setting = replace(setting, near=near)
        try:
            again = read_log(file.path, file.source, catalogue(), setting)
        except SourceError:
            continue
        logs[n] = file, setting, again
