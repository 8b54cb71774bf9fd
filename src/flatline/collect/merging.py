"""Many files of records as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime

from flatline.collect.pod_job import job_of
from flatline.model import Disposition, Job, NodeEvent, Pod, Records

RUNNING: frozenset[Disposition] = frozenset({"running", "pending", "suspended"})


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
    listed: tuple[Job, ...] = ()
    """What lists show, of whatever job (see `collect.listed`)."""


def merge(records: Iterable[Records]) -> Records_:
    """Rows of every file; the same row seen twice becomes one with the fields of both."""
    rows: dict[tuple[str, datetime | None], Job] = {}
    events: dict[tuple[object, ...], NodeEvent] = {}
    nows: list[datetime] = []
    addresses: dict[str, str] = {}
    pods: list[Pod] = []
    listed: list[Job] = []
    for record in records:
        addresses.update(record.addresses)
        pods += record.pods
        listed += record.listed
        if record.now is not None:
            nows.append(record.now)
        for job in record.jobs:
            key = (job.id, job.started_at)
            if key not in rows and job.started_at is None:
                key = next((k for k in rows if k[0] == job.id), key)
            rows[key] = _joined(rows[key], job) if key in rows else job
        for event in record.node_events:
            events.setdefault((event.host, event.states, event.at), event)
    jobs = sorted(rows.values(), key=_when)
    if not jobs and (of_pods := job_of(pods)) is not None:
        jobs = [of_pods]
    ages = [pod.age_s for pod in pods if pod.age_s is not None]
    return Records_(tuple(jobs), tuple(events.values()), max(nows, default=None), addresses,
                    min(ages, default=None), tuple(pods), tuple(listed))  # fmt: skip


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
    return replace(first, **filled)
