"""
A process was ended by a signal before it could say why.

Symptom:
    A rank stops in the middle of its output without a traceback; only the launcher's summary, the
    scheduler's record or the kernel log says that it was killed (SIGKILL), or crashed in native
    code (SIGSEGV, SIGABRT, SIGBUS).

Mechanism:
    The kernel's OOM killer ends the process that pushed the host (host-oom) or its memory cgroup
    (cgroup-oom) over the limit; native code touches memory it must not (segv), gives up (abort),
    or writes to a /dev/shm that is full (bus).  The survivors see their peer vanish.

Told apart from:
    A3 runtime-crash: the rank printed its own exception before it ended.
    C2 collective-hang: the launcher kills ranks that no longer answer; that signal comes after
    the others reported the wait.
    F1 node-down, F2 requeue-preemption, F3 timeout: the scheduler ended every task.

Do:
    For memory: fewer data-loader workers, smaller prefetch, or a larger memory request.  For a
    full /dev/shm: a larger --shm-size or fewer workers.  For native crashes: a core dump of the
    rank that failed first.

References:
    signal(7); Slurm documentation, OUT_OF_MEMORY and cgroup.conf ConstrainRAMSpace;
    Linux Documentation/admin-guide/cgroup-v2.
"""

from __future__ import annotations

from collections.abc import Sequence

from flatline.facts import LOG, Facts
from flatline.judging.claims import claim, distinct, name_places
from flatline.judging.counted_kills import counted_kill
from flatline.judging.killed_earlier import told_before
from flatline.judging.kills import Kill, Kills, kills
from flatline.judging.leads import as_rank
from flatline.model import Action, Attribution, Claim, Cleared, Finding, Judgement, LogCite, Place

CODE = "A2"
NAME = "signal-kill"
NEEDS = ("job log to its end", "scheduler records|kernel log")
DECIDED_BY = (
    "how the process ended: its signal from the launcher or scheduler, or the kernel's line on it"
)
EXPLAINS = {
    "C2": "the killed rank never enters the collective its peers wait in",
    "A3": "peers raise connection errors once the killed rank's sockets close",
    "A1": "the process that was killed left its parent or peers without an answer",
    "C1": "a killed rank never joins; after a restart its peers cannot reach it",
    "C5": "peers see the connection of the killed rank close",
    "F3": "ranks left waiting for the killed one hold the allocation to the wall",
}
_WORDS = {
    "host-oom": "The host ran out of memory and the kernel ended the process.",
    "cgroup-oom": "The job's memory limit was reached and the kernel ended the process.",
    "segv": "Native code touched memory it must not (SIGSEGV).",
    "abort": "Native code gave up (SIGABRT): a failed check or an unhandled C++ exception.",
    "bus": "A memory access could not be served (SIGBUS): most often a full /dev/shm.",
    "kill-unknown": "Something outside the process sent it.",
    "gone": "A process that is gone without an exception of its own was most often killed.",
}
_FIXES = {
    "host-oom": Action("fix", "Lower host memory use: fewer data-loader workers, less prefetch."),
    "cgroup-oom": Action("raise_limit", "Raise the job's memory limit or lower the use of it."),
    "segv": Action("collect", "Rerun with `ulimit -c unlimited` and read the core of that rank."),
    "abort": Action("collect", "Read the lines above the abort on that rank; rerun with a core."),
    "bus": Action("raise_limit", "Give /dev/shm more room (--shm-size) or use fewer workers."),
    "kill-unknown": Action(
        "collect", "Read the kernel log of that host around the kill: `dmesg -T | grep -i kill`."
    ),
}
_CHECKED = ("tag:oom-kill", "family:A2")


def judge(facts: Facts) -> Judgement:
    """Blame the first process a signal ended that nothing else in the logs had ended before."""
    found = kills(facts)
    if found is None or not found.first.fatal:
        return _cleared(facts, found)
    first = found.first
    told = _told_before(facts, first)
    kind = found.fault_class
    places, counted = found.places, _counted(facts, found)
    if counted is not None:
        places = (counted[0],)
    where = name_places(places)
    if not any(place.rank is not None or place.task is not None for place in places):
        where = f"a process on {where.partition(' ')[2]}" if where else "a process"
    gone = first.gone.rstrip(".") if kind == "kill-unknown" else ""
    shows = [claim(gone or f"{where[:1].upper()}{where[1:]} ended by {first.how}",
                   *found.cites[:6])]  # fmt: skip
    if found.oom:
        shows.append(claim("An out-of-memory kill stands in the evidence.", *found.oom_cites[:3]))
    shows += [] if counted is None else [counted[1]]
    return Finding(
        code=CODE,
        summary=f"{gone}; nothing read says why" if gone else _summary(where, kind, first.name),
        fault_class=kind,
        attribution=_blame(kind),
        strength=found.strength,
        shows=tuple(shows),
        implies=tuple(_implies(found, kind)),
        culprits=distinct(as_rank(facts, facts.on_host(place)) for place in places),
        scope="place" if places else "none",
        onset=first.at if told is None or told.at is None else told.at,
        onset_step=facts.last_step,
        order=first.position if told is None else (told.source, told.line),
        attempt=first.attempt,
        cannot_decide=tuple(_cannot(found, kind, gone)),
        actions=(_FIXES[kind],),
        resubmit="unknown" if kind == "kill-unknown" else "fix_first",
    )


def _cannot(found: Kills, kind: str, gone: str) -> list[str]:
    """What the end of a process leaves open."""
    first, cannot = found.first, list[str]()
    if kind == "kill-unknown":
        cannot.append(
            ("Whether it was killed, and by whom:" if gone else f"Who sent {first.name}:")
            + " the kernel's OOM killer, a memory limit or a person. The kernel log"
            " of that host and the scheduler's OUT_OF_MEMORY state would tell."
        )
    if first.helper:
        cannot.append(
            "Whether training was ended by it: a job of a recipe was killed, and nothing shows"
            " that it was the one that trains."
        )
    if first.done:
        cannot.append(
            "Whether anything was lost by it: the log says before that training was over."
        )
    if found.unheard:
        cannot.append(
            "Whether they aborted because a collective or a heartbeat timed out: nothing that was"
            " read tells what the program said of it."
        )
    if kind in ("segv", "abort", "bus"):
        cannot.append("Which code crashed: no core dump or native stack was read.")
    return cannot


def _told_before(facts: Facts, first: Kill) -> LogCite | None:
    """The line of the same kill that stands before its own, where that was for memory."""
    if first.signal not in (9, None) or not isinstance(first.cite, LogCite):
        return None
    return told_before(facts, first.cite, first.place, first.attempt)


def _counted(facts: Facts, found: Kills) -> tuple[Place, Claim] | None:
    """The host by its counter, where the kernel's own line dates the kill and nothing that was
    read names anybody."""
    told = [cite.at for cite in found.oom_cites
            if isinstance(cite, LogCite) and cite.source in facts.kernel_files]  # fmt: skip
    if found.places or found.fault_class not in ("host-oom", "cgroup-oom"):
        return None
    return counted_kill(facts, next(filter(None, told), None))


def _summary(where: str, kind: str, name: str) -> str:
    subject = where[:1].upper() + where[1:]
    return {
        "host-oom": f"{subject} was killed: the host ran out of memory",
        "cgroup-oom": f"{subject} was killed at the job's memory limit",
        "segv": f"{subject} crashed in native code (SIGSEGV)",
        "abort": f"{subject} aborted in native code (SIGABRT)",
        "bus": f"{subject} died of SIGBUS, as when /dev/shm is full",
        "kill-unknown": f"{subject} was killed by {name}; nothing read says by whom",
    }[kind]


def _blame(kind: str) -> Attribution:
    if kind in ("host-oom", "cgroup-oom", "bus", "segv", "abort"):
        return "job"
    return "unknown"


def _implies(found: Kills, kind: str) -> Sequence[Claim]:
    gone = bool(found.first.gone) and kind == "kill-unknown"
    claims = [claim(_WORDS["gone" if gone else kind], *(found.oom_cites[:2] or found.cites[:2]))]
    if found.echoes:
        where = name_places([m.cite.place for m in found.echoes])
        subject = (where[:1].upper() + where[1:]) or "The others"
        claims.append(
            claim(
                f"{subject} lost a peer and failed after it: victims, not causes.",
                *[m.cite for m in found.echoes[:3]],
            )
        )
    return claims


def _cleared(facts: Facts, found: Kills | None) -> Cleared | None:
    if found is not None:
        return _teardown(found.first)
    absent = facts.absence(_CHECKED, "no kill, crash or out-of-memory line in any log", LOG)
    job = facts.job
    if absent is None or any(event.signal not in (None, 15) for event in facts.exits):
        return None
    cites = (absent,) if job is None else (absent, job.cite)
    return Cleared(CODE, "no process was ended by a signal of its own", cites)


def _teardown(first: Kill) -> Cleared:
    return Cleared(
        CODE, f"the signal came after something else had ended the run ({first.why_not})",
        (first.cite,),
    )  # fmt: skip
