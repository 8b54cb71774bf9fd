"""
The controller's JSON: `squeue --json`, `scontrol show job|node --json`, `sinfo --json`, and
slurmrestd's `/slurm/vX/jobs` and `/slurm/vX/nodes`.

Read from the dialects of Slurm 21.08 (v0.0.37) to 25.11 (v0.0.44), and where a single job or
node was saved without its envelope.  Since 23.02 `sinfo --json` holds groups of nodes in one
state: each node of a group becomes an event with the group's reason.

A running job's end and a pending job's start are plans and are not taken.  A node's
`NodeEvent.at` is when its reason was set, which may be before its present state began.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from flatline.errors import FormatError
from flatline.logs.hostlists import LIMIT
from flatline.model import Job, NodeEvent, Place, RecordCite, Records
from flatline.parsers._slurm import (
    BOOTED,
    ENDED,
    devices,
    disposition,
    from_epoch,
    given,
    gpus,
    hosts,
    latest,
    named_once,
    node_states,
    oldest_first,
)
from flatline.parsers._slurm_json import Node, cited, exit_code, loaded, odd_fields, resolve

__all__ = ["FORMAT", "ZONE_ASSUMED", "parse", "recognise", "resolve"]

FORMAT = "slurm-live-json"
ZONE_ASSUMED = False
KINDS_OF_JOB = {
    **dict.fromkeys(("submit_time", "start_time", "end_time", "time_limit"), "number"),
    **dict.fromkeys(("exit_code", "derived_exit_code"), "exit"),
    **dict.fromkeys(("name", "nodes", "standard_output", "standard_error"), "text"),
    "job_state": "state",
}
KINDS_OF_NODE = {"boot_time": "number", "reason_changed_at": "number", "name": "text"}
_LISTS = re.compile(rb'"(?:jobs|nodes|sinfo)"\s*:\s*\[')
_MARKS = re.compile(
    rb'openapi\\?/(?:v0\.0|slurmctld)|"(?:job_state|accrue_time|burstbuffer_network_address|'
    rb'boot_time|slurmd_start_time)"|"(?:squeue|sinfo|scontrol)"'
)
_SINGLE = (b'"accrue_time"', b'"burstbuffer_network_address"')


def recognise(name: str, head: bytes) -> bool:
    """Whether the head is JSON of slurmctld's jobs or nodes, whatever the file is called."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not start.startswith(b"{") or _MARKS.search(start) is None:
        return False
    return _LISTS.search(start) is not None or any(mark in start for mark in _SINGLE)


# --- jobs ---


def _job_id(job: Node) -> str | None:
    raw = job["job_id"].text
    array, task = job["array_job_id"].integer, job["array_task_id"].integer
    if array and task is not None:
        return f"{array}_{task}"
    tasks = job["array_task_string"].text
    if array and tasks:
        return f"{array}_[{tasks}]"
    het, offset = job["het_job_id"].integer, job["het_job_offset"].integer
    return f"{het}+{offset}" if het and offset is not None else raw


def _at(node: Node, path: str) -> datetime | None:
    return from_epoch(node[path].number)


def _job_line(job_id: str, job: Node, code: int | None, sign: int | None) -> str:
    text = f"JobId={job_id} JobState={'+'.join(job['job_state'].words) or 'unknown'}"
    reason = given(job["state_reason"].text)
    text += f" Reason={reason}" if reason else ""
    if sign is not None:
        return f"{text} ExitCode={code or 0}:{sign if code is None else 0}"
    return text if code is None else f"{text} ExitCode={code}:0"


def _job(job: Node, source: str) -> Job | None:
    job_id = _job_id(job)
    if job_id is None:
        return None
    words = job["job_state"].words
    ending = disposition(words)
    over = ending in ENDED
    code, sign = exit_code(job["exit_code"], ending)
    derived, derived_sign = exit_code(job["derived_exit_code"], "failed")  # keeps the OOM mark
    limit = job["time_limit"].number
    pointer, value = cited(job["job_state"], job["job_id"])
    tres = job["tres_alloc_str"].text or ""
    nodes = job["nodes"].text or job["job_resources/nodes"].text or ""
    return Job(
        id=job_id,
        name=job["name"].text,
        disposition=ending,
        state="+".join(words),
        cite=RecordCite(
            source=source,
            pointer=pointer,
            value=value,
            text=_job_line(job_id, job, code if over else None, sign if over else None),
            at=_at(job, "end_time") if over else None,
        ),
        reason=given(job["state_reason"].text),
        exit_code=code if over else None,
        signal=sign if over else None,
        derived_exit_code=derived,
        derived_signal=derived_sign,
        submitted_at=_at(job, "submit_time"),
        started_at=_at(job, "start_time") if ending != "pending" else None,
        ended_at=_at(job, "end_time") if over else None,
        limit_s=None if limit is None else limit * 60.0,
        nodes=hosts(nodes),
        node_count=job["node_count"].integer or None,
        tasks=job["tasks"].integer,
        gpus=gpus(tres) or gpus(job["tres_req_str"].text or ""),
        restarts=job["restart_cnt"].integer,
        dependency=given(job["dependency"].text),
        submit_line=job["submit_line"].text,
        work_dir=job["current_working_directory"].text,
        std_out=job["stdout_expanded"].text or job["standard_output"].text,
        std_err=job["stderr_expanded"].text or job["standard_error"].text,
        failed_node=given(job["failed_node"].text),
        user=given(job["user_name"].text),
        partition=given(job["partition"].text),
        devices=_devices(nodes, job["gres_detail"].words),
    )


def _devices(nodes: str, gres: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """`gres_detail` has an entry for each node, in their order."""
    named = hosts(nodes)
    return devices(zip(named, gres, strict=True)) if len(named) == len(gres) else ()


def _job_times(job: Node) -> Iterator[datetime | None]:
    yield _at(job, "submit_time")
    yield _at(job, "last_sched_evaluation")
    ending = disposition(job["job_state"].words)
    if ending != "pending":
        yield _at(job, "start_time")
    if ending in ENDED:
        yield _at(job, "end_time")


# --- nodes ---


def _reported(host: str, states: tuple[str, ...], reason: str | None) -> str:
    return f"NodeName={host} State={'+'.join(states)}" + (f" Reason={reason}" if reason else "")


def _node_events(node: Node, source: str) -> Iterator[NodeEvent]:
    host = node["name"].text or node["hostname"].text
    if host is None:
        return
    place = Place(host=host)
    words = node["state"].words + node["state_flags"].words
    states = node_states("+".join(words))
    reason = given(node["reason"].text)
    since = _at(node, "reason_changed_at") if reason else None
    pointer, value = cited(node["state"])
    if states and pointer:
        text = _reported(host, states, reason)
        yield NodeEvent(
            host, states, reason, RecordCite(source, pointer, value, text, place, since), since
        )
    booted = _at(node, "boot_time")
    pointer, value = cited(node["boot_time"])
    if booted:
        text = f"NodeName={host} boot_time={value}"
        cite = RecordCite(source, pointer, value, text, place, booted)
        yield NodeEvent(host, (BOOTED,), None, cite, at=booted, until=booted)


def _node_times(node: Node) -> Iterator[datetime | None]:
    for path in ("boot_time", "slurmd_start_time", "last_busy", "reason_changed_at"):
        yield _at(node, path)


def _group_events(group: Node, source: str) -> Iterator[NodeEvent]:
    states = node_states("+".join(group["node/state"].words))
    reason = given(group["reason/description"].text or group["reason"].text)
    since = _at(group, "reason/time") if reason else None
    pointer, value = cited(group["node/state"])
    names = group["nodes/nodes"].words or group["nodes/hostnames"].words
    for host in names[:LIMIT] if states and pointer else []:
        text = _reported(host, states, reason)
        cite = RecordCite(source, pointer, value, text, Place(host=host), since)
        yield NodeEvent(host, states, reason, cite, since)


def _addresses(nodes: list[Node], groups: list[Node]) -> dict[str, str]:
    pairs = []
    for node in nodes:
        host = node["name"].text or ""
        pairs += [(node[key].text or "", host) for key in ("address", "hostname")]
    for group in groups:
        names = group["nodes/nodes"].words
        for key in ("nodes/addresses", "nodes/hostnames"):
            if len(names) == len(group[key].words) == 1:
                pairs.append((group[key].words[0], names[0]))
    return named_once(pair for pair in pairs if pair[0] not in ("", pair[1]))


# --- the file ---


def _tables(document: Node, key: str) -> list[Node]:
    return [row for row in document[key] if isinstance(row.value, dict)]


def _enveloped(value: Any) -> tuple[list[Node], list[Node], list[Node]]:
    """The jobs, nodes and groups of nodes of a document, or the one job or node it is."""
    document = Node(value)
    jobs, nodes, groups = (_tables(document, key) for key in ("jobs", "nodes", "sinfo"))
    if isinstance(value, dict) and not (jobs or nodes or groups):
        if "job_id" in value and "job_state" in value:
            jobs = [document]
        elif "slurmd_start_time" in value and "name" in value:
            nodes = [document]
    return [job for job in jobs if "job_state" in job.value], nodes, groups


def _empty(value: Any) -> bool:
    return isinstance(value, dict) and any(value.get(k) == [] for k in ("jobs", "nodes", "sinfo"))


def parse(data: bytes, source: str) -> Records:
    """Raises `FormatError` where there is neither a job nor a node of the controller's."""
    value = loaded(data)
    jobs, nodes, groups = _enveloped(value)
    if not (jobs or nodes or groups or _empty(value)):
        raise FormatError("no JSON of slurmctld: it has no jobs with a job_state, and no nodes")
    now = [_at(Node(value), "last_update")]
    now += [moment for job in jobs for moment in _job_times(job)]
    now += [moment for node in nodes for moment in _node_times(node)]
    now += [_at(group, "reason/time") for group in groups]
    events = [event for node in nodes for event in _node_events(node, source)]
    seen = {(event.host, event.states, event.at) for event in events}
    for group in groups:  # a node stands once in every partition it belongs to
        for event in _group_events(group, source):
            if (event.host, event.states, event.at) not in seen:
                seen.add((event.host, event.states, event.at))
                events.append(event)
    return Records(
        jobs=oldest_first([found for job in jobs if (found := _job(job, source))]),
        node_events=tuple(events),
        now=latest(now),
        addresses=_addresses(nodes, groups),
        gaps=(
            *odd_fields(jobs, KINDS_OF_JOB, source),
            *odd_fields(nodes, KINDS_OF_NODE, source),
        ),
    )
