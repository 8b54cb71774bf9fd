"""
Whose GPUs are whose on a node that other jobs were on with the run.

Slurm's indexes (`IDX` of `scontrol -d`) count the files of its `gres.conf`, in the order of their
minor numbers where it found them itself; NVML and its exporters count by PCI address.  Mostly the
two agree.  Where they do not, the job's GPUs are left out and another job's taken for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from math import isfinite

from flatline.collect.events import LogEvents
from flatline.collect.numbers import Numbers
from flatline.model import Gap, Job
from flatline.signals import ACTIVITY, GPUS_HELD

MOSTLY = 0.9
"""Of the time that training took: a GPU of it works for more than a tenth of that."""
BUSY_RATIO, AT_WORK = 0.05, 1.5
"""Activity, and power over that of the host's most idle GPU, from which on a GPU works."""
SAMPLES = 96
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


def hold(rows: Sequence[Job], logs: Iterable[LogEvents], numbers: Numbers) -> list[Gap]:
    """Narrows the numbers to the GPUs that the job held; not on a host where some that the
    record's indexes mean did nothing while it trained, and as many others worked: a gap."""
    devices = dict(rows[-1].devices) if rows and numbers.window else {}
    working = _working(rows[-1], logs, numbers) if devices else {}
    gaps = []
    for host, own in devices.items():
        here = working.get(_short(host), set())
        idle, others = [one for one in own if one not in here], here.difference(own)
        if idle and len(others) >= len(idle):
            reason = (
                f"of those that its record counts, {', '.join(idle)} did no work while it trained,"
                f" and {', '.join(sorted(others))} did: Slurm may count them in another order"
            )
            gaps.append(Gap(GPUS_HELD, reason, host))
    doubted = {gap.where for gap in gaps}
    numbers.hold({host: own for host, own in devices.items() if host not in doubted})
    return gaps


def _working(job: Job, logs: Iterable[LogEvents], numbers: Numbers) -> dict[str, set[str]]:
    """The GPUs at work while the job made progress, by short host, as far as that is known."""
    tracks = [t for events in logs for t in events.tracks.values() if len(t.at) > 1]
    dated = [at for track in tracks for at in track.at if isfinite(at)]
    first, last, part = min(dated, default=0.0), max(dated, default=0.0), MOSTLY
    if last <= first and job.started_at and job.ended_at:
        first, last, part = job.started_at.timestamp(), job.ended_at.timestamp(), 1.0
    signal = next(filter(numbers.measured, (*ACTIVITY, "gpu_power_watts")), None)
    if not tracks or last <= first or signal is None:
        return {}
    start, end = (datetime.fromtimestamp(round(at), UTC) for at in (first, last))
    answer = numbers.ask(signal, start=start, end=end, step_s=max(1.0, (last - first) // SAMPLES))
    read: dict[str, dict[str, list[float]]] = {}
    for row in () if answer is None else answer.rows:
        values = sorted(value for value in row.values if isfinite(value))
        if values and (row.place.gpu or "").isdecimal():
            read.setdefault(_short(row.place.host or ""), {})[row.place.gpu or ""] = values
    return {host: _at_work(gpus, part, signal) for host, gpus in read.items()}


def _at_work(gpus: dict[str, list[float]], part: float, signal: str) -> set[str]:
    """Those of a host, by their values in order."""
    idle = min(values[len(values) // 20] for values in gpus.values())
    bar = BUSY_RATIO if signal in ACTIVITY else AT_WORK * idle
    return {gpu for gpu, values in gpus.items() if values[int(part * (len(values) - 1))] > bar}


def _short(host: str) -> str:
    return host.partition(".")[0].lower()


def _end(job: Job) -> datetime:
    return job.ended_at or _EVER
