"""
`bjobs`, `bjobs -w`, `-W`, `-noheader` and `-o` with a header: jobs that wait or run, as a table.

A row is read by what each column under its header may hold: a name may have blanks, a time has
two or three.  A job that waits has no host, or a `-` there.  Further hosts of the short form stand
alone in the lines below.  A table without a header is read where all its rows fit the default
columns.  What `date` printed above gives `Records.now` and the year.

The default columns say when a job was submitted and not when it began: it has run no longer than
since then.  `EXIT` does not say what ended a job (see `flatline.parsers._lsf`).

Source: IBM Spectrum LSF 10.1, bjobs(1): default output, -w, -W, -o.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache

from flatline.errors import FormatError
from flatline.model import Job, RecordCite, Records, Scalar
from flatline.parsers._lsf import STATES, hosts, moment, printed_at
from flatline.parsers._rows import Row, decoded, mentions, shown
from flatline.parsers._rows import resolved as found_at
from flatline.parsers._slurm import given, latest

FORMAT = "lsf-bjobs"
ZONE_ASSUMED = True
_STATE = "|".join(sorted(STATES, key=len, reverse=True))
_TIME = r"[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d(?::\d\d)?(?: \d{4})?(?: [ELX])?|-"
_WORD = r"\S{1,2000}"
_LOOKS = {
    "JOBID": r"\d{1,12}(?:\[\d{1,9}\])?",
    "STAT": _STATE,
    "JOB_NAME": r"\S(?:.{0,200}\S)?",
    "SUBMIT_TIME": _TIME,
    "START_TIME": _TIME,
    "FINISH_TIME": _TIME,
    "RUN_TIME": r"\d{1,9}(?: second\(s\))?|-",
    **dict.fromkeys(("USER", "QUEUE", "FROM_HOST", "EXEC_HOST", "PROJ_NAME", "PROJ"), _WORD),
    **dict.fromkeys(("CPU_USED", "MEM", "SWAP", "PIDS", "SLOTS", "NEXEC_HOST"), _WORD),
    **dict.fromkeys(("NALLOC_SLOT", "EXIT_CODE", "GPU_NUM"), _WORD),
}
_FIRST = ("JOBID", "USER", "STAT", "QUEUE", "FROM_HOST", "EXEC_HOST")
_DEFAULT = (*_FIRST, "JOB_NAME", "SUBMIT_TIME")
_WAITS = ("PEND", "PSUSP", "WAIT")
_FURTHER = re.compile(r"\s{12,}((?:\d{1,5}\*)?[A-Za-z][\w.-]{0,250})\s*")
_RAN = re.compile(r"(\d{1,9})(?: second\(s\))?")
_ROW = re.compile(rb"(?m)^\d{1,12}(?:\[\d{1,9}\])? +\S{1,40} +(?:RUN|PEND|[PUS]{1,2}SUSP) ")
_PROMPT = re.compile(r"[^|]{0,120}[$#>%] ?(?:bjobs|date)(?: [-\w,=.:%\"' ]{0,160})?")
"""The command itself, as a terminal shows it."""


def recognise(name: str, head: bytes) -> bool:
    """Whether it begins with a header of bjobs', or a row of its default columns, and holds
    nothing but rows."""
    if not mentions(head, "JOBID") and _ROW.search(head[:2_048]) is None:
        return False
    whole = head[: head.rfind(b"\n") + 1] or head
    try:
        lines = [line for line in shown(decoded(whole), _PROMPT) if printed_at(line) is None]
    except FormatError:
        return False
    columns = _columns(lines[0]) if lines else None
    rows = lines if columns is None else lines[1:]
    fits = columns or _DEFAULT
    known = bool(rows) or columns is not None
    return known and all(
        _cut(line, fits) or _columns(line) or (n and _FURTHER.fullmatch(line))
        for n, line in enumerate(rows)
    )


def parse(data: bytes, source: str) -> Records:
    """Raises `FormatError` without a table of bjobs'."""
    jobs, moments = [], list[datetime | None]()
    now: datetime | None = None
    for row, at in _lines(data):
        now = at or now
        moments.append(at)
        if row is not None:
            jobs.append(_job(row, now, source))
    return Records(jobs=tuple(jobs), now=latest(moments))


def resolve(data: bytes, pointer: str) -> Scalar:
    """The value at `row 2, STAT`; rows count from 1, headers and dates left out."""
    return found_at(data, pointer, lambda them: (row for row, _ in _lines(them) if row))


def _columns(line: str) -> tuple[str, ...] | None:
    """The names of a header line, or None."""
    names = tuple(line.split())
    known = len(set(names)) == len(names) and set(names) <= _LOOKS.keys()
    return names if known and {"JOBID", "STAT"} <= set(names) else None


def _lines(data: bytes) -> Iterator[tuple[Row | None, datetime | None]]:
    columns: Sequence[str] = _DEFAULT
    number, headed = 0, False
    last: dict[str, str] | None = None
    for line in shown(decoded(data), _PROMPT):
        at, further = printed_at(line), _FURTHER.fullmatch(line)
        if further is not None and last is not None:
            last["EXEC_HOST"] = f"{last.get('EXEC_HOST', '')}:{further[1]}"
            continue
        if last is not None:
            yield Row(number, last), None
            last = None
        if at is not None:
            yield None, at
        elif (found := _columns(line)) is not None:
            columns, headed = found, True
        elif (last := _cut(line, columns)) is not None:
            number += 1
    if last is not None:
        yield Row(number, last), None
    if not headed and not number:
        raise FormatError("no table of bjobs with JOBID and STAT, or no row in it")


@lru_cache(maxsize=16)
def _pattern(columns: tuple[str, ...], *, waits: bool) -> re.Pattern[str]:
    looks = []
    for name in columns:
        look = rf"(?P<{name}>{_LOOKS[name]})\s+"
        looks.append(rf"(?:(?P<{name}>-)\s+)?" if waits and name == "EXEC_HOST" else look)
    return re.compile(r"\s{0,20}" + "".join(looks))


def _cut(line: str, columns: Sequence[str]) -> dict[str, str] | None:
    """The values of a row; None where the line is none."""
    names, text = tuple(columns), line.rstrip() + " "
    for waits in (True, False):
        found = _pattern(names, waits=waits).fullmatch(text)
        if found is not None and (found["STAT"] in _WAITS) is waits:
            return {key: value for key, value in found.groupdict().items() if value is not None}
    return None


def _job(row: Row, now: datetime | None, source: str) -> Job:
    state = row["STAT"]
    nodes = hosts(row["EXEC_HOST"].split(":")) if row["EXEC_HOST"] not in ("", "-") else ()
    submitted, began = moment(row["SUBMIT_TIME"], now), moment(row["START_TIME"], now)
    told = _RAN.fullmatch(row["RUN_TIME"])
    since = began or submitted
    ran = float(told[1]) if told else (now - since).total_seconds() if now and since else None
    over = STATES[state] in ("completed", "unknown")
    return Job(
        id=row["JOBID"].replace("[", "_").rstrip("]"),
        name=given(row["JOB_NAME"]),
        disposition=STATES[state],
        state=state,
        cite=RecordCite(source, row.pointer("STAT"), state,
                        f"JOBID={row['JOBID']} STAT={state} SUBMIT_TIME={row['SUBMIT_TIME']}"),
        submitted_at=submitted,
        started_at=None if STATES[state] == "pending" else began,
        ended_at=moment(row["FINISH_TIME"], now) if over else None,
        nodes=nodes,
        node_count=len(nodes) or None,
        user=given(row["USER"]),
        partition=given(row["QUEUE"]),
        scheduler="lsf",
        listed=True,
        listed_after_s=ran if STATES[state] == "running" and ran and ran > 0 else None,
    )  # fmt: skip
