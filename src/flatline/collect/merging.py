"""Many files of records as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime

from flatline.collect.pod_job import job_of
from flatline.model import Disposition, Job, NodeEvent, Pod, Records

RUNNING: frozenset[Disposition] = frozenset({"running", "pending", "suspended"})


_Key = tuple[str, datetime | None]


@dataclass(frozen=True, slots=True)
class Records_:
    """All record files as one."""

    jobs: tuple[Job, ...]
    node_events: tuple[NodeEvent, ...]
    now: datetime | None
    addresses: Mapping[str, str] = field(default_factory=dict)
    age_s: float | None = None
    """Of the youngest pod, as its list was taken."""
    pods: tuple[Pod, ...] = ()
    """What lists show, of whatever job (see `collect.listed`)."""


def merge(records: Iterable[Records]) -> Records_:
    """Rows of every file; the same row seen twice becomes one with the fields of both."""
    rows: dict[_Key, Job] = {}
    events: dict[tuple[object, ...], NodeEvent] = {}
    nows: list[datetime] = []
    addresses: dict[str, str] = {}
    pods: list[Pod] = []
    listed: list[Job] = []
    for record in records:
        addresses.update(record.addresses)
        pods += record.pods
        if record.now is not None:
            nows.append(record.now)
        listed += (job for job in record.jobs if job.listed)
        for job in record.jobs:
            if job.listed:
                continue
            key = (job.id, job.started_at)
            if key not in rows and job.started_at is None:
                key = next((k for k in rows if k[0] == job.id), key)
            rows[key] = _joined(rows[key], job) if key in rows else job
        for event in record.node_events:
            events.setdefault((event.host, event.states, event.at), event)
    for job in sorted(listed, key=_when):
        key = _of_same(job, rows)
        rows[key] = _joined(rows[key], job) if key in rows else job
    jobs = sorted(rows.values(), key=_when)
    if not jobs and (of_pods := job_of(pods)) is not None:
        jobs = [of_pods]
    ages = [pod.age_s for pod in pods if pod.age_s is not None]
    return Records_(tuple(jobs), tuple(events.values()), max(nows, default=None), addresses,
                    min(ages, default=None), tuple(pods))  # fmt: skip


def _of_same(job: Job, rows: Mapping[_Key, Job]) -> _Key:
    """The last row of its job, unless that was over before the one listed began, which a list
    tells to a second or two: two rows would be two tries."""
    keys = [key for key in rows if key[0] == job.id]
    last = max(keys, key=lambda key: _when(rows[key]), default=None)
    if last is None:
        return job.id, job.started_at
    ended = rows[last].ended_at
    again = ended and job.started_at and job.started_at > ended
    return (job.id, job.started_at) if again else last


def _when(job: Job) -> tuple[str, float]:
    at = job.started_at or job.submitted_at
    return job.id, at.timestamp() if at else 0.0


def _joined(first: Job, second: Job) -> Job:
    """Fields the first lacks are taken from the second; an ended row outranks a running one."""
    if first.disposition in RUNNING and second.disposition not in RUNNING:
        first, second = second, first
    filled = {
        f.name: getattr(second, f.name)
        for f in fields(Job)
        if getattr(first, f.name) in (None, (), "") and getattr(second, f.name) not in (None, ())
    }
    return replace(first, **filled, listed=first.listed and second.listed)
