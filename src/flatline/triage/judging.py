"""
The normal diagnosis of many jobs, several at a time: each in the words of `Told`.

Processes, since reading a log is arithmetic in Python; a few jobs are not worth starting any.  A
job whose diagnosis breaks is undetermined and says so: it must not hide the others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from datetime import datetime
from functools import partial

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.errors import FlatlineError
from flatline.model import NodeEvent, Records, Verdict
from flatline.triage import Ended, OnProgress, Told

Judge = Callable[[Ended], Told]
FEW = 8
"""Jobs below which no process is started: importing takes as long as reading that many logs."""
MOST_PROCESSES = 8
"""More readers of one file system do not read faster, and a login node has other users."""
NAMES = 4
"""File systems of one job that are kept."""

_PATH = re.compile(r"(?<![\w.:/])/(?:[\w.@+-]+/)*[\w.@+-]+")
_SERVER = re.compile(r"\bnfs: server (\S{1,80})")
_LUSTRE = re.compile(r"\b(\w{1,8})-(?:OST|MDT)[0-9a-fA-F]{4}\b")
_CONTAINERS = frozenset(
    {"mnt", "media", "data", "net", "nfs", "lustre", "gpfs", "vast", "weka", "beegfs", "fs",
     "project", "projects", "p", "vol", "volumes", "export", "shared"}
)  # fmt: skip
"""Directories that as a rule hold mounts rather than are one."""
_NO_MOUNT = frozenset({"usr", "lib", "lib64", "bin", "proc", "sys", "etc", "opt", "root", "dev"})


def judged(
    ended: Sequence[Ended],
    events: Sequence[NodeEvent],
    now: datetime | None,
    on_progress: OnProgress | None = None,
    processes: int | None = None,
) -> tuple[Told, ...]:
    """What the diagnosis says of each job, in their order."""
    one = partial(judge_one, now=now)
    tasks = [(job, _around(job, events)) for job in ended]
    workers = min(processes or _workers(), len(tasks), MOST_PROCESSES)
    if workers < 2 or len(tasks) < FEW:
        return tuple(_counted((one(*task) for task in tasks), len(tasks), on_progress))
    return _together(one, tasks, workers, on_progress)


def _workers() -> int:
    return len(os.sched_getaffinity(0))


def _around(ended: Ended, events: Sequence[NodeEvent]) -> tuple[NodeEvent, ...]:
    nodes = {node for row in ended.rows for node in row.nodes}
    return tuple(event for event in events if event.host in nodes)


def _counted(told: Iterable[Told], total: int, on_progress: OnProgress | None) -> Iterator[Told]:
    for done, one in enumerate(told, 1):
        if on_progress is not None:
            on_progress("diagnosing", done, total)
        yield one


def _together(
    one: Callable[..., Told],
    tasks: Sequence[tuple[Ended, tuple[NodeEvent, ...]]],
    workers: int,
    on_progress: OnProgress | None,
) -> tuple[Told, ...]:
    from multiprocessing import get_context

    made: dict[int, Told] = {}
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures: dict[Future[Told], int] = {
            pool.submit(one, *task): at for at, task in enumerate(tasks)
        }
        try:
            for done, future in enumerate(as_completed(futures), 1):
                at = futures[future]
                try:
                    made[at] = future.result()
                except BrokenProcessPool:
                    made[at] = broken(tasks[at][0], "its reader was killed; too little memory?")
                if on_progress is not None:
                    on_progress("diagnosing", done, len(tasks))
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return tuple(made[at] for at in range(len(tasks)))


# --- one job ----------------------------------------------------------------------------------


def judge_one(
    ended: Ended, events: tuple[NodeEvent, ...] = (), now: datetime | None = None
) -> Told:
    """The verdict on one job, from its rows and its logs."""
    records = Records(jobs=ended.rows, node_events=events, now=now)
    logs = tuple(str(path) for path in ended.logs)
    request = Request(logs, job=ended.job.id, seek_baseline=False)
    try:
        return told(ended, diagnose(collect(request, None, (records,))))
    except FlatlineError as fault:
        return broken(ended, str(fault))
    except Exception as fault:  # noqa: BLE001 - one job that breaks it must not hide the others
        return broken(ended, f"{type(fault).__name__}: {fault}")


def told(ended: Ended, verdict: Verdict) -> Told:
    """What of a verdict a listing shows."""
    impact = verdict.impact
    return Told(
        id=ended.job.id,
        state=verdict.state,
        headline=verdict.headline,
        code=verdict.code,
        family=verdict.family,
        fault_class=verdict.fault_class,
        attribution=verdict.attribution,
        confidence=verdict.confidence,
        culprits=verdict.culprits,
        resubmit=verdict.resubmit,
        gpu_hours_lost=impact.gpu_hours_lost if impact is not None else None,
        storage=_storage(verdict),
        logs=len(ended.logs),
    )


def broken(ended: Ended, why: str) -> Told:
    """Undetermined, since the diagnosis itself failed."""
    return Told(ended.job.id, "undetermined", f"It could not be diagnosed: {why}"[:300])


def _storage(verdict: Verdict) -> tuple[str, ...]:
    """File systems and servers named in the lines that show a storage fault."""
    names: dict[str, None] = {}
    for judged_ in verdict.findings:
        if judged_.finding.code != "C6":
            continue
        for cite in judged_.finding.cites:
            names.update(dict.fromkeys(storage_names(cite.text)))
    return tuple(names)[:NAMES]


def storage_names(text: str) -> list[str]:
    """The NFS server, the Lustre file system, and the likely mounts of paths a line names: the
    first part of a path, or the first two where the first only holds mounts."""
    found = [f"NFS server {name}" for name in _SERVER.findall(text)]
    found += [f"Lustre {name}" for name in _LUSTRE.findall(text)]
    for path in _PATH.findall(text):
        parts = path.strip("/").split("/")
        if parts[0] in _NO_MOUNT and not (parts[0] == "dev" and parts[1:2] == ["shm"]):
            continue
        depth = 2 if parts[0] in _CONTAINERS and len(parts) > 2 else 1
        if len(parts) > depth:
            found.append("/" + "/".join(parts[:depth]))
    return list(dict.fromkeys(found))
