"""
`qstat -f` of PBS Professional and OpenPBS, of jobs that run.

    Job Id: 5120.pbs01
        job_state = R
        exec_host = n1/0*64+n2/0*64

A value that is too long goes on in lines that begin with a tab.  Jobs that wait or have ended are
left to the lines of the log: how PBS came to end a job is told by an exit status of many meanings.

Times carry no zone and are read as UTC (`ZONE_ASSUMED`).  A job's own time since its start vouches
for the moment at which it was asked for.

Source: PBS Professional reference guide, qstat and job attributes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from flatline.errors import FormatError
from flatline.model import Job, RecordCite, Records, Scalar
from flatline.parsers._rows import decoded
from flatline.parsers._slurm import duration_s, given, latest, oldest_first

FORMAT = "qstat-full"
ZONE_ASSUMED = True
IN_LINES = True
_ID = re.compile(r"Job Id: (\d{1,12}(?:\[\d{0,7}\])?)[\w.-]{0,200}\s*")
_FIELD = re.compile(r" {4}(\w[\w.]{0,60}) = (.{0,20000})")
_RUNS = re.compile(rb"(?m)^ {4}job_state = R\s*$")
_CHUNK = re.compile(r"([A-Za-z][\w.-]{0,200})/\d{1,6}(?:\*\d{1,6})?")
_POINTER = re.compile(r"(\d{1,12}(?:\[\d{0,7}\])?), (\w[\w.]{0,60})")


def _jobs(data: bytes) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Ids without the server's name, and what is told of each."""
    name, fields, last = "", dict[str, str](), ""
    for line in decoded(data).split("\n"):
        if begins := _ID.fullmatch(line):
            if name:
                yield name, fields
            name, fields, last = begins[1], {}, ""
        elif found := _FIELD.fullmatch(line.rstrip("\r")):
            last = found[1]
            fields.setdefault(last, found[2].strip())
        elif line.startswith("\t") and last:
            fields[last] += line.strip()
    if name:
        yield name, fields


def _time(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
    except ValueError:
        return None


def _job(name: str, fields: Mapping[str, str], source: str) -> Job:
    chunks = [_CHUNK.fullmatch(chunk) for chunk in fields.get("exec_host", "").split("+")]
    nodes = tuple(dict.fromkeys(chunk[1] for chunk in chunks if chunk)) if all(chunks) else ()
    return Job(
        id=name,
        name=given(fields.get("Job_Name")),
        disposition="running",
        state="R",
        cite=RecordCite(source, f"{name}, job_state", "R", f"Job Id: {name} job_state = R"),
        started_at=_time(fields.get("stime", "")),
        limit_s=duration_s(fields.get("Resource_List.walltime", "")),
        nodes=nodes,
        node_count=len(nodes) or None,
        partition=given(fields.get("queue")),
        scheduler="pbs",
    )


def _vouched(fields: Mapping[str, str]) -> datetime | None:
    start = _time(fields.get("stime", ""))
    elapsed = duration_s(fields.get("resources_used.walltime", ""))
    return start + timedelta(seconds=min(elapsed, 1e9)) if start and elapsed else start


def parse(data: bytes, source: str) -> Records:
    """Raises `FormatError` where no job runs."""
    running = [(n, fields) for n, fields in _jobs(data) if fields.get("job_state") == "R"]
    if not running:
        raise FormatError("no job of qstat -f that runs")
    jobs = [_job(name, fields, source) for name, fields in running]
    return Records(jobs=oldest_first(jobs), now=latest(_vouched(told) for _, told in running))


def recognise(name: str, head: bytes) -> bool:
    """Whether it begins with a job, and one of its first runs."""
    return head.lstrip().startswith(b"Job Id: ") and _RUNS.search(head) is not None


def resolve(data: bytes, pointer: str) -> Scalar:
    """The value at `5120, job_state`."""
    found = _POINTER.fullmatch(pointer)
    told = None if found is None else next((f for n, f in _jobs(data) if n == found[1]), None)
    if found is None or told is None or found[2] not in told:
        raise FormatError(f"{pointer!r} is not there")
    return told[found[2]]
