"""
Until when the pods of a run are known to have been there, where a server holds its metrics.

A list of pods bears no time, but their age: it was taken no later than so long after the first
line of their logs.  How long before is not told, for a pod may wait to be started.  The memory
that the run held on its GPUs as it wrote its last line tells how far it lived on: what ends gives
it back, and what follows takes minutes to take as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from flatline.collect.merging import Records_
from flatline.collect.numbers import Numbers
from flatline.collect.zone import LEAST, Logs, when
from flatline.model import Job

MEMORY = "min by (host) (min_over_time(gpu_memory_used_bytes[1m]))"
STEP_S = 30.0
HELD, TAKEN = 0.8, 2.0**30
"""Part of what was held then that still is: caches grow and shrink.  A card without a process
holds less than a GiB."""
KUBECTL = timedelta(minutes=1)
"""What an age in minutes leaves out; in hours it leaves out more, and tells less."""


def seen_alive(records: Records_, rows: Sequence[Job], logs: Logs, server: str | None) -> Records_:
    """The same, taken at the last moment at which all nodes still held that memory, where it lies
    well behind the last line of a run's logs."""
    job = rows[-1] if rows else None
    first, last = when(rows, logs)
    runs = job is not None and job.scheduler == "kubernetes" and job.disposition == "running"
    if server is None or not runs or records.now or records.age_s is None:
        return records
    if job is None or first is None or last is None:
        return records
    latest = first + timedelta(seconds=records.age_s) + KUBECTL
    if latest - last < LEAST:
        return records
    asked = Numbers([], [], job.nodes, records.addresses, server=server, run=(last, latest))
    until = _held(asked, len(job.nodes), last, latest)
    return records if until - last < LEAST else replace(records, now=until)


def _held(numbers: Numbers, nodes: int, start: datetime, end: datetime) -> datetime:
    """Up to when every node held it without a break."""
    answer = numbers.ask(MEMORY, start=start, end=end, step_s=STEP_S)
    rows = answer.rows if answer is not None else ()
    if len(rows) < max(nodes, 1):
        return start
    ends = [start.timestamp() + _lasted(row.times, row.values, start.timestamp()) for row in rows]
    return datetime.fromtimestamp(min(ends), UTC)


def _lasted(times: Sequence[float], values: Sequence[float], start: float) -> float:
    """Seconds for which a node did."""
    until = start
    for at, value in zip(times, values, strict=True):
        if at - until > 2 * STEP_S or value < max(TAKEN, HELD * values[0]):
            break
        until = at
    return until - start
