"""
`squeue`, `squeue -l`, `squeue -o` with a header, `squeue -h`: jobs that wait or run, as a table.

Columns hold single words but for the last (NODELIST(REASON)), whose reasons have blanks, and NAME,
which may: a row is cut into words, from the left up to the name and from the right behind it, and
checked by its id, state and time.  A name or a user is cut at its column's width by squeue itself.

A table without a header is read where all its rows fit the default columns.  The date line of
`squeue -l`, or what `date` printed above, alone or with the command itself in one heading as
scripts and `watch` write it, gives `Records.now`, and with TIME when a job began; a
zone that `date` names is left out, as the times of the run's log state none either.  A job that is
over is listed for minutes at most (`MinJobAge`), so a table says little of ends.

Source: squeue(1), src/squeue/print.c, opts.c (the headers of its default, long and step formats);
watch(1), `output_header` of src/watch.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from flatline.errors import FormatError
from flatline.model import Job, RecordCite, Records, Scalar
from flatline.parsers._rows import Row, decoded, mentions, shown
from flatline.parsers._rows import resolved as found_at
from flatline.parsers._slurm import (
    BASES,
    COMPACT,
    FLAGS,
    count,
    disposition,
    duration_s,
    given,
    hosts,
    latest,
)

FORMAT = "squeue-text"
ZONE_ASSUMED = True
_LAST = "NODELIST(REASON)"
_KNOWN = frozenset(
    f"JOBID PARTITION NAME USER ST STATE TIME TIME_LIMI TIME_LIMIT TIMELIMIT NODES CPUS {_LAST}"
    " NODELIST ACCOUNT QOS PRIORITY START_TIME SUBMIT_TIME TIME_LEFT MIN_MEMORY GROUP FEATURES"
    " TRES_PER_NODE GRES REASON".split()
)
_ID = re.compile(r"\d{1,12}(?:_(?:\d{1,9}|\[[\d,%:-]{1,200}\])|\+\d{1,4})?")
_STATE = re.compile(r"[A-Z]{1,3}|[A-Z_]{4,20}")
_TIME = re.compile(r"(?:\d{1,6}-)?(?:\d{1,4}:){1,2}\d\d|INVALID")
_STATES = BASES.keys() | FLAGS.keys()
_DATE = re.compile(
    r"(?:# ?)?(?:date(?: -u| --utc)?: )?[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2})"
    r" (\d\d:\d\d:\d\d)( [AP]M)?"
    r"(?: [A-Z]{1,5}| [+-]\d\d)? (\d{4})"
)
_ISO = re.compile(
    r"(?:# ?)?(?:date[^:|]{0,30}: |(?:taken|captured|collected|as of|at)\b[^:|\d]{0,20} )?"
    r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?: ?(?:Z|[A-Z]{2,5}|[+-]\d\d(?::?\d\d)?))?"
    r"(?: (?:on|from|at) [\w.-]{1,80})?"
)
"""The same as a script asks `date` for it, `date -u +'%F %T %Z'`, `date -Is`, or as somebody
notes it."""
_HEADINGS = (
    re.compile(r"([^|]{10,60}?):? (?:[$>%] ?)?squeue(?: .{0,300})?"),
    re.compile(r"# ?squeue\b.{0,300}?[ (](\d{4}-\d\d-\d\d.{9,20}?|[A-Z][a-z]{2} .{16,30}?)\)?"),
    re.compile(r"Every [\d.,]{1,9}s: squeue\b.{0,300}?: ([A-Z][a-z]{2} .{16,30})"),
)
"""A date and the command that was run then in one line."""
_DEFAULTS = (
    f"JOBID PARTITION NAME USER ST TIME NODES {_LAST}".split(),
    f"JOBID PARTITION NAME USER STATE TIME TIME_LIMIT NODES {_LAST}".split(),
    f"JOBID PARTITION LABEL ST TIME NODES {_LAST}".split(),
)
"""Of the short and the long form; behind the nodes something more may have been asked for.  The
last is what scripts ask `squeue -h -o` for where they leave out the name, or the user: which of
the two the third word is, no header says."""
_WHERE = re.compile(
    r"(?:\(.{1,200}\)|[A-Za-z][\w.,-]{0,60}(?:[\[\w,.\]-]{0,400}))(?: \S{1,80}){0,3}"
)
_ROW = re.compile(rb"(?m)^ {0,20}\d{1,12}(?:_\S{1,40})? +\S{1,40} +\S")
_PROMPT = re.compile(
    r"[^|]{0,120}[$#>%] ?(?:date(?: [-\w+%:'\" ]{0,40})? ?(?:;|&&) ?)?"
    r"(?:squeue|date(?![^|:]{0,30}: ))(?: [-\w,=.:%\"' ]{0,160})?"
)
"""The command itself, as a terminal shows it; the date may be asked for in the same line."""


def recognise(name: str, head: bytes) -> bool:
    """Whether it begins with a header of squeue's, or a row of its default columns, and holds
    nothing but rows: a job may print the table before all else."""
    named = mentions(head, "JOBID")
    if not named and _ROW.search(head[:2_048]) is None:
        return False
    whole = head[: head.rfind(b"\n") + 1] or head
    try:
        lines = list(shown(decoded(whole), _PROMPT, _is_date))
    except FormatError:
        return False
    lines = [line for line in lines if not _is_date(line)]
    columns = _columns(lines[0]) if lines else None
    rows = lines if columns is None else lines[1:]
    if columns is not None:
        return all(_cut(line.split(), columns) or _columns(line) for line in rows)
    return bool(rows) and all(map(_row_of_default, rows))


def parse(data: bytes, source: str) -> Records:
    """Raises `FormatError` without a header of squeue's, or where no row fits under it; a header
    alone is an answer: nothing waits or runs."""
    jobs, moments = [], list[datetime | None]()
    now: datetime | None = None
    for row, moment in _lines(data):
        now = moment or now
        moments.append(moment)
        if row is not None:
            jobs.append(_job(row, now, source))
    return Records(jobs=tuple(jobs), now=latest(moments))


def resolve(data: bytes, pointer: str) -> Scalar:
    """The value at `row 2, ST`; rows count from 1, headers and dates left out."""
    return found_at(data, pointer, lambda them: (row for row, _ in _lines(them) if row))


def _row_of_default(line: str) -> Sequence[str] | None:
    """The columns of a row without a header; None where it fits none."""
    words = line.split()
    for names in _DEFAULTS:
        row = _cut(words, names) if len(words) >= len(names) else None
        compact = row is not None and row.get("ST", "R") in COMPACT
        if row is not None and compact and _WHERE.fullmatch(row[_LAST]):
            return names
    return None


def _columns(line: str) -> list[str] | None:
    """The names of a header line, or None."""
    names = line.split()
    known = len(set(names)) == len(names) and set(names) <= _KNOWN
    return names if known and "JOBID" in names and {"ST", "STATE"} & set(names) else None


def _lines(data: bytes) -> Iterator[tuple[Row | None, datetime | None]]:
    columns: Sequence[str] | None = None
    number = fitting = 0
    for line in shown(decoded(data), _PROMPT, _is_date):
        if _is_date(line):
            yield None, _date(line)
        elif (found := _columns(line)) is not None:
            columns = found
        elif (columns := columns or _row_of_default(line)) is None:
            break
        else:
            number += 1
            values = _cut(line.split(), columns)
            if values is not None:
                fitting += 1
                yield Row(number, values), None
    if columns is None or (number and not fitting):
        raise FormatError("no table of squeue with JOBID and ST or STATE, or no row in it")


def _cut(words: Sequence[str], names: Sequence[str]) -> dict[str, str] | None:
    """The values of a row; None where id, state or time are none."""
    end = names.index("NAME") if "NAME" in names else len(names) - 1
    behind = len(names) - end - 1
    if names[-1] in (_LAST, "REASON") and end < len(names) - 1:
        return _with_reason(words, names, end)
    if len(words) < len(names):
        return None
    middle = " ".join(words[end : len(words) - behind])
    values = (*words[:end], middle, *words[len(words) - behind :])
    return _checked(dict(zip(names, values, strict=True)))


def _with_reason(words: Sequence[str], names: Sequence[str], end: int) -> dict[str, str] | None:
    """The same where the last column may hold blanks, or nothing, as well as the name."""
    inner = len(names) - end - 2
    for start in range(end + 1, len(words) - inner + 1):
        left, rest = words[:end], words[start + inner :]
        values = (*left, " ".join(words[end:start]), *words[start : start + inner], " ".join(rest))
        row = _checked(dict(zip(names, values, strict=True)))
        if row is not None:
            return row
    return None


def _checked(row: Mapping[str, str]) -> dict[str, str] | None:
    state = row.get("ST") or row.get("STATE", "")
    timed = "TIME" not in row or _TIME.fullmatch(row["TIME"])
    sized = "NODES" not in row or row["NODES"].isdigit()
    sound = _ID.fullmatch(row["JOBID"]) and _STATE.fullmatch(state) and timed and sized
    return dict(row) if sound and COMPACT.get(state, state) in _STATES else None


def _job(row: Row, now: datetime | None, source: str) -> Job:
    column = "ST" if row["ST"] else "STATE"
    state, ran = COMPACT.get(row[column], row[column]), duration_s(row["TIME"])
    where = row[_LAST] or row["NODELIST"]
    where = where if where.startswith("(") else where.partition(" ")[0]
    waits = where.startswith("(")
    began = now - timedelta(seconds=ran) if now is not None and ran else None
    nodes = () if waits else hosts(where)
    if row["NODES"] not in ("", str(len(nodes))):
        nodes = ()  # a list that squeue cut off at its column's width
    limit = next((row[k] for k in ("TIME_LIMI", "TIME_LIMIT", "TIMELIMIT") if row[k]), "")
    return Job(
        id=row["JOBID"],
        name=given(row["NAME"]),
        disposition=disposition((state,)),
        state=state,
        cite=RecordCite(source, row.pointer(column), row[column],
                        f"JOBID={row['JOBID']} {column}={row[column]} TIME={row['TIME']}"),
        reason=given(where.strip("()")) if waits else given(row["REASON"]),
        started_at=None if disposition((state,)) == "pending" else began,
        limit_s=duration_s(limit),
        nodes=nodes,
        node_count=count(row["NODES"]) or len(nodes) or None,
        user=given(row["USER"]),
        partition=given(row["PARTITION"]),
        listed=True,
        listed_after_s=ran,
    )  # fmt: skip


def _dated(line: str) -> str:
    """The words of a line; of one that heads the table with the command, those of its date."""
    text = " ".join(line.split())
    for form in _HEADINGS if "squeue" in text else ():
        found = form.fullmatch(text)
        if found and (_DATE.fullmatch(found[1]) or _ISO.fullmatch(found[1])):
            return found[1]
    return text


def _is_date(line: str) -> bool:
    text = _dated(line)
    return (_DATE.fullmatch(text) or _ISO.fullmatch(text)) is not None


def _date(line: str) -> datetime | None:
    """What `date` prints, None where the calendar has no such day."""
    text = _dated(line)
    found, dated = _DATE.fullmatch(text), _ISO.fullmatch(text)
    if found is None:
        try:
            return datetime.fromisoformat(f"{dated[1]}T{dated[2]}+00:00") if dated else None
        except ValueError:
            return None
    month, day, time, half, year = found.groups()
    clock = "%I:%M:%S %p %z" if half else "%H:%M:%S %z"
    text = f"{year} {month} {day} {time}{half or ''} +0000"
    try:
        return datetime.strptime(text, f"%Y %b %d {clock}")  # noqa: DTZ007 - both end with %z
    except ValueError:
        return None
