"""
The task that stopped on its way to the launch that all others came to.

Of tasks whose lines bear their numbers (`srun -l`), or of which each node has a log, all but a few
print the command that starts the ranks, or what their launcher says first; those few end with a
line that all had printed before it.  The others wait at the rendezvous then, and say nothing of it
until it times out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from flatline.facts import LOG, Facts, FileRead
from flatline.judging.claims import claim, name_places
from flatline.judging.crashes import failures
from flatline.judging.named_logs import host_of_log
from flatline.judging.timeline import usual
from flatline.judging.waiting import FEW_RATIO
from flatline.model import Claim, Job, LogCite, Place

LEAST, LINES, SHOWN = 4, 4_000, 3
"""Tasks, and lines of a log that shows no more than a start."""
HELD_S, UNMEASURED_S = 300.0, 600.0
"""For which the job must have held its nodes: tasks of one job start within minutes of one
another; the second where nothing shows that no GPU was used.  A judgement."""
UNUSED = 0.05
"""Of a GPU's time: a context that is made and some exporters' rounding."""
_OF_TASK = re.compile(r" {0,5}(\d{1,5}): (.{1,2000})")
_VARIES = re.compile(r"\b(?:0x)?[0-9a-f]{6,}\b|\d+")
_LAUNCH = re.compile(
    r"(?i)\btorchrun\b|\btorch[./]distributed[./](?:run|launch|elastic)\b|\brdzv|rendezvous"
    r"|init_process_group|jax\.distributed|\baccelerate launch\b|\b(?:master|coordinator)_addr"
)
_MET = re.compile(r"(?i)\bnccl (?:info|version)|\brccl\b|\binitialized\b|\binit complete\b")
"""What is printed only once the ranks have met."""

Lines = Mapping[int, Mapping[str, LogCite]]
"""By task the first line of each kind: lines that differ in numbers are alike."""


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """The tasks with their hosts, what shows it, and the last line of the first of them."""

    places: tuple[Place, ...]
    shows: tuple[Claim, ...]
    last: LogCite


def left_behind(facts: Facts) -> LeftBehind | None:
    """None where a step was made or something failed, the wait was short, a GPU was used, or the
    tasks differ in more than how far they came."""
    job = facts.job
    if facts.has_progress or facts.disposition not in ("cancelled", "timeout", "running"):
        return None
    if job is None or failures(facts) or any(e.exit_code and not e.signal for e in facts.exits):
        return None
    logs = [read for read in facts.log_files(LOG) if read.lines <= LINES]
    for by_task in (*(_by_task(facts, read) for read in logs), _by_log(facts, job, logs)):
        if len(by_task) < LEAST or set(by_task) != set(range(len(job.nodes))):
            continue
        behind, beyond = _behind(by_task)
        idle = _held_idle(facts, job) if behind else None
        if idle is not None:
            return _shown(facts, job, by_task, (behind, beyond, idle))
    return None


def _by_task(facts: Facts, read: FileRead) -> Lines:
    out: dict[int, dict[str, LogCite]] = defaultdict(dict)
    for n, text in enumerate(facts.lines(read.source, 1, read.lines), 1):
        if found := _OF_TASK.match(text):
            cite = LogCite(read.source, n, text)
            out[int(found[1])].setdefault(_VARIES.sub("#", found[2]), cite)
    return out


def _by_log(facts: Facts, job: Job, logs: Sequence[FileRead]) -> Lines:
    """By the place of its node in the job, where of logs whose names differ in numbers alone each
    node has one."""
    series: dict[str, list[FileRead]] = defaultdict(list)
    for read in logs:
        series[re.sub(r"\d+", "#", read.source)].append(read)
    for own in series.values():
        hosts = [host_of_log(facts, read.source) for read in own]
        if len(own) == len(job.nodes) and {*hosts} == {*job.nodes}:
            return {
                job.nodes.index(host or ""): _first_lines(facts, read)
                for host, read in zip(hosts, own, strict=True)
            }
    return {}


def _first_lines(facts: Facts, read: FileRead) -> dict[str, LogCite]:
    said: dict[str, LogCite] = {}
    for line, text in enumerate(facts.lines(read.source, 1, read.lines), 1):
        said.setdefault(_VARIES.sub("#", text), LogCite(read.source, line, text))
    return said


def _behind(by_task: Lines) -> tuple[tuple[int, ...], str]:
    """The tasks that stopped, and the kind of the line of a launch that all others printed."""
    kinds = {kind for said in by_task.values() for kind in said}
    without = {kind: frozenset(t for t, said in by_task.items() if kind not in said)
               for kind in kinds}  # fmt: skip
    few = {kind: tasks for kind, tasks in without.items()
           if tasks and (len(tasks) == 1 or len(tasks) <= FEW_RATIO * len(by_task))}  # fmt: skip
    if len(set(few.values())) != 1 or any(map(_MET.search, kinds)):
        return (), ""
    (behind,) = set(few.values())
    further = any(without[kind] for task in behind for kind in by_task[task])
    launches = [kind for kind in few if _LAUNCH.search(kind)]
    if 0 in behind or further or not launches:  # the first task has duties of its own
        return (), ""
    return tuple(sorted(behind)), min(launches, key=lambda kind: _first(by_task, kind))


def _first(by_task: Lines, kind: str) -> int:
    return min(said[kind].line for said in by_task.values() if kind in said)


def _held_idle(facts: Facts, job: Job) -> Claim | None:
    """That the job held its nodes for minutes, and that no GPU was used where it was measured."""
    ends = job.ended_at or facts.now
    held_s = (ends - job.started_at).total_seconds() if ends and job.started_at else 0.0
    text = f"The job held its nodes for {held_s / 60:.0f} minutes"
    if not ends or not facts.measured("gpu_utilization_ratio"):
        return claim(text, job.cite) if held_s >= UNMEASURED_S else None
    query = f"max_over_time(gpu_utilization_ratio[{max(1, int(held_s))}s])"
    most = usual(facts, query, float(int(ends.timestamp())), "highest reading", "max({})")
    if held_s < HELD_S or most is None or most.value > UNUSED:
        return None
    return claim(f"{text}, and none of their GPUs was used", job.cite, most)


def _shown(
    facts: Facts, job: Job, by_task: Lines, told: tuple[tuple[int, ...], str, Claim]
) -> LeftBehind:
    behind, beyond, idle = told
    labelled = len({cite.source for said in by_task.values() for cite in said.values()}) == 1
    places = [facts.on_host(Place(task=task)) if labelled else Place(host=job.nodes[task])
              for task in behind]  # fmt: skip
    named = tuple(place if place.host else replace(place, host=job.nodes[place.task or 0])
                  for place in places)  # fmt: skip
    last = [max(by_task[task].values(), key=lambda cite: cite.line) for task in behind[:SHOWN]]
    launched = [said[beyond] for said in by_task.values() if beyond in said]
    cites = [LogCite(one.source, one.line, facts.text(one.source, one.line))
             for one in (*last, *launched[:SHOWN])]  # fmt: skip
    text = (
        f"Of {len(by_task)} tasks alone {name_places(named)} printed nothing more after what all"
        " had; the others came to their launch"
    )
    return LeftBehind(named, (claim(text, *cites), idle), cites[0])
