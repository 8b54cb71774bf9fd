"""
`qstat -f` of PBS Professional, OpenPBS and Torque, any number of jobs, also with `-x` and
`-F json`.

A job is a line `Job Id: 123.server` and an indented `name = value` for each of its attributes; a
long value goes on in lines that begin with a tab.  The id is what stands before the server's name.

Times carry no zone and are read as UTC (`ZONE_ASSUMED`).  An exit status from 256 on is a signal
that ended the job's shell, a negative one what PBS did: its limits of time and memory are told
apart.  SIGTERM alone is what `qdel` sends.  A job that is over bears when it ended (`obittime`,
Torque's `comp_time`), or began and how long it ran.

Source: qstat(1B), pbs_job_attributes(7B); JOB_EXEC_* of openpbs src/include/job.h; Torque's
"Job Exit Status".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from flatline.errors import FormatError
from flatline.model import Disposition, Job, RecordCite, Records, Scalar
from flatline.parsers._rows import decoded
from flatline.parsers._slurm import count, duration_s, given, latest, oldest_first

FORMAT = "pbs-qstat"
ZONE_ASSUMED = True
_ID = re.compile(r"Job Id: ?(\S{1,200})\s*$")
_ATTRIBUTE = re.compile(r"\s{1,8}([A-Za-z_][\w.]{0,80}) = ?(.*)$")
_STATES: Mapping[str, Disposition] = {
    "R": "running", "E": "running", "Q": "pending", "W": "pending", "H": "pending",
    "T": "pending", "S": "suspended", "U": "suspended",
}  # fmt: skip
_OVER = ("F", "C", "X")
_BY_PBS: Mapping[int, Disposition] = {
    -29: "timeout", -28: "timeout", -27: "out_of_memory", -26: "out_of_memory",
    -11: "requeued", -14: "requeued", -20: "requeued",
}  # fmt: skip
"""Limits of wall time, CPU time, memory and virtual memory; jobs that are run again."""
SIGNALLED, SIGTERM = 256, 15
_HOST = re.compile(r"(?:^|\+)\(?([A-Za-z0-9][\w.-]{0,252})")
_GPUS = re.compile(r"\bngpus=(\d{1,4})\b")
_WORK_DIR = re.compile(r"\bPBS_O_WORKDIR=([^,\s]{1,1000})")
_POINTER = re.compile(r"job (\S{1,200}), ([\w.]{1,80})")
Attributes = Mapping[str, str]


def recognise(name: str, head: bytes) -> bool:
    """Whether its first line but for a prompt names a job, or it is PBS's JSON of jobs."""
    if b"Job Id: " in head[:4_096]:
        lines = [line for line in decoded(head[:4_096]).split("\n") if line.strip()][:3]
        return any(map(_ID.match, lines))
    return head.lstrip()[:1] == b"{" and b'"pbs_version"' in head and b'"Jobs"' in head


def parse(data: bytes, source: str) -> Records:
    """Raises `FormatError` where no job is named."""
    told = dict(_jobs(data))
    if not told:
        raise FormatError("no record of qstat -f: no line names a Job Id")
    jobs = oldest_first([_job(name, said, source) for name, said in told.items()])
    return Records(jobs=jobs, now=latest(map(_vouched, told.values())))


def resolve(data: bytes, pointer: str) -> Scalar:
    """The value at `job 123.server, job_state`."""
    found = _POINTER.fullmatch(pointer)
    said = dict(_jobs(data)).get(found[1]) if found else None
    if found is None or said is None or found[2] not in said:
        raise FormatError(f"{pointer!r} is no place in this record")
    return said[found[2]]


def _jobs(data: bytes) -> Iterator[tuple[str, Attributes]]:
    text = decoded(data)
    yield from _of_json(text) if text.lstrip()[:1] == "{" else _of_text(text)


def _of_text(text: str) -> Iterator[tuple[str, Attributes]]:
    name, said, key = "", dict[str, str](), ""
    for line in text.split("\n"):
        if found := _ID.match(line):
            if name:
                yield name, said
            name, said, key = found[1], {}, ""
        elif name and key and line.startswith("\t"):
            said[key] += line.strip()
        elif name and (found := _ATTRIBUTE.match(line)):
            key = found[1]
            said[key] = found[2].strip()
    if name:
        yield name, said


def _of_json(text: str) -> Iterator[tuple[str, Attributes]]:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise FormatError(f"no JSON of qstat: {fault}") from fault
    jobs = told.get("Jobs") if isinstance(told, dict) else None
    for name, said in jobs.items() if isinstance(jobs, dict) else ():
        if isinstance(said, dict):
            yield str(name), dict(_flat(said))


def _flat(said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Attributes by the names of the text, whose resources stand behind a dot."""
    for key, value in said.items():
        if isinstance(value, dict) and key == "Variable_List":
            yield key, ",".join(f"{name}={text}" for name, text in value.items())
        elif isinstance(value, dict):
            yield from ((f"{key}.{name}", str(text)) for name, text in value.items())
        else:
            yield key, str(value)


def _job(name: str, said: Attributes, source: str) -> Job:
    state, started = said.get("job_state", ""), _time(said.get("stime"))
    status = _signed(said.get("Exit_status") or said.get("exit_status"))
    over = state in _OVER
    ended = _ended(said) if over else None
    number = name.partition(".")[0]
    key = "job_state" if state else next(iter(said), "job_state")
    shown = [f"{k}={said[k]}" for k in ("job_state", "Exit_status", "exit_status") if k in said]
    nodes = tuple(dict.fromkeys(_HOST.findall(said.get("exec_host", ""))))
    return Job(
        id=number,
        name=given(said.get("Job_Name")),
        disposition=_disposition(said, state, status),
        state=state,
        cite=RecordCite(source, f"job {name}, {key}", said.get(key, ""),
                        " ".join((f"Job Id: {number}", *shown)), at=ended),
        reason=given(said.get("comment")),
        exit_code=status if over and status is not None and 0 <= status < SIGNALLED else None,
        signal=status - SIGNALLED if over and status is not None and status > SIGNALLED else None,
        submitted_at=_time(said.get("qtime")) or _time(said.get("ctime")),
        started_at=None if _STATES.get(state) == "pending" else started,
        ended_at=ended,
        limit_s=duration_s(said.get("Resource_List.walltime", "")),
        nodes=nodes,
        node_count=count(said.get("Resource_List.nodect")) or len(nodes) or None,
        gpus=_gpus(said),
        restarts=max(0, (count(said.get("run_count")) or 1) - 1),
        dependency=given(said.get("depend")),
        submit_line=given(said.get("Submit_arguments")),
        work_dir=given(next(iter(_WORK_DIR.findall(said.get("Variable_List", ""))), None)),
        std_out=given(said.get("Output_Path", "").partition(":")[2]),
        std_err=given(said.get("Error_Path", "").partition(":")[2]),
        user=given(said.get("Job_Owner", "").partition("@")[0]),
        partition=given(said.get("queue")),
        scheduler="pbs",
    )  # fmt: skip


def _disposition(said: Attributes, state: str, status: int | None) -> Disposition:
    if state not in _OVER or status is None:
        return _STATES.get(state, "unknown")
    limit, ran = (duration_s(said.get(key, "")) for key in
                  ("Resource_List.walltime", "resources_used.walltime"))  # fmt: skip
    if status == 0:
        return "completed"
    if status < 0:
        return _BY_PBS.get(status, "failed")
    if status == SIGNALLED + SIGTERM:
        return "timeout" if limit and ran and ran >= limit else "cancelled"
    return "failed"


def _gpus(said: Attributes) -> int | None:
    each = [int(n) for n in _GPUS.findall(said.get("exec_vnode", ""))]
    return count(said.get("Resource_List.ngpus")) or sum(each) or None


def _ended(said: Attributes) -> datetime | None:
    told = _time(said.get("obittime")) or _time(said.get("comp_time"))
    return told or _ran_until(said)


def _ran_until(said: Attributes) -> datetime | None:
    start, ran = _time(said.get("stime")), duration_s(said.get("resources_used.walltime", ""))
    return start + timedelta(seconds=min(ran, 1e9)) if start and ran else None


def _vouched(said: Attributes) -> datetime | None:
    """The latest instant that a job's attributes prove to have come."""
    return latest([_time(said.get("mtime")), _time(said.get("stime")), _ran_until(said)])


def _time(text: str | None) -> datetime | None:
    """Of ctime(3); None for what is no time."""
    try:
        return datetime.strptime(text or "", "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
    except ValueError:
        return None


def _signed(text: str | None) -> int | None:
    """A number that may be below zero; None for what is none."""
    return int(text) if text and re.fullmatch(r"-?\d{1,6}", text) else None
