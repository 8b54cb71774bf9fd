"""
What all that LSF prints shares: states, termination reasons, lists of hosts, times.

A state of `EXIT` alone does not say what ended a job: LSF has it for its limits and `bkill` as
well, and tells them apart by a termination reason (`TERM_...`) that only the long forms and the
report print.  Times bear no zone and mostly no year: it is taken from what `date` printed above.

Source: IBM Spectrum LSF 10.1, bjobs(1), bhist(1), bsub -o; "Termination reasons displayed by
bacct, bhist, and bjobs".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from flatline.model import Disposition

STATES: Mapping[str, Disposition] = {
    "RUN": "running", "PEND": "pending", "PSUSP": "pending", "WAIT": "pending", "PROV": "pending",
    "USUSP": "suspended", "SSUSP": "suspended", "DONE": "completed", "EXIT": "unknown",
    "UNKWN": "unknown", "ZOMBI": "unknown", "POST_DONE": "completed", "POST_ERR": "completed",
}  # fmt: skip
"""Of a table; the job itself was done where only its post-processing failed."""
REASONS: Mapping[str, Disposition] = {
    "RUNLIMIT": "timeout", "CPULIMIT": "timeout", "DEADLINE": "deadline", "WINDOW": "deadline",
    "MEMLIMIT": "out_of_memory", "SWAP": "out_of_memory", "OWNER": "cancelled",
    "ADMIN": "cancelled", "FORCE_OWNER": "cancelled", "FORCE_ADMIN": "cancelled",
    "BUCKET_KILL": "cancelled", "PREEMPT": "preempted", "REQUEUE_OWNER": "requeued",
    "REQUEUE_ADMIN": "requeued", "RMS": "unknown", "UNKNOWN": "unknown", "ZOMBIE": "unknown",
}  # fmt: skip
TERM = re.compile(r"\bTERM_([A-Z_]{3,30}): ([^;\n]{1,200})")
_HOST = re.compile(r"(?:\d{1,5}\*)?([A-Za-z][\w.-]{0,250})")
_CLOCK = r"([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d(?::\d\d)?)(?: (\d{4}))?"
STAMP = rf"(?:[A-Z][a-z]{{2}} )?{_CLOCK}"
"""`Tue Nov  3 06:58:10 2026`; tables and the long forms leave out some of it."""
_STAMP = re.compile(STAMP)
_DATE = re.compile(
    r"(?:#[^|<>]{0,40}? )?[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d)"
    r"(?: [A-Z]{1,5}| [+-]\d\d(?:\d\d)?)? (\d{4})"
)
_ISO = re.compile(
    r"(?:#[^|<>]{0,40}? )?(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)"
    r"(?:[.,]\d{1,9})?(?: ?(?:Z|[A-Z]{2,5}|[+-]\d\d(?::?\d\d)?))?"
)
AHEAD = timedelta(days=1)
"""A day that would lie further ahead of the moment of printing is one of the year before."""


def ended_by(text: str) -> tuple[Disposition | None, str | None]:
    """What the termination reason comes to, and its words; a reason that is not known ends a job
    as any failure does."""
    found = TERM.search(text)
    if found is None:
        return None, None
    return REASONS.get(found[1], "failed"), f"TERM_{found[1]}: {found[2].strip().rstrip('.')}"


def hosts(parts: list[str]) -> tuple[str, ...]:
    """The hosts of `16*node-1` and `node-2`; none where one was cut at its column's width, which
    LSF marks with an asterisk in its place."""
    found = [_HOST.fullmatch(part) for part in parts]
    return tuple(dict.fromkeys(one[1] for one in found if one)) if all(found) else ()


def moment(text: str, now: datetime | None = None) -> datetime | None:
    """An instant of LSF's; None for what is none, or has no year where `now` is not known."""
    found = _STAMP.search(text)
    if found is None or (found[4] is None and now is None):
        return None
    month, day, clock, year = found.groups()
    years = [int(year)] if year else [now.year, now.year - 1] if now else []
    for one in years:
        at = _read(f"{one} {month} {day} {clock if clock.count(':') > 1 else clock + ':00'}")
        if at is not None and (year or now is None or at <= now + AHEAD):
            return at
    return None


def printed_at(line: str) -> datetime | None:
    """What `date` printed, or a remark that ends with a date; None for any other line.  A zone
    that it names is left out, as LSF's own times state none."""
    text = " ".join(line.split())
    found, iso = _DATE.fullmatch(text), _ISO.fullmatch(text)
    if found is not None:
        return _read(f"{found[4]} {found[1]} {found[2]} {found[3]}")
    try:
        return datetime.fromisoformat(f"{iso[1]}T{iso[2]}+00:00") if iso else None
    except ValueError:
        return None


def _read(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y %b %d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
