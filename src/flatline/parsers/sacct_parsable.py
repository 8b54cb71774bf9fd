"""
`sacct -P` and `-p`: any columns, any delimiter, with their header; and sacct's plain table.

Rows are jobs (`5`, `16_2`, `20+1`) or steps (`5.batch`, `5.extern`, `5.0`).  A requeued job has
several rows (`-D`), each followed by its own steps.  Steps go to the row of their job before
them, else to the one after; without any, to a job that the file does not describe: state "" and
disposition "unknown".

Times carry no zone and are read as UTC (`ZONE_ASSUMED`).  Exit codes of 128 and more are printed
less 128 (see `_slurm`).  The plain table is read only with the line of dashes under its header,
which tells the columns apart; `OUT_OF_ME+` and `5.bat+` are completed, any other cut job id is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from flatline.errors import FormatError
from flatline.model import Job, RecordCite, Records, Scalar, Step
from flatline.parsers._rows import Row, Shape, beginning, decoded, header, mentions, resolved, rows
from flatline.parsers._slurm import (
    BASES,
    ENDED,
    FLAGS,
    cancelled_by,
    count,
    disposition,
    duration_s,
    exit_pair,
    given,
    gpus,
    hosts,
    latest,
    oldest_first,
    read_time,
    state_words,
)

FORMAT = "sacct-parsable"
ZONE_ASSUMED = True
COLUMNS = (
    "Account AdminComment AllocCPUS AllocGRES AllocNodes AllocTRES AssocID AveCPU AveCPUFreq "
    "AveDiskRead AveDiskWrite AvePages AveRSS AveVMSize BlockID Cluster Comment Constraints "
    "ConsumedEnergy ConsumedEnergyRaw Container CPUTime CPUTimeRAW DBIndex DerivedExitCode "
    "Elapsed ElapsedRaw Eligible End ExitCode Extra FailedNode Flags GID Group JobID JobIDRaw "
    "JobName Layout Licenses MaxDiskRead MaxDiskReadNode MaxDiskReadTask MaxDiskWrite "
    "MaxDiskWriteNode MaxDiskWriteTask MaxPages MaxPagesNode MaxPagesTask MaxRSS MaxRSSNode "
    "MaxRSSTask MaxVMSize MaxVMSizeNode MaxVMSizeTask McsLabel MinCPU MinCPUNode MinCPUTask "
    "NCPUS NNodes NodeList NTasks Partition Planned PlannedCPU PlannedCPURAW Priority QOS QOSRAW "
    "QOSREQ Reason ReqCPUFreq ReqCPUFreqGov ReqCPUFreqMax ReqCPUFreqMin ReqCPUS ReqGRES ReqMem "
    "ReqNodes ReqReservation ReqTRES Reservation ReservationId Reserved ResvCPU ResvCPURAW "
    "Restarts SegmentSize SLUID Start State StdErr StdIn StdOut Submit SubmitLine Suspended "
    "SystemComment SystemCPU Timelimit TimelimitRaw TotalCPU TRESUsageInAve TRESUsageInMax "
    "TRESUsageInMaxNode TRESUsageInMaxTask TRESUsageInMin TRESUsageInMinNode TRESUsageInMinTask "
    "TRESUsageInTot TRESUsageOutAve TRESUsageOutMax TRESUsageOutMaxNode TRESUsageOutMaxTask "
    "TRESUsageOutMin TRESUsageOutMinNode TRESUsageOutMinTask TRESUsageOutTot UID User UserCPU "
    "WCKey WCKeyID WorkDir"
)
_JOB_ID = re.compile(r"(\d+(?:_(?:\d+|\[[^\]\s]{1,4000}\]?))?(?:\+\d+)?)(?:\.(\S{1,40}))?")
_CODE = re.compile(r"(\d+:\d+)?")
_TRES = re.compile(r"(?:[\w./:+-]+=[\w./:+-]+(?:,[\w./:+-]+=[\w./:+-]+)*)?")
_TIME = re.compile(r"[\w.:+-]{0,40}")
SHAPE = Shape(
    columns={name.lower(): name for name in COLUMNS.split()},
    needs=frozenset({"JobID", "JobIDRaw"}),
    looks={
        "JobID": _JOB_ID,
        "JobIDRaw": _JOB_ID,
        "State": re.compile(r"(?:[A-Z_]+(?:[,+ ].{0,80})?)?"),
        "ExitCode": _CODE,
        "DerivedExitCode": _CODE,
        "Start": _TIME,
        "End": _TIME,
        "Submit": _TIME,
        "Restarts": re.compile(r"\d*"),
        "NodeList": re.compile(r"[\w\[\],. ()+-]*"),
        "WorkDir": re.compile(r"(?s:/.*)?"),
        "AllocTRES": _TRES,
        "ReqTRES": _TRES,
    },
    free=frozenset(
        {
            "AdminComment", "AllocTRES", "Comment", "Constraints", "Container", "Extra",
            "JobName", "NodeList", "Reason", "ReqTRES",
            "StdErr", "StdIn", "StdOut", "SubmitLine", "SystemComment", "WCKey", "WorkDir",
        }
    ),
)  # fmt: skip
_DASHES = re.compile(r"-{2,}(?: +-{2,})+")
_STEPS = ("batch", "extern", "interactive")


# --- the plain table ---


def _table_at(lines: Sequence[str]) -> int | None:
    """The index of the line of dashes under a header that names JobID, or None."""
    for index, line in enumerate(lines[1:41], start=1):
        if _DASHES.fullmatch(line.strip()) and "JobID" in lines[index - 1]:
            return index
    return None


def _whole_state(text: str) -> str:
    if not text.endswith("+"):
        return text
    full = [name for name in (*BASES, *FLAGS) if name.startswith(text[:-1])]
    return full[0] if len(full) == 1 else text


def _whole_id(text: str) -> str:
    if not text.endswith("+"):
        return text
    job_id, dot, step = text[:-1].partition(".")
    full = [name for name in _STEPS if dot and step and name.startswith(step)]
    if len(full) == 1:
        return f"{job_id}.{full[0]}"
    raise FormatError(f"the JobID column cut {text!r} short: print it with sacct -P")


def _table(lines: list[str], at: int) -> Iterator[Row]:
    """Rows of the plain table by the columns its dashes mark."""
    spans = [found.span() for found in re.finditer(r"-+", lines[at])]
    names = [lines[at - 1][start:end].strip() for start, end in spans]
    known = [SHAPE.columns.get(name.lower(), name) for name in names]
    if "JobID" not in known:
        raise FormatError("a table of sacct without a JobID column: print it with sacct -P")
    number = 0
    for line in lines[at + 1 :]:
        values = {
            name: line[start:end].strip() for name, (start, end) in zip(known, spans, strict=True)
        }
        if not values["JobID"]:
            continue
        number += 1
        values["JobID"] = _whole_id(values["JobID"])
        if "State" in values:
            values["State"] = _whole_state(values["State"])
        if _JOB_ID.fullmatch(values["JobID"]):
            yield Row(number, values)


def _read(data: bytes) -> Iterator[Row]:
    text = decoded(data)
    lines = text.split("\n")
    at = _table_at(lines)
    return rows(text, SHAPE) if at is None else _table(lines, at)


# --- rows to jobs ---


def _cite(row: Row, source: str, ended: datetime | None) -> RecordCite:
    column = next((c for c in ("State", "JobID", "JobIDRaw") if row[c]), "JobID")
    shown = [c for c in ("JobID", "State", "ExitCode") if row[c]]
    return RecordCite(
        source=source,
        pointer=row.pointer(column),
        value=row[column],
        text=" ".join(f"{c}={row[c].strip()}" for c in shown) or f"{column}={row[column]}",
        at=ended,
    )


def _job(row: Row, job_id: str, source: str) -> Job:
    state = row["State"].strip()
    ending = disposition(state_words(state))
    over = ending in ENDED or not state
    code, sign = exit_pair(row["ExitCode"], ending) if over else (None, None)
    derived, derived_sign = exit_pair(row["DerivedExitCode"], "failed")  # keeps the OOM mark
    limit = count(row["TimelimitRaw"])
    ended = read_time(row["End"]) if over else None
    return Job(
        id=job_id,
        name=given(row["JobName"]),
        disposition=ending,
        state=state,
        cite=_cite(row, source, ended),
        reason=given(row["Reason"]),
        exit_code=code,
        signal=sign,
        derived_exit_code=derived,
        derived_signal=derived_sign,
        submitted_at=read_time(row["Submit"]),
        started_at=read_time(row["Start"]),
        ended_at=ended,
        limit_s=limit * 60.0 if limit is not None else duration_s(row["Timelimit"]),
        nodes=hosts(row["NodeList"]),
        node_count=count(row["NNodes"]) or count(row["AllocNodes"]),
        tasks=count(row["NTasks"]),
        gpus=gpus(row["AllocTRES"]) or gpus(row["ReqTRES"]),
        restarts=count(row["Restarts"]),
        submit_line=given(row["SubmitLine"]),
        work_dir=given(row["WorkDir"]),
        std_out=given(row["StdOut"]),
        std_err=given(row["StdErr"]),
        cancelled_by=cancelled_by(state),
        failed_node=given(row["FailedNode"]),
        user=given(row["User"]),
        partition=given(row["Partition"]),
    )


def _step(row: Row, step_id: str, source: str) -> Step:
    state = row["State"].strip()
    ending = disposition(state_words(state))
    over = ending in ENDED or not state
    code, sign = exit_pair(row["ExitCode"], ending) if over else (None, None)
    ended = read_time(row["End"]) if over else None
    return Step(
        id=step_id,
        name=given(row["JobName"]) or step_id,
        disposition=ending,
        state=state,
        cite=_cite(row, source, ended),
        exit_code=code,
        signal=sign,
        started_at=read_time(row["Start"]),
        ended_at=ended,
        nodes=hosts(row["NodeList"]),
        tasks=count(row["NTasks"]),
    )


def _vouched(row: Row) -> datetime | None:
    """The latest instant a row proves to have come: a running job's start and time since."""
    ending = disposition(state_words(row["State"]))
    start = read_time(row["Start"])
    moments = [read_time(row["Submit"])]
    if ending in ENDED:
        moments += [start, read_time(row["End"])]
    elapsed = count(row["ElapsedRaw"]) or duration_s(row["Elapsed"])
    if start and elapsed and ending in ("running", "suspended"):
        moments.append(start + timedelta(seconds=min(elapsed, 1e9)))
    return latest(moments)


def parse(data: bytes, source: str) -> Records:
    """Raises `FormatError` without a header, or where no row is a job or step."""
    jobs: list[tuple[Job, list[Step]]] = []
    last: dict[str, list[Step]] = {}
    waiting: dict[str, list[Step]] = {}
    moments: list[datetime | None] = []
    for row in _read(data):
        found = _JOB_ID.fullmatch((row["JobID"] or row["JobIDRaw"]).strip())
        if found is None:
            continue
        job_id, step_id = found[1], found[2]
        moments.append(_vouched(row))
        if step_id is not None:
            steps = last.get(job_id)
            steps = waiting.setdefault(job_id, []) if steps is None else steps
            steps.append(_step(row, step_id, source))
        else:
            last[job_id] = waiting.pop(job_id, [])
            jobs.append((_job(row, job_id, source), last[job_id]))
    for job_id, steps in waiting.items():
        jobs.append((Job(job_id, None, "unknown", "", steps[0].cite), steps))
    if not jobs:
        raise FormatError("a sacct header without a row that is a job or a step")
    whole = [replace(job, steps=tuple(steps)) for job, steps in jobs]
    return Records(jobs=oldest_first(whole), now=latest(moments))


def recognise(name: str, head: bytes) -> bool:
    """Whether one of the first lines is a header of sacct's columns."""
    if not mentions(head, *SHAPE.needs):
        return False
    lines = beginning(head)
    return _table_at(lines) is not None or any(header(line, SHAPE) for line in lines)


def resolve(data: bytes, pointer: str) -> Scalar:
    """The value at `row 12, State`; rows count from 1, headers left out."""
    return resolved(data, pointer, _read)
