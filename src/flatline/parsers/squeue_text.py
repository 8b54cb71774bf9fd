"""
`squeue` as a table of text: which jobs run, and on which nodes.

Its rows are those of whoever asked, of a user or of the whole cluster, as they stood at that
moment: which of them is a run's, and that it is over since, they do not say (`Records.listed`).
Only rows in state R are taken.  A job that waits, or is being ended, tells nothing of its run.
When the table was printed and how long a job had run are left: neither states a zone.

Values are single words but for the last, a list of nodes or a reason in brackets; a row that has
more of them, as of a name with blanks, is left out.

Source: squeue(1), default format, `-l` and `-o` with the same names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flatline.errors import FormatError
from flatline.model import Job, Place, RecordCite, Records, Scalar
from flatline.parsers._rows import Row, decoded, mentions, shown, top
from flatline.parsers._rows import resolved as found_at
from flatline.parsers._slurm import count, given, hosts

FORMAT = "squeue-text"
ZONE_ASSUMED = True
IN_LINES = True
_PROMPT = re.compile(
    r"[^|]{0,120}[$#>%] ?(?:squeue(?: [-\w,=.:%|\"' ]{0,120})?|date(?: -\S{1,40})?)"
    r"|#? ?[A-Z][a-z]{2} (?:[A-Z][a-z]{2} {1,2}\d{1,2}|\d{1,2} [A-Z][a-z]{2}) [\w: ]{4,40}"
    r"|#? ?\d{4}-\d\d-\d\d[T ][\d:.]{5,15}(?: ?(?:Z|[+-]\d\d:?\d\d|[A-Z]{2,5}))?"
)
"""The command, and the time that stands above its table."""
_NODES = ("NODELIST(REASON)", "NODELIST")
_STATES = ("ST", "STATE")
_RUNS = ("R", "RUNNING")
_ID = re.compile(r"\d{1,12}(?:[_+]\d{1,8})?")


def _columns(line: str) -> list[str] | None:
    names = line.split()
    whole = len(set(names)) == len(names) and "JOBID" in names and names[-1] in _NODES
    return names if whole and set(names) & set(_STATES) else None


def _rows(data: bytes) -> Iterator[Row]:
    """Rows under their header. Raises `FormatError` where the first line is none."""
    columns: list[str] | None = None
    number = 0
    for line in shown(decoded(data), _PROMPT):
        if (found := _columns(line)) is not None:
            columns = found
        elif columns is None:
            break
        else:
            number += 1
            values = line.split(None, len(columns) - 1)
            if len(values) == len(columns) and _ID.fullmatch(values[columns.index("JOBID")]):
                yield Row(number, dict(zip(columns, values, strict=True)))
    if columns is None:
        raise FormatError("no table of squeue with JOBID, a state and NODELIST")


def parse(data: bytes, source: str) -> Records:
    """Raises `FormatError` without a header of squeue's."""
    found = (_job(row, source) for row in _rows(data))
    return Records(listed=tuple(job for job in found if job is not None))


def _job(row: Row, source: str) -> Job | None:
    state = next(name for name in _STATES if row[name])
    nodes = next(name for name in _NODES if row[name])
    held = hosts(row[nodes].strip())
    if row[state] not in _RUNS or not held or row["NODES"] not in ("", str(len(held))):
        return None  # a list of nodes that was cut off, or what is no row of squeue's
    text = f"JOBID={row['JOBID']} {state}={row[state]} {nodes}={row[nodes].strip()}"
    cite = RecordCite(source, row.pointer(state), row[state], text, Place())
    return Job(
        id=row["JOBID"],
        name=given(row["NAME"]),
        disposition="running",
        state="RUNNING",
        cite=cite,
        nodes=held,
        node_count=count(row["NODES"]),
        user=given(row["USER"]),
        partition=given(row["PARTITION"]),
    )


def recognise(name: str, head: bytes) -> bool:
    """Whether the first line, or the one after the command or a date, is a header of squeue's."""
    if not mentions(head, "JOBID"):
        return False
    lines = top(head, _PROMPT)
    return bool(lines) and _columns(lines[0]) is not None


def resolve(data: bytes, pointer: str) -> Scalar:
    """The value at `row 2, ST`; rows count from 1, headers left out."""
    return found_at(data, pointer, _rows)
