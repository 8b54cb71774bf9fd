"""
The program never ran: launching it failed.

Symptom:
    The launcher, the container runtime, the prolog or MPI start-up prints an error and the task
    ends at once; nothing of the training program itself is printed by that task.

Mechanism:
    A mount source that does not exist, an image that cannot be pulled, a PMI/PMIx mismatch, a CPU
    binding the node cannot honour, a command that is not there, a prolog that failed.  Where one
    task fails so and the others start, those wait for it until a timeout or the wall.

Told apart from:
    A1 startup-crash: the program ran and raised an error itself.
    C1 rendezvous-hang: every task started; they could not find each other.

Do:
    Correct the launch line, image, mount or binding; where one node alone fails, exclude it.

References:
    Slurm documentation: srun, MPI guide, CPU binding; pyxis and enroot; Open MPI FAQ on Slurm.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from flatline.facts import Facts
from flatline.judging.belonging import UNKNOWN
from flatline.judging.claims import claim, distinct, name_places
from flatline.judging.leads import Lead, fix, lead, shows, subject
from flatline.judging.own_exits import own_exits
from flatline.judging.steering import leave_out
from flatline.judging.unmounted import unmounted
from flatline.model import (
    Action,
    Claim,
    Cleared,
    Finding,
    Job,
    Judgement,
    LogCite,
    NodeEvent,
    Place,
)

AT_START_S = 600.0
"""Prologs run before the first task and are ended by PrologEpilogTimeout or BatchStartTimeout
(Slurm documentation; minutes at most sites)."""
GOES_ON_LINES = 40
"""Below a launch that was refused a launcher explains itself; what prints so many lines more that
are no launcher's may be the program, started in another way."""
_LAUNCHERS = re.compile(
    r"\s*$|\W*(?:\S{1,60}[:\]] ?)?(?:s?run|sbatch|salloc|slurm\w*|mpi\w+|prte\w*|orte\w*|pyxis"
    r"|enroot|docker|singularity|apptainer|usage|try)\b"
    r"|.*\b(?:error|failed|warning|cannot|not found)\b",
    re.IGNORECASE,
)
_SHARED = re.compile(
    r"(?i)\b(?:4\d\d|5\d\d)\b.{0,40}\b(?:error|too many|forbidden|unauthorized|status)"
    r"|returned error|no such file|not found|manifest|unauthorized|denied|rate limit"
    r"|too many requests|does not exist|import image|registry"
)
_ITS_OWN = re.compile(
    r"(?i)\bno space left on device|\bmount\b.{0,200}\b(?:no such file|doesn't exist)"
    r"|\bmount\b.{0,200}\bdoes not exist|\bnot mounted|\bstale file handle|\binput/output error"
    r"|\btransport endpoint|\bno such device\b|\bdevice not found\b|\bmodprobe\b"
    r"|\bkernel module\b|\bnvidia-container-cli\b|\bloop device\b|/dev/(?:loop|fuse|nvidia)"
)
"""What a host has of its own: who asks for what nobody has is seldom alone in it."""
_OF_A_DISK = re.compile(r"(?i)\bread-only file ?system\b|\binput/output error\b|\bEROFS\b|\bEIO\b")
_LABEL = re.compile(r"\s*\d{1,6}: ")
"""Of a task, as `srun -l` puts it before each line: the same words of two tasks are the same."""
BESIDE = 12
"""Lines beside the one that says that it failed."""
_READ_LINES = 400
MISMATCH = "cuda-driver-mismatch"
CODE = "F4"
NAME = "launch-failure"
NEEDS = ("job log",)
DECIDED_BY = (
    "the launcher's own words before the program's first (slurmd's log, the container "
    "runtime's, mpirun's)"
)
EXPLAINS = {
    "A1": "the launcher's or helper's own error message is not the program's",
    "C1": "the task that never started never joins, and the others wait for it",
    "C2": "the task that never started never enters a collective",
    "F3": "tasks waiting for one that never started hold the allocation to the wall",
    "A2": "the launcher ends the tasks that did start",
    "F2": "the scheduler requeues and holds a job whose prolog failed on a node",
}


def judge(facts: Facts) -> Judgement:
    """Blame the first launch error that was not survived and that came before any step."""
    found = lead(facts, CODE)
    if found is None:
        return _prolog(facts) or _ran(facts)
    found, alone = _on_one_host(facts, found)
    others = len(alone) == 1 and any(
        _ended_too(facts, found, p.host) for p in found.culprits if p.host
    )
    first = found.first
    if first.started:
        return None
    return Finding(
        code=CODE,
        summary=_summary(found),
        fault_class=first.fault_class,
        attribution=first.attribution,
        strength=first.strength,
        most=UNKNOWN if not found.culprits and _goes_on(facts, first.cite) else 1.0,
        shows=(shows(found, f"{subject(found)} did not start: {first.what}"), *alone),
        implies=(claim("The training program did not begin on it; the fault is in how it was"
                       " launched.", first.cite),),
        culprits=found.culprits,
        scope=found.scope,
        onset=first.cite.at,
        order=(first.cite.source, first.cite.line),
        attempt=first.attempt,
        cannot_decide=(
            *(("Whether the others would have failed as well: they were ended before.",)
              if others else ()),
            *(("Whether the launch line or the node is at fault: the same line on another node"
               " would tell.",) if first.attribution == "unknown" else ()),
        ),
        actions=(fix(found, "Correct the launch line, image, mount or binding, then resubmit."),),
        resubmit="fix_first",
    )  # fmt: skip


def _on_one_host(facts: Facts, found: Lead) -> tuple[Lead, tuple[Claim, ...]]:
    """A failure without a place is that of the one host of several whose tasks, as srun says, left
    with an error."""
    left = own_exits(facts, found.first.attempt)
    hosts = {facts.node_of(place.host) if place.host else None for place in left}
    host = next(iter(hosts)) if len(hosts) == 1 and len(facts.hosts) > 1 else None
    if host is not None and _counts_nodes(facts, found, {place.task for place in left}, host):
        place = Place(host=host)
        found = replace(found, scope="place", culprits=(place,),
                        first=replace(found.first, place=place),
                        group=tuple(replace(one, place=place) for one in found.group))  # fmt: skip
        return found, ()
    # the same on every host, which came first
    of_the_job = found.first.attribution == "job" and not _all_said_so(facts, found, len(left))
    ended = {e.place.task for e in facts.exits if e.signal and e.attempt == found.first.attempt}
    if host is not None and found.culprits and {p.task for p in found.culprits} <= ended - {None}:
        found = replace(found, scope="none", culprits=())  # whose label it bears was ended as well
    if host is None or found.culprits or found.scope == "all" or of_the_job:
        return found, ()
    lacks = unmounted(facts, host, _around(facts, found))
    driver, disk = (look(facts, found, host) for look in (_its_driver, _its_disk))
    if (
        lacks is None
        and driver is None
        and disk is None
        and _ended_too(facts, found, host)
        and _of_all_hosts(facts, found)
    ):
        return found, ()
    place = Place(host=host)
    said = claim(f"Of {len(facts.hosts)} hosts only the tasks of {host} left with an error",
                 next(iter(left.values())))  # fmt: skip
    found = replace(found, scope="place", culprits=(place,))
    if lacks is not None:
        told = "own log" if isinstance(lacks, LogCite) else "exporter"
        why = claim(f"By its {told} {host} has not mounted what was looked for", lacks)
    elif driver is not None:
        why = claim(f"By its own log {host} has parts of its driver of different versions", driver)
    elif disk is not None:
        why = claim(f"By its own log {host} has a disk or a file system that fails", disk)
    else:
        if found.first.attribution == "job":
            found = replace(found, first=replace(found.first, attribution="unknown"))
        return found, (said,)
    first = replace(found.first, attribution="infrastructure")
    return replace(found, first=first), (said, why)


def _its_driver(facts: Facts, found: Lead, host: str) -> LogCite | None:
    """Where a kernel says that its driver's parts do not fit, as no other host's does, and the
    container's GPUs are what was not set up."""
    asked = any("nvidia" in text.lower() for text in _around(facts, found))
    told = [m.cite for m in facts.matches if m.signature.id == MISMATCH]
    return _of_its_kernel_alone(facts, told, host) if asked else None


def _its_disk(facts: Facts, found: Lead, host: str) -> LogCite | None:
    """Where a kernel says that a disk failed or is written to no more, as no other host's does,
    and what was not set up could not be written or read.  What is read-only in an image is so on
    every host."""
    asked = any(map(_OF_A_DISK.search, _around(facts, found)))
    told = [m.cite for m in facts.tagged("local-disk")]
    return _of_its_kernel_alone(facts, told, host) if asked else None


def _of_its_kernel_alone(facts: Facts, told: Sequence[LogCite], host: str) -> LogCite | None:
    said = [c for c in told if c.source in facts.kernel_files and not facts.outside(c)]
    hosts = {facts.node_of(cite.place.host) if cite.place.host else None for cite in said}
    return said[-1] if hosts == {host} else None


def _counts_nodes(facts: Facts, found: Lead, left: set[int | None], host: str) -> bool:
    """Whether the label before the line is no task's but counts nodes, as that of a step's daemon
    may: that task left without an error, and those of the node of that number with one."""
    told = {place.task for place in found.culprits}
    task = next(iter(told)) if len(told) == 1 else None
    nodes = facts.job.nodes if facts.job is not None else ()
    if task is None or task in left or None in left:
        return False
    return task < len(nodes) and facts.node_of(nodes[task]) == host


def _all_said_so(facts: Facts, found: Lead, tasks: int) -> bool:
    """Whether just so many tasks speak of what a host has of its own, of more that were started:
    where every host lacks it the others say so in the same second."""
    said = found.first.cite
    own, around = _LABEL.sub("", said.text).strip(), _around(facts, found)
    alike = sum(_LABEL.sub("", text).strip() == own for text in around)
    started = {e.place.task for e in facts.exits if e.place.task is not None}
    return alike == tasks < len(started) and _ITS_OWN.search(said.text) is not None


def _ended_too(facts: Facts, found: Lead, host: str) -> bool:
    """Whether srun ended tasks of other hosts: they may have been as far, and failed next."""
    return any(
        event.place.host is None or facts.node_of(event.place.host) != host
        for event in facts.exits
        if event.attempt == found.first.attempt
    )


def _of_all_hosts(facts: Facts, found: Lead) -> bool:
    """Whether the lines around speak of what every host asks for alike, as an image or a registry,
    and of nothing that a host has of its own, as a mount or a disk."""
    said = _around(facts, found)
    return any(map(_SHARED.search, said)) and not any(map(_ITS_OWN.search, said))


def _around(facts: Facts, found: Lead) -> Sequence[str]:
    """The lines beside the one that says that it failed."""
    cite = found.first.cite
    first = max(1, cite.line - BESIDE)
    return facts.lines(cite.source, first, cite.line - first + BESIDE)


def _prolog(facts: Facts) -> Finding | None:
    """A prolog that failed leaves no log: only the node's record says so."""
    rows = [row for row in facts.jobs if row.nodes and row.started_at is not None]
    events = [
        event
        for event in facts.node_events
        if event.reason is not None
        and "prolog" in event.reason.lower()
        and "epilog" not in event.reason.lower()
        and any(_touches(event, row) for row in rows)
    ]
    if not events or facts.has_progress:
        return None
    places = distinct(Place(host=event.host) for event in events)
    where = name_places(places)
    hosts = tuple(sorted({event.host for event in events}))
    return Finding(
        code=CODE,
        summary=f"The prolog failed on {where}; the job never started",
        fault_class="prolog",
        attribution="infrastructure",
        strength=0.9,
        shows=(
            claim(
                f"Slurm took {where} out of service: {events[0].reason}",
                *[event.cite for event in events[:3]],
                rows[-1].cite,
            ),
        ),
        implies=(
            claim("The node's own set-up script failed before the job ran.", events[0].cite),
        ),
        culprits=places,
        onset=events[0].at,
        attempt=facts.last.n,
        ended_run=facts.disposition != "completed",
        cannot_decide=("Why the prolog failed: slurmd's log on that node would tell.",),
        actions=(
            leave_out(facts, hosts, "; release the job where it is held"),
            Action("escalate", "Give operations the node and the reason on record."),
        ),
        resubmit="exclude",
    )


def _touches(event: NodeEvent, row: Job) -> bool:
    """Whether a node's record changed as the job was being started on it."""
    if event.host not in row.nodes or event.at is None or row.started_at is None:
        return False
    return abs((event.at - row.started_at).total_seconds()) <= AT_START_S


def _goes_on(facts: Facts, cite: LogCite) -> bool:
    """Whether so much is printed below a refusal that the program may run after all."""
    read = (cite.source, cite.line + 1, _READ_LINES)
    others = sum(_LAUNCHERS.match(text) is None for text in facts.lines(*read))
    return others >= GOES_ON_LINES


def _summary(found: Lead) -> str:
    where = name_places(found.culprits)
    subject = where[:1].upper() + where[1:] if where else "The run"
    return f"{subject} never started: {found.first.what.rstrip('.')}"


def _ran(facts: Facts) -> Cleared | None:
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    first = facts.point(track, track.of_attempt(facts.last.n)[0])
    return Cleared(CODE, "the program ran: training steps were made", (first.cite,))
