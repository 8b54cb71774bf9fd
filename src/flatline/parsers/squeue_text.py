"""
`squeue` as a table of text, of one job: that it runs, since when, and on which nodes.

Read only where a file holds nothing else: a header with JOBID and a state, one row under it, and
perhaps the line that `date` prints above.  A table of several jobs does not say which of them the
run is.  The date gives `Records.now`, and with TIME when the job began; without one neither is
known.  Times are read as UTC (`ZONE_ASSUMED`), as those of the run's log are: what `date` names
as its zone is left out.

Source: squeue(1), default output and `-o`; date(1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from flatline.errors import FormatError
from flatline.model import Job, RecordCite, Records, Scalar
from flatline.parsers._rows import Row, decoded, mentions, resolved
from flatline.parsers._slurm import count, disposition, duration_s, given, hosts, state_words

FORMAT = "squeue-text"
ZONE_ASSUMED = True
IN_LINES = True
COLUMNS = (
    "JOBID PARTITION NAME USER ST STATE TIME TIME_LIMIT NODES NODELIST(REASON) NODELIST CPUS "
    "MIN_MEMORY PRIORITY ACCOUNT QOS START_TIME"
)
_KNOWN = frozenset(COLUMNS.split())
MOST_LINES = 6
_DATE = re.compile(
    r"(?:# ?)?[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d)( [AP]M)?"
    r"(?: [A-Z]{1,5}| [+-]\d\d)? (\d{4})"
)
_PROMPT = re.compile(r"[^|]{0,120}[$#>%] ?(?:squeue|date)(?: .{0,120})?")
_JOB = re.compile(r"\d{1,10}(?:[_+]\d{1,7})?")


def _date(line: str) -> datetime | None:
    """What `date` prints, None where the calendar has no such day."""
    found = _DATE.fullmatch(" ".join(line.split()))
    if found is None:
        return None
    month, day, time, half, year = found.groups()
    clock = "%I:%M:%S %p" if half else "%H:%M:%S"
    text = f"{year} {month} {day} {time}{half or ''} +0000"
    try:
        return datetime.strptime(text, f"%Y %b %d {clock} %z")
    except ValueError:
        return None


def _read(data: bytes) -> tuple[Row, datetime | None]:
    """The row, and when it was printed. Raises `FormatError` where there is not one alone."""
    lines = [line.strip() for line in decoded(data[:4_096]).split("\n") if line.strip()]
    lines = [line for line in lines if not _PROMPT.fullmatch(line)]
    dates = [at for line in lines if (at := _date(line)) is not None]
    table = [line for line in lines if _date(line) is None]
    if len(data) > 4_096 or len(lines) > MOST_LINES or len(dates) > 1 or len(table) != 2:
        raise FormatError("no table of squeue of one job alone")
    names = table[0].split()
    words = table[1].split(maxsplit=len(names) - 1)
    whole = len({*names}) == len(names) and {*names} <= _KNOWN and "JOBID" in names
    if not whole or not {"ST", "STATE"} & {*names} or len(words) != len(names):
        raise FormatError("no header of squeue with JOBID and ST or STATE, or no row under it")
    values = dict(zip(names, words, strict=True))
    state = values.get("STATE") or values["ST"]
    if not _JOB.fullmatch(values["JOBID"]) or disposition(state_words(state)) == "unknown":
        raise FormatError("no job and its state stand under the header of squeue")
    return Row(1, values), dates[0] if dates else None


def _rows(data: bytes) -> Iterator[Row]:
    yield _read(data)[0]


def parse(data: bytes, source: str) -> Records:
    """Raises `FormatError` where it is not the table of one job."""
    row, now = _read(data)
    column = "STATE" if row["STATE"] else "ST"
    where = row["NODELIST"] or row["NODELIST(REASON)"]
    waits = where.startswith("(")
    ran_s = duration_s(row["TIME"])
    state = disposition(state_words(row[column]))
    began = now - timedelta(seconds=min(ran_s, 1e9)) if now and ran_s is not None else None
    job = Job(
        id=row["JOBID"],
        name=given(row["NAME"]),
        disposition=state,
        state=row[column],
        cite=RecordCite(source, row.pointer(column), row[column],
                        f"JOBID={row['JOBID']} {column}={row[column]} TIME={row['TIME']}"),
        reason=given(where.strip("()")) if waits else None,
        started_at=began if state == "running" else None,
        limit_s=duration_s(row["TIME_LIMIT"]),
        nodes=() if waits else hosts(where),
        node_count=count(row["NODES"]),
        user=given(row["USER"]),
        partition=given(row["PARTITION"]),
    )  # fmt: skip
    return Records(jobs=(job,), now=now)


def recognise(name: str, head: bytes) -> bool:
    """Whether the table of one job is all that it holds."""
    if not mentions(head, "JOBID"):
        return False
    try:
        _read(head)
    except FormatError:
        return False
    return True


def resolve(data: bytes, pointer: str) -> Scalar:
    """The value at `row 1, ST`."""
    return resolved(data, pointer, _rows)
