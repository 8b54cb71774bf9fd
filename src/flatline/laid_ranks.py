"""
Which host has which ranks, where a launcher lays them as it does unless it is told otherwise.

srun and mpirun fill a node before they go on to the next, in the order of the job's nodes
(srun(1), --distribution; mpirun(1), --map-by slot; Hydra).  How many one takes is not said; it is
plain where the record's GPUs are as many on every node, and have one rank each: srun spreads tasks
as evenly as they go before it numbers them (`_task_layout_block` of slurm_step_layout.c).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence

from flatline.model import Job, Match, Place, Step

LAUNCHED, OTHERWISE = "placement-launched", "placement-otherwise"
_COUNT = re.compile(r"(?:^|\s)--?(?:np|n|c|proc)[ =](\d{1,6})(?=\s|$)")
_IN_BLOCKS = re.compile(
    r"\s--?(?:byslot|map-?by[ =](?:slot|core)|(?:map-?by[ =]ppr:|npernode[ =]|ppn[ =]|perhost[ =]"
    r"|N[ =])(?P<each>\d{1,4})(?::node)?)(?=\s|:PE=|$)"
)
_ELSEHOW = re.compile(
    r"\s--?(?:map-?by|rank-?by|by\w+|nper\w+|ppn|perhost|N|rr|rf|rankfile|hostfile|default-hostfile"
    r"|machinefile|f|H|hosts?|app|configfile)(?=[\s=]|$)|rmaps|RMAPS|\s:\s|\\\s*$"
)
"""Other ways to lay ranks, nodes in an order of its own, several programs, and options that stand
on the next line."""
_LISTED = re.compile(r"\s--?(?:H|host)[ =](\S{1,4000})")
_DISTRIBUTED = re.compile(r"\s(?:-m ?|--distribution[= ])(?!block\b)\w")


def laid(
    places: Iterable[Place],
    hosts: Sequence[str],
    matches: Iterable[Match],
    jobs: Sequence[Job],
    world: int | None,
) -> Iterator[Place]:
    """All ranks in blocks on the job's nodes; nothing where one is known to be elsewhere, or a
    `world` is stated that is not that of the GPUs."""
    each = _each(jobs, hosts)
    if each is None:
        return
    size, heard, told = each * len(hosts), [*places], [*matches]
    last = max((m.attempt for m in told), default=0)
    told = [m for m in told if m.attempt == last]
    ranks = {place.rank for place in heard if place.rank is not None}
    if world not in (None, size) or max(ranks, default=0) >= size:
        return
    one_each = _tasks_are_ranks(heard, size) or a_task_each(jobs, hosts)
    tasks = one_each and not _told_otherwise(told, jobs)
    if not tasks and not _by_mpirun(told, hosts, each):
        return
    at = {_short(host): n for n, host in enumerate(hosts)}
    for place in heard:
        number = place.task if place.rank is None and tasks else place.rank
        on = None if place.host is None else at.get(_short(place.host))
        if on is not None and number is not None and number // each != on:
            return
    for n in range(size):
        yield Place(host=hosts[n // each], rank=n, task=n if tasks else None)


def _short(host: str) -> str:
    return host.partition(".")[0].lower()


def _each(jobs: Sequence[Job], hosts: Sequence[str]) -> int | None:
    """GPUs that each of several nodes has by the record, where its tasks are no other number."""
    job = jobs[-1] if jobs else None
    if job is None or job.scheduler != "slurm" or len(hosts) < 2 or {*hosts} != {*job.nodes}:
        return None
    each, rest = divmod(job.gpus or 0, len(hosts))
    uneven = any(len(held) != each for _, held in job.devices)
    return each if each and not rest and not uneven and job.tasks in (None, job.gpus) else None


def _tasks_are_ranks(places: Iterable[Place], size: int) -> bool:
    """Whether srun started so many tasks, by its labels: each is the rank of its own number, to
    the last.  A task that starts the ranks of its node is none of them."""
    told = {(p.task, p.rank) for p in places if p.task is not None and p.rank is not None}
    return (size - 1, size - 1) in told and all(task == rank for task, rank in told)


def a_task_each(jobs: Sequence[Job], hosts: Sequence[str]) -> bool:
    """Whether the step that ran longest on all of the job's nodes has a task for each GPU, by its
    record.  With one GPU a node they may as well be launchers, which number ranks as they meet."""
    each = _each(jobs, hosts) or 0
    whole = [s for s in (jobs[-1].steps if jobs else ()) if {*s.nodes} == {*hosts}]
    lasting = max((s for s in whole if s.id.isdecimal()), key=_length, default=None)
    return lasting is not None and each > 1 and lasting.tasks == each * len(hosts)


def _length(step: Step) -> float:
    if step.started_at is None or step.ended_at is None:
        return math.inf
    return (step.ended_at - step.started_at).total_seconds()


def _told_otherwise(told: Iterable[Match], jobs: Sequence[Job]) -> bool:
    asked = _DISTRIBUTED.search(jobs[-1].submit_line or "")
    return asked is not None or any(m.signature.id == OTHERWISE for m in told)


def _by_mpirun(told: Iterable[Match], hosts: Sequence[str], each: int) -> bool:
    """Whether every command that was printed starts as many ranks, and lays them in blocks."""
    said = [m.groups["launched"] for m in told if m.signature.id == LAUNCHED]
    return bool(said) and all(_starts(f" {options}", hosts, each) for options in said)


def _starts(options: str, hosts: Sequence[str], each: int) -> bool:
    count = _COUNT.search(options)
    blocks = {found["each"] for found in _IN_BLOCKS.finditer(options)}
    left, listed = _IN_BLOCKS.sub(" ", options), _LISTED.search(options)
    if listed is not None and listed[1] == ",".join(f"{host}:{each}" for host in hosts):
        left = left.replace(listed[0], " ")
    whole = count is not None and int(count[1]) == each * len(hosts)
    return whole and blocks <= {None, str(each)} and _ELSEHOW.search(left) is None
