"""
`sinfo -R`, `sinfo -N -l` and plain `sinfo`: the state of nodes as a table of text.

Columns stand where the header's names stand, and the free text (REASON) is cut out by them; the
other columns hold no spaces and are checked to be single words, so that a table whose columns
have run into each other is refused rather than misread.  Read only with a NODELIST column and a
STATE or a REASON.  A reason is cut at its column's width by sinfo itself.

`sinfo -R` without a STATE column lists nodes that are down, drained or failing without saying
which: their `states` are empty.  The date line of `sinfo -l` gives `Records.now`.  Times carry
no zone and are read as UTC (`ZONE_ASSUMED`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from flatline.errors import FormatError
from flatline.model import NodeEvent, Place, RecordCite, Records, Scalar
from flatline.parsers._rows import Row, decoded, mentions, shown, top
from flatline.parsers._rows import resolved as found_at
from flatline.parsers._slurm import given, hosts, latest, node_states, read_time

FORMAT = "sinfo-text"
ZONE_ASSUMED = True
COLUMNS = (
    "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST REASON USER TIMESTAMP CPUS S:C:T MEMORY "
    "TMP_DISK WEIGHT AVAIL_FE FEATURES JOB_SIZE ROOT OVERSUBS SHARE GROUPS HOSTNAMES GRES"
)
_KNOWN = frozenset(COLUMNS.split())
_NAME = re.compile(r"\S+")
_DATE = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d \d{4}")
_STATE = re.compile(r"[a-zA-Z_]+[*~#!%$@^+\-a-zA-Z_]*")


def _columns(line: str) -> list[tuple[str, int]] | None:
    """The names of a header line and where they begin, or None."""
    found = [(name[0], name.start()) for name in _NAME.finditer(line)]
    names = [name for name, _ in found]
    whole = len(set(names)) == len(names) and set(names) <= _KNOWN
    return found if whole and "NODELIST" in names and {"STATE", "REASON"} & set(names) else None


def _date(line: str) -> datetime | None:
    """The date line of `sinfo -l`, None where the calendar has no such day."""
    try:
        return datetime.strptime(f"{' '.join(line.split())} +0000", "%a %b %d %H:%M:%S %Y %z")
    except ValueError:
        return None


def _cut(line: str, columns: list[tuple[str, int]]) -> dict[str, str] | None:
    """
    The values of a row.  REASON is cut out where its header stands; what is left and right of it
    are as many words as there are columns, else the row is not what it seems.
    """
    names = [name for name, _ in columns]
    if "REASON" not in names:
        words = line.split()
        return dict(zip(names, words, strict=True)) if len(words) == len(names) else None
    index = names.index("REASON")
    start = columns[index][1]
    end = columns[index + 1][1] if index + 1 < len(columns) else len(line)
    left, right = line[:start].split(), line[end:].split()
    if len(left) != index or len(right) != len(names) - index - 1:
        return None
    return dict(zip(names, (*left, line[start:end].strip(), *right), strict=True))


_PROMPT = re.compile(r"[^|]{0,120}[$#>%] ?sinfo(?: [-\w,=. %]{0,80})?")
"""The command itself, as a terminal shows it."""


def _lines(data: bytes) -> Iterator[tuple[Row | None, datetime | None]]:
    """Rows under their header, and the dates that stand above one. Raises `FormatError` where
    the first line that is no date is no header, or where rows stand and none fits under it."""
    columns: list[tuple[str, int]] | None = None
    number = fitting = 0
    for line in shown(decoded(data), _PROMPT):
        if _DATE.fullmatch(line.strip()):
            yield None, _date(line)
        elif (found := _columns(line)) is not None:
            columns = found
        elif columns is None:
            break
        else:
            number += 1
            values = _cut(line, columns)
            if values is not None and _STATE.fullmatch(values.get("STATE", "x")):
                fitting += 1
                yield Row(number, values), None
    if columns is None or (number and not fitting):
        raise FormatError("no table of sinfo with NODELIST and STATE or REASON, or no row in it")


def _rows(data: bytes) -> Iterator[Row]:
    return (row for row, _ in _lines(data) if row is not None)


def _events(row: Row, source: str) -> Iterator[NodeEvent]:
    reason = given(row["REASON"])
    at = read_time(row["TIMESTAMP"])
    column = "STATE" if row["STATE"] else "REASON"
    for host in hosts(row["NODELIST"]):
        text = f"NodeName={host} {column}={row[column]}"
        text += f" REASON={reason}" if reason and column == "STATE" else ""
        cite = RecordCite(source, row.pointer(column), row[column], text, Place(host=host), at)
        yield NodeEvent(host, node_states(row["STATE"]), reason, cite, at=at)


def parse(data: bytes, source: str) -> Records:
    """Raises `FormatError` without a header of sinfo's, or where no row fits under it; a header
    alone is an answer (`sinfo -R` when every node is well)."""
    events: dict[tuple[str, tuple[str, ...], str | None], NodeEvent] = {}
    moments: list[datetime | None] = []
    for row, moment in _lines(data):
        moments.append(moment)
        for event in _events(row, source) if row else ():
            moments.append(event.at)
            events.setdefault((event.host, event.states, event.reason), event)
    return Records(node_events=tuple(events.values()), now=latest(moments))


def recognise(name: str, head: bytes) -> bool:
    """Whether the first line, or the one after a date, is a header of sinfo's."""
    if not mentions(head, "NODELIST"):
        return False
    lines = top(head, _PROMPT)
    if lines and _DATE.fullmatch(lines[0].strip()):
        lines.pop(0)
    return bool(lines) and _columns(lines[0]) is not None


def resolve(data: bytes, pointer: str) -> Scalar:
    """The value at `row 2, STATE`; rows count from 1, headers and dates left out."""
    return found_at(data, pointer, _rows)
