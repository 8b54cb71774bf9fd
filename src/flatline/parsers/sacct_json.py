"""
`sacct --json`, and slurmrestd's `/slurmdb/vX/jobs` and `/slurmdb/vX/job/ID`.

Read from the dialects of Slurm 22.05 (v0.0.38) to 25.11 (v0.0.44).  Times are seconds since the
epoch, so no zone is assumed.  A requeued job stands there once a run; its rows are ordered
oldest first.  `Job.id` is spelt as sacct prints it: `16_2` for an array task, `20+1` for a part
of a heterogeneous job; the raw id is not kept.

Two traps of the older dialects: every exit code is printed as 0 (see `_slurm_json.exit_code`),
and there is no count of restarts.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from flatline.errors import FormatError
from flatline.logs.hostlists import LIMIT
from flatline.model import Job, RecordCite, Records, Step
from flatline.parsers._slurm import (
    ENDED,
    disposition,
    from_epoch,
    given,
    hosts,
    latest,
    oldest_first,
)
from flatline.parsers._slurm_json import (
    Node,
    cited,
    exit_code,
    left_out,
    loaded,
    odd_fields,
    resolve,
)

__all__ = ["FORMAT", "ZONE_ASSUMED", "parse", "recognise", "resolve"]

FORMAT = "sacct-json"
ZONE_ASSUMED = False
_MARKS = re.compile(rb'openapi\\?/(?:dbv0|slurmdbd)|"(?:allocation_nodes|administrator|sacct)"')
_LIST = re.compile(rb'"jobs"\s*:\s*\[')
SPECIAL_STEPS = {
    0xFFFF_FFFA: "interactive",
    0xFFFF_FFFB: "batch",
    0xFFFF_FFFC: "extern",
    0xFFFF_FFFD: "pending",
}
STEP_WORDS = {"TBD": "pending"}
_TIMES = {f"time/{name}": "number" for name in ("start", "end", "elapsed")}
KINDS_OF_JOB = {
    **_TIMES, "time/submission": "number", "time/limit": "number", "name": "text",
    "exit_code": "exit", "derived_exit_code": "exit", "nodes": "text", "steps": "rows",
    "state/current": "state", "submit_line": "text", "working_directory": "text",
}  # fmt: skip
KINDS_OF_STEP = {**_TIMES, "exit_code": "exit", "state": "state"}


def recognise(name: str, head: bytes) -> bool:
    """Whether the head is JSON of the accounting database, whatever the file is called."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return start.startswith(b"{") and bool(_MARKS.search(start) and _LIST.search(start))


def _job_id(job: Node) -> str | None:
    raw = job["job_id"].integer
    if raw is None:
        return job["job_id"].text
    het, offset = job["het/job_id"].integer, job["het/job_offset"].integer
    if het and offset is not None:
        return f"{het}+{offset}"
    array, task = job["array/job_id"].integer, job["array/task_id"].integer
    if array and task is not None:
        return f"{array}_{task}"
    tasks = job["array/task"].text
    return f"{array}_[{tasks}]" if array and tasks else str(raw)


def _step_id(step: Node) -> str:
    """ "batch", "extern", "interactive" or a number as text, from any of the spellings."""
    for path in ("step/id/step_id", "step/id"):
        found = step[path]
        raw = found.value.get("number") if isinstance(found.value, dict) else found.value
        if isinstance(raw, int) and raw in SPECIAL_STEPS:
            return SPECIAL_STEPS[raw]
        text = found.text
        if text:
            word = text.rpartition(".")[2]
            return STEP_WORDS.get(word, word)
    return "unknown"


def _seconds(job: Node, path: str) -> datetime | None:
    return from_epoch(job[path].number)


def _line(job_id: str, state: str, code: int | None, sign: int | None) -> str:
    text = f"JobID={job_id} State={state or 'unknown'}"
    if sign is not None:
        return f"{text} ExitCode=0:{sign}"
    return text if code is None else f"{text} ExitCode={code}:0"


def _tres_gpus(job: Node) -> int | None:
    for path in ("tres/allocated", "tres/requested"):
        rows = [row for row in job[path] if row["type"].text == "gres"]
        plain = [row["count"].integer for row in rows if row["name"].text == "gpu"]
        typed = [
            row["count"].integer or 0
            for row in rows
            if (row["name"].text or "").startswith("gpu:")
        ]
        if plain and plain[0] is not None:
            return plain[0]
        if typed:
            return sum(typed)
    return None


def _step_nodes(step: Node) -> tuple[str, ...]:
    listed = step["nodes/list"].words
    if listed:
        return tuple(listed[:LIMIT])
    return hosts(step["nodes/range"].text or step["nodes"].text or "")


def _step(step: Node, job_id: str, source: str) -> Step:
    words = step["state"].words
    state = "+".join(words)
    ending = disposition(words)
    code, sign = exit_code(step["exit_code"], ending)
    step_id = _step_id(step)
    pointer, value = cited(step["state"], step["step/name"], step["step/id"])
    ended = _seconds(step, "time/end") if ending in ENDED else None
    return Step(
        id=step_id,
        name=step["step/name"].text or step_id,
        disposition=ending,
        state=state,
        cite=RecordCite(
            source=source,
            pointer=pointer,
            value=value,
            text=_line(f"{job_id}.{step_id}", state, code, sign),
            at=ended,
        ),
        exit_code=code,
        signal=sign,
        started_at=_seconds(step, "time/start"),
        ended_at=ended,
        nodes=_step_nodes(step),
        tasks=step["tasks/count"].integer,
    )


def _job(job: Node, source: str) -> Job | None:
    job_id = _job_id(job)
    if job_id is None:
        return None
    words = job["state/current"].words
    where = job["state/current"] if words else job["state"]
    words = where.words
    state = "+".join(words)
    ending = disposition(words)
    code, sign = exit_code(job["exit_code"], ending)
    derived, derived_sign = exit_code(job["derived_exit_code"], "failed")  # keeps the OOM mark
    limit = job["time/limit"].number
    pointer, value = cited(where, job["job_id"])
    ended = _seconds(job, "time/end") if ending in ENDED else None
    return Job(
        id=job_id,
        name=job["name"].text,
        disposition=ending,
        state=state,
        cite=RecordCite(
            source=source,
            pointer=pointer,
            value=value,
            text=_line(job_id, state, code, sign),
            at=ended,
        ),
        reason=given(job["state/reason"].text),
        exit_code=code,
        signal=sign,
        derived_exit_code=derived,
        derived_signal=derived_sign,
        submitted_at=_seconds(job, "time/submission"),
        started_at=_seconds(job, "time/start"),
        ended_at=ended,
        limit_s=None if limit is None else limit * 60.0,
        nodes=hosts(job["nodes"].text or ""),
        node_count=job["allocation_nodes"].integer or None,
        gpus=_tres_gpus(job),
        restarts=job["restart_cnt"].integer,
        submit_line=job["submit_line"].text,
        work_dir=job["working_directory"].text,
        std_out=job["stdout_expanded"].text or job["stdout"].text,
        std_err=job["stderr_expanded"].text or job["stderr"].text,
        cancelled_by=job["kill_request_user"].text if ending == "cancelled" else None,
        failed_node=given(job["failed_node"].text),
        user=given(job["association/user"].text or job["user"].text),
        partition=given(job["partition"].text),
        steps=tuple(_step(step, job_id, source) for step in job["steps"]),
    )


def _vouched(job: Node) -> datetime | None:
    """The latest time of a row: of a running job, its start and how long it had run."""
    start, elapsed = _seconds(job, "time/start"), job["time/elapsed"].number
    moments = [_seconds(job, "time/submission")]
    words = job["state/current"].words
    if disposition(words) in ENDED:
        moments.append(_seconds(job, "time/end"))
    if start and elapsed is not None and elapsed < 1e9:
        moments.append(start + timedelta(seconds=elapsed))
    return latest(moments)


def parse(data: bytes, source: str) -> Records:
    """Raises `FormatError` where there are no accounting rows, or where some row is unreadable."""
    document = Node(loaded(data))
    rows = [row for row in document["jobs"] if isinstance(row.value, dict)]
    if not isinstance(document["jobs"].value, list) or any("job_state" in r.value for r in rows):
        raise FormatError("no sacct JSON: it has no list of accounting rows called 'jobs'")
    jobs = [job for row in rows if (job := _job(row, source)) is not None]
    steps = [step for row in rows for step in row["steps"]]
    return Records(
        jobs=oldest_first(jobs),
        now=latest(_vouched(row) for row in rows),
        gaps=(
            *left_out(len(document["jobs"].value) - len(jobs), source),
            *odd_fields(rows, KINDS_OF_JOB, source),
            *odd_fields(steps, KINDS_OF_STEP, source),
        ),
    )
