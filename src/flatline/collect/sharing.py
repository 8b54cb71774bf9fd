"""Nodes that other jobs were on with the run, where nothing tells whose GPUs are whose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from flatline.model import Gap, Job
from flatline.signals import GPUS_HELD

_EVER = datetime.max.replace(tzinfo=UTC)


def shared(jobs: Iterable[Job], rows: Sequence[Job]) -> list[Gap]:
    """A gap for each such node; none for a job whose records list the GPUs that it held there."""
    own = rows[-1] if rows else None
    if own is None or own.started_at is None:
        return []
    told = dict(own.devices)
    found: dict[str, Gap] = {}
    for other in jobs:
        if other.id == own.id or other.gpus == 0 or other.started_at is None:
            continue
        if max(own.started_at, other.started_at) >= min(_end(own), _end(other)):
            continue
        for host in sorted({*own.nodes} & {*other.nodes} - told.keys()):
            reason = f"job {other.id} was on it meanwhile, and no record lists their GPUs"
            found.setdefault(host, Gap(GPUS_HELD, reason, host))
    return list(found.values())


def _end(job: Job) -> datetime:
    return job.ended_at or _EVER
