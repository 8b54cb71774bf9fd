"""
`bjobs -l` and `bhist -l`: one job after the other, what it was and what became of it, by event.

A job begins with `Job <123>, Job Name <x>, ...`; below stand its events, each behind when it came.
What is too long goes on in indented lines, cut amid words; `-UF` leaves it in one.  Times have no
year: without one that `date` printed above they are left out.  A job that was dispatched several
times was run again: it is read as it ran last.

Source: IBM Spectrum LSF 10.1, bjobs(1) and bhist(1), -l and -UF.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from flatline.errors import FormatError
from flatline.model import Disposition, Job, RecordCite, Records, Scalar
from flatline.parsers._exits import ended
from flatline.parsers._lsf import STAMP, STATES, ended_by, hosts, moment, printed_at
from flatline.parsers._rows import beginning, decoded, top
from flatline.parsers._slurm import given, latest, oldest_first

FORMAT = "lsf-long"
ZONE_ASSUMED = True
_JOB = re.compile(r"Job <(\d{1,12}(?:\[\d{1,9}\])?)>,? ")
_SAYS = re.compile(r"\b(Job Name|User|Status|Queue) <([^>]{0,400})>")
_EVENT = re.compile(rf"({STAMP}): +(\S.*)")
_INDENT = 17
"""Of what goes on: 21 blanks, or 22 of bhist's."""
_HELD = re.compile(r"(?:Started|Dispatched).{0,60}?((?:<[^>]{1,300}>[, ]{0,2})+)")
_HOST = re.compile(r"<((?:\d{1,5}\*)?[A-Za-z][^>]{0,250})>")
_BEGINS, _ENDS = ("Started", "Dispatched"), ("Exited", "Done", "Completed")
_EXIT = re.compile(r"Exited with exit code (\d{1,4})\.")
_SIGNAL = re.compile(r"Exited by signal (\d{1,3})\.")
_LIMIT = re.compile(r"\s*(\d{1,7}(?:\.\d)?) min(?: of \S{1,200})?\s*")
_QUEUE = re.compile(r"to Queue <([^>]{1,200})>")
_PROMPT = re.compile(r"[^|]{0,120}[$#>%] ?(?:bjobs|bhist|date)(?: [-\w,=.:%\"' ]{0,160})?")
_POINTER = re.compile(r"job (\S{1,40}), (\w{1,20})")


@dataclass(slots=True)
class _Told:
    """One job, its lines put together: `said` is what names it."""

    id: str
    said: str
    events: list[tuple[str, str]] = field(default_factory=list)
    limit_s: float | None = None

    def begun(self) -> list[int]:
        """Which of its events are that it was dispatched."""
        return [n for n, (_, text) in enumerate(self.events) if text.startswith(_BEGINS)]

    def lately(self) -> list[tuple[str, str]]:
        """Its events since it was dispatched last."""
        begun = self.begun()
        return self.events[begun[-1] if begun else 0 :]

    def values(self) -> Mapping[str, str]:
        """By the names that pointers have."""
        over = [text for _, text in self.lately() if text.startswith(_ENDS)]
        told = {"status": state} if (state := dict(_SAYS.findall(self.said)).get("Status")) else {}
        return told | ({"ended": " ".join(over)} if over else {}) | {"job": self.id}


def recognise(name: str, head: bytes) -> bool:
    """Whether the first line but for a prompt or a date names a job, and an event stands below."""
    if b"Job <" not in head:
        return False
    lines = [line for line in top(head, _PROMPT) if printed_at(line) is None]
    begins = bool(lines) and _JOB.match(lines[0].lstrip()) is not None
    return begins and any(map(_EVENT.match, beginning(head)))


def parse(data: bytes, source: str) -> Records:
    """Raises `FormatError` where no job is named."""
    told, now = _jobs(data)
    if not told:
        raise FormatError("no record of bjobs -l or bhist -l: no line names a job")
    return Records(jobs=oldest_first([_job(one, now, source) for one in told]), now=now)


def resolve(data: bytes, pointer: str) -> Scalar:
    """The value at `job 123, status` or `job 123, ended`."""
    found = _POINTER.fullmatch(pointer)
    for one in _jobs(data)[0] if found else ():
        values = one.values()
        if found and one.id == found[1] and found[2] in values:
            return values[found[2]]
    raise FormatError(f"{pointer!r} is no place in this record")


def _jobs(data: bytes) -> tuple[list[_Told], datetime | None]:
    told, nows = list[_Told](), list[datetime | None]()
    limited = False
    for line in _joined(decoded(data)):
        begins, event = _JOB.match(line), _EVENT.fullmatch(line)
        if begins is not None:
            told.append(_Told(begins[1], line))
        elif (at := printed_at(line)) is not None:
            nows.append(at)
        elif told and event is not None:
            told[-1].events.append((event[1], event[event.re.groups]))
        elif told and limited and (limit := _LIMIT.fullmatch(line)) is not None:
            told[-1].limit_s = 60.0 * float(limit[1])
        limited = line.strip() == "RUNLIMIT"
    return told, latest(nows)


def _joined(text: str) -> Iterator[str]:
    """Lines with those that go on below them."""
    whole = ""
    for line in text.split("\n"):
        if whole and line.startswith(" " * _INDENT) and (_JOB.match(whole) or _EVENT.match(whole)):
            whole += line[_INDENT:].lstrip()
            continue
        yield whole
        whole = line.lstrip() if _JOB.match(line.lstrip()) else line
    yield whole


def _job(told: _Told, now: datetime | None, source: str) -> Job:
    says, values = dict(_SAYS.findall(told.said)), told.values()
    over, events = values.get("ended", ""), told.events
    by, reason = ended_by(over)
    code, sign = _EXIT.search(over), _SIGNAL.search(over)
    left = ended(int(code[1])) if code else (None, int(sign[1]) if sign else None)
    begun = [events[n] for n in told.begun()]
    held = _HELD.match(begun[-1][1]) if begun else None
    nodes = hosts(_HOST.findall(held[1])) if held else ()
    queue = next((found[1] for _, text in events if (found := _QUEUE.search(text))), None)
    state = says.get("Status", "")
    disposition = by or _disposition(over, state)
    key = "ended" if over else "status" if state else "job"
    end = [moment(at, now) for at, text in told.lately() if text.startswith(_ENDS)]
    return Job(
        id=told.id.replace("[", "_").rstrip("]"),
        name=given(says.get("Job Name")),
        disposition=disposition,
        state=state or ("EXIT" if "<exit>" in over else "DONE" if over else ""),
        cite=RecordCite(source, f"job {told.id}, {key}", values[key],
                        f"Job <{told.id}> {values[key]}", at=latest(end)),
        reason=reason,
        exit_code=left[0],
        signal=left[1],
        submitted_at=next((moment(at, now) for at, text in events
                           if text.startswith("Submitted")), None),
        started_at=moment(begun[-1][0], now) if begun else None,
        ended_at=latest(end),
        limit_s=told.limit_s,
        nodes=nodes,
        node_count=len(nodes) or None,
        restarts=max(0, len(begun) - 1),
        user=given(says.get("User")),
        partition=given(says.get("Queue") or queue),
        scheduler="lsf",
    )  # fmt: skip


def _disposition(over: str, state: str) -> Disposition:
    if "Done successfully" in over or "Completed <done>" in over:
        return "completed"
    if over.startswith("Exited") or "Completed <exit>" in over:
        return "failed"
    return STATES.get(state, "unknown")
