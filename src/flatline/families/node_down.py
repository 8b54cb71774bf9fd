"""
A node was lost under the run.

Symptom:
    Output stops on every rank without a traceback; the job ends NODE_FAIL, or the scheduler says
    that a node failed, stopped responding or was set DOWN while the job held it.  Or a host's own
    kernel panics or is rebooted meanwhile.

Mechanism:
    The controller ends (or requeues) a job when one of its nodes goes DOWN, FAIL or stops
    answering: power, kernel, network or an operator.  DRAIN only keeps new jobs away.

Told apart from:
    F2 requeue-preemption: the scheduler took the nodes back though they were well.
    C5 network-failure: the node stayed up and only its traffic stopped.
    B2 gpu-hardware-fault: the node was set DOWN because a GPU failed; then that is the cause.

Do:
    Resubmit without the node; give operations its name, the time and the reason on record.

References:
    Slurm documentation: node states, SlurmdTimeout, JobRequeue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import isfinite

from flatline.facts import Facts
from flatline.judging.before_a_start import before_a_start
from flatline.judging.claims import claim, distinct, name_places
from flatline.judging.crashes import of_family
from flatline.judging.gone_hosts import gone_hosts
from flatline.judging.leads import lead_of
from flatline.judging.lost_daemon import lost_daemon
from flatline.judging.set_down import seemed_up
from flatline.judging.steering import leave_out
from flatline.judging.timeline import by_host, instant
from flatline.model import (
    Action,
    Cite,
    Claim,
    Cleared,
    Finding,
    Job,
    Judgement,
    Match,
    NodeEvent,
    Place,
)

CODE = "F1"
NAME = "node-down"
NEEDS = ("scheduler records|job log to its end", "node events")
DECIDED_BY = (
    "the node's state and reason at the end of the run (scontrol show node, sinfo -R, "
    "slurmctld's log)"
)
EXPLAINS = {
    "C2": "the ranks on the lost node never enter the collective the others wait in",
    "C5": "connections to a node that is gone time out or are reset",
    "A2": "the scheduler kills the tasks that are left when it loses a node",
    "A3/io": "peers raise connection errors when a node is gone",
    "C1": "ranks on a node that is gone never join",
    "F2": "the scheduler requeues a job whose node failed",
    "C6": "a node that is going down stops serving its mounts",
}
LOST = {"DOWN", "FAIL", "FAILING", "NOT_RESPONDING", "NO_RESPOND", "REBOOT", "POWERED_DOWN"}
EXEC_HOSTS = "exec-hosts"
GIVEN_UP = 0.62
"""What Ray missed, or a node's state without a job, says little of why a run ended."""
UNANSWERED = 0.75
"""A network that is cut looks the same from the other hosts."""
READ_NO_MORE = 0.72
"""A judgement: less than `UNANSWERED`, for what reads the host may have been cut off from it."""
LISTED_TOO = 0.79
"""That, and a list of nodes that does not say since when: just short of confident."""
SLURMD = (
    "Whether the node was down, or its slurmd alone did not answer: the run made steps, or its"
    " GPUs worked, up to the moment it was given up."
)
READ, QUIET_S = "gpu_power_watts", 120
"""Scrapes come every 15 to 60 s, and a node is given up after SlurmdTimeout, 300 s by default."""
SILENT_S = (90, 60, 30)
"""Before a node is given up where that takes less: Kubernetes does within 40 to 50 s
(node-monitor-grace-period)."""
BACK_S = 600
"""How far before the record a host's readings are followed: twice SlurmdTimeout's default."""
AT_ONCE_S = 5.0
"""The controller ends the job and records the node within seconds of each other."""
AT_THE_END_S = 90.0
"""A node event this long after the job's end still belongs to it: the record of a node that stops
answering is written when SlurmdTimeout expires (30 to 300 s at most sites), the end with it."""


def judge(facts: Facts) -> Judgement:
    """Name nodes the scheduler itself says it lost before the end; a DRAIN is not one."""
    lines = facts.standing("node-failure")
    job = facts.job
    failed = [row for row in facts.jobs if row.disposition == "node_fail"]
    hosts = [match.groups["host"] for match in lines if match.groups.get("host")]
    hosts += [row.failed_node for row in failed if row.failed_node]
    hosts = hosts or (_only_host(facts) if lines else [])
    if not lines and not failed:
        events = _down_before_end(facts, list(facts.jobs), 0.0)
        if events and job is not None and job.disposition not in ("completed", "pending"):
            return _finding(facts, events, (), ())
        said = (_own_word(facts) or _given_up(facts) or _unanswered(facts)
                or _read_no_more(facts))  # fmt: skip
        return said or _out_of_service(facts) or _cleared(facts)
    if not failed and facts.disposition == "completed":
        return None
    rows = failed or list(facts.jobs)
    events = _down_before_end(facts, rows, AT_ONCE_S) or _down_before_end(
        facts, rows, AT_THE_END_S
    )
    events = tuple(e for e in events if not hosts or e.host in hosts)
    cites = [match.cite for match in lines if match.groups.get("host")] or [m.cite for m in lines]
    found = _finding(facts, events, tuple(hosts), (*cites[:3], *[row.cite for row in failed]))
    best = max(lines, key=lambda m: m.signature.strength, default=None)
    if best is not None and not (failed or events) and best.signature.strength <= GIVEN_UP:
        shown = claim(f"The log says it: {best.signature.meaning}", *cites[:3])
        found = replace(found, strength=best.signature.strength, shows=(shown,))
    if (n := _earlier_row(facts) if failed else _earlier_try(facts, lines)) is not None:
        steps = facts.attempts[n].last_step
        found = replace(found, attempt=n, onset_step=steps, ended_run=False, severity="warning")
        if facts.disposition in ("running", "completed"):
            found = replace(found, resubmit="unnecessary")
    found = _since_last_read(facts, found)
    if seemed_up(facts, [place.host for place in found.culprits if place.host]):
        found = replace(found, most=LISTED_TOO, cannot_decide=(SLURMD, *found.cannot_decide))
    quiet, why = ((), None) if found.culprits else _gone_quiet(facts)
    if why is None:
        return found
    places = tuple(Place(host=host) for host in quiet)
    return replace(found, culprits=places, scope="place", shows=(*found.shows, why),
                   summary=f"The cluster lost {name_places(places)} under the run",
                   actions=(leave_out(facts, quiet), *found.actions))  # fmt: skip


def _only_host(facts: Facts) -> list[str]:
    """The one host that the mail on the job's end says it had: it is the node that failed."""
    told = [m.groups["hosts"] for m in facts.tagged(EXEC_HOSTS) if m.groups.get("hosts")]
    named = {part.partition("/")[0] for text in told for part in text.split("+")}
    return sorted(named) if len(named) == 1 else []


def _earlier_try(facts: Facts, lines: Sequence[Match]) -> int | None:
    """The try that all of these lines ended, where the last one made its steps after them."""
    track = facts.main_track(facts.last.n)
    dated = [at for i in track.of_attempt(facts.last.n) if isfinite(at := track.at[i])
             ] if track is not None else []  # fmt: skip
    tries = {match.attempt for match in lines}
    begun = bool(dated) and len(tries) == 1 and all(
        match.cite.at is not None and match.cite.at.timestamp() < min(dated) for match in lines
    )  # fmt: skip
    if track is not None and not dated and tries and max(tries) < facts.last.n:
        begun = len(tries) == 1 and {match.cite.source for match in lines} == {track.source}
    if not begun and lines and all(before_a_start(facts, match) for match in lines):
        return max(0, facts.last.n - 1)
    return min(*tries, facts.last.n - 1) if begun and facts.last.n > 0 else None


def _earlier_row(facts: Facts) -> int | None:
    """The try whose record says that its node failed, where there is one of a later try."""
    n = _attempt(facts)
    return n if n < facts.last.n and facts.disposition != "node_fail" else None


def _own_word(facts: Facts) -> Finding | None:
    """A host's own kernel said that it stopped, or went down, while the run was on it: what
    serves as its end where the scheduler's record only says that the job failed."""
    began, ended = facts.lived
    lines = [
        f
        for f in of_family(facts, CODE)
        if f.cite.source in facts.kernel_files and f.cite.at is not None
        and began is not None and ended is not None
        and began <= f.cite.at <= ended + timedelta(seconds=AT_THE_END_S)
    ]  # fmt: skip
    if not lines or facts.disposition == "completed":
        return None
    first = lead_of(facts, lines).first
    places = distinct(Place(host=facts.node_of(f.place.host)) for f in lines if f.place.host)
    hosts = tuple(place.host for place in places if place.host)
    found = _finding(facts, (), hosts, (first.cite,))
    where = name_places(places) or "a host of the run"
    return replace(
        found,
        summary=f"{where[:1].upper()}{where[1:]}: {first.what.rstrip('.')}",
        strength=first.strength,
        shows=(claim(f"The kernel of {where}: {first.what}", *(f.cite for f in lines[:3])),),
        onset=first.cite.at,
        order=(first.cite.source, first.cite.line),
    )


def _given_up(facts: Facts) -> Finding | None:
    """Ray gave a node up, with all that ran there: dead, cut off, or starved of CPU."""
    lines = facts.standing("ray-node-lost")
    if not lines or facts.disposition == "completed" or facts.standing("ray-mistaken"):
        return None  # a raylet that leaves by itself runs on a host that is up
    hosts = tuple(dict.fromkeys(m.groups["host"] for m in lines if m.groups.get("host")))
    found = _finding(facts, (), hosts, tuple(m.cite for m in lines[:3]))
    return replace(
        found,
        summary=f"Ray gave up {name_places(found.culprits) or 'a node'} with all that ran there",
        strength=GIVEN_UP,
        most=GIVEN_UP,
        shows=(claim("Ray's head missed a node's heartbeats and gave it up",
                     *(m.cite for m in lines[:3])),),
        implies=(),
        cannot_decide=("Whether the host is down: its raylet may have been killed for memory.",),
    )  # fmt: skip


def _unanswered(facts: Facts) -> Finding | None:
    """mpirun lost the daemon of a host, which takes no connection either."""
    known = lost_daemon(facts)
    if known is None or facts.disposition == "completed":
        return None
    host, cites = known
    text = f"mpirun lost its daemon on {host}, and a connection to that host finds nobody"
    return replace(
        _finding(facts, (), (host,), cites),
        strength=UNANSWERED,
        most=UNANSWERED,
        shows=(claim(text, *cites),),
        cannot_decide=("Whether the host or the network to it is down: its management controller"
                       " would tell.",),
    )  # fmt: skip


def _read_no_more(facts: Facts) -> Finding | None:
    """A host of which nothing was read from the last step on, where no record tells of nodes:
    Slurm's does, of any that it lost."""
    told = facts.job is not None and facts.job.scheduler != "kubernetes"
    gone = gone_hosts(facts) if not told and facts.disposition in ("failed", "unknown") else None
    missed = facts.standing("timeout") or of_family(facts, "C5")  # by those that are left
    if gone is None or not missed:
        return None
    where = name_places(tuple(Place(host=host) for host in gone.hosts))
    listed = [e.cite for e in facts.node_events if _lost(e) and e.host in gone.hosts]
    strength = READ_NO_MORE if len(listed) < len(gone.hosts) else LISTED_TOO
    also = claim("The cluster lists it as not ready", *listed[:3]) if listed else None
    return replace(
        _finding(facts, (), gone.hosts, gone.shows.cites),
        summary=f"Nothing was read of {where} any more from the last step on",
        strength=strength,
        most=strength,
        shows=tuple(filter(None, (gone.shows, also))),
        implies=(),
        onset=datetime.fromtimestamp(gone.since, UTC),
        onset_within_s=QUIET_S,
        cannot_decide=("Whether the host or the network to it is down: the cluster's record of"
                       " its nodes would tell.",),
    )  # fmt: skip


def _out_of_service(facts: Facts) -> Finding | None:
    """Nodes that are out of service, where their states are all that was handed over."""
    events = tuple(e for e in facts.node_events if _lost(e))
    if facts.jobs or facts.tracks or facts.matches or facts.crashes or not events:
        return None
    found = _finding(facts, events, (), ())
    where = name_places(found.culprits)
    return replace(
        found,
        summary=f"{where[:1].upper()}{where[1:]}: out of service",
        strength=GIVEN_UP,
        most=GIVEN_UP,
        shows=(claim(f"{where[:1].upper()}{where[1:]}: out of service",
                     *(e.cite for e in events[:4])),),
        implies=(),
        ended_run=False,
        cannot_decide=("Whether a run was on them: no record of a job was read.",),
    )  # fmt: skip


def _lost(event: NodeEvent) -> bool:
    return bool(LOST & {state.rstrip("*").split("+")[0] for state in event.states})


def _gone_quiet(facts: Facts) -> tuple[tuple[str, ...], Claim | None]:
    """Hosts whose readings had ended before the run did while the others' went on."""
    ended = facts.last.ended_at
    if ended is None or not facts.measured(READ):
        return (), None
    query = f"count by (host) (count_over_time({READ}[{{}}s]))"
    before, now = (by_host(instant(facts, query.format(s), int(ended.timestamp())))
                   for s in (3600, QUIET_S))  # fmt: skip
    if before is None or now is None:
        return (), None
    gone = tuple(sorted(set(before.rows) - set(now.rows)))
    if not gone or len(gone) > max(1, len(before.rows) // 4):
        return (), None
    cites = [before.cite(host, int(ended.timestamp()), "cards read in the hour") for host in gone]
    text = (
        f"In the last {QUIET_S} s of the run {', '.join(gone)} was read no more, the others were"
    )
    return gone, claim(text, *cites[:4])


def _since_last_read(facts: Facts, found: Finding) -> Finding:
    """From where the readings of the lost hosts ended and those of others went on: a node's record
    is written only when it has not answered for SlurmdTimeout."""
    hosts = {place.host for place in found.culprits if place.host}
    if found.onset is None or not hosts or not facts.measured(READ):
        return found
    query, at = f"count by (host) (count_over_time({READ}[{{}}s]))", int(found.onset.timestamp())
    for back in range(0, BACK_S, QUIET_S):
        read = by_host(instant(facts, query.format(QUIET_S), at - back))
        if read is None or not set(read.rows) - hosts:
            return found
        last = sorted(hosts & set(read.rows))
        if not last:
            continue
        silent_s = back or next(
            (s for s in SILENT_S if (n := by_host(instant(facts, query.format(s), at)))
             and n.rows and hosts.isdisjoint(n.rows)), 0,
        )  # fmt: skip
        if not silent_s:
            return found
        ends = at - silent_s
        text = f"{last[0]} was read no more for {silent_s} s before that, others were"
        told = claim(text, read.cite(last[0], at - back, f"cards read in {QUIET_S} s"))
        return replace(found, onset=datetime.fromtimestamp(ends, UTC), onset_within_s=QUIET_S,
                       shows=(*found.shows, told))  # fmt: skip
    return found


def _down_before_end(facts: Facts, rows: list[Job], slack_s: float) -> tuple[NodeEvent, ...]:
    starts = [row.started_at for row in rows if row.started_at]
    ends = [row.ended_at for row in rows if row.ended_at]
    if not starts or not ends:
        return ()
    latest = max(ends) + timedelta(seconds=slack_s)
    return tuple(
        event
        for event in facts.node_events
        if _lost(event)
        and event.at is not None
        and min(starts) <= event.at <= latest
        and any(event.host in row.nodes for row in rows)
    )


def _finding(
    facts: Facts, events: tuple[NodeEvent, ...], hosts: tuple[str, ...], cites: tuple[Cite, ...]
) -> Finding:
    named = dict.fromkeys([*hosts, *(event.host for event in events)])
    places = distinct(Place(host=host) for host in named)
    lowered = name_places(places) or "a node of the run"
    where = lowered[:1].upper() + lowered[1:]
    shown: list[Claim] = []
    if cites:
        shown.append(claim(f"The scheduler ended the run because {lowered} failed", *cites))
    reasons = [event for event in events if event.reason]
    if events:
        said = f"; the reason on record: {reasons[0].reason}" if reasons else ""
        shown.append(
            claim(f"{where} left service before the end{said}",
                  *[event.cite for event in events[:4]])
        )  # fmt: skip
    targets = tuple(named)
    onset = min((e.at for e in events if e.at), default=None) or _at(cites)
    return Finding(
        code=CODE,
        summary=f"The cluster lost {lowered} under the run" if targets else "A node was lost",
        attribution="infrastructure",
        strength=0.95 if cites and targets else 0.85,
        shows=tuple(shown),
        implies=(
            claim("The run did not cause this: nodes are lost by power, kernel, network or an"
                  " operator.", *(cites or tuple(e.cite for e in events))[:2]),
        ),
        culprits=places,
        scope="place" if places else "none",
        onset=onset,
        onset_step=facts.last_step,
        attempt=facts.last.n if len(facts.jobs) < 2 else _attempt(facts),
        cannot_decide=() if reasons and _telling(reasons[0].reason) else (
            "Why the node was lost: its kernel log and its management controller would tell.",
        ),
        actions=(
            leave_out(facts, targets) if targets else Action("rerun", "Submit it again."),
            Action("escalate", "Give operations the node, the time and the reason."),
        ),
        resubmit="exclude" if targets else "as_is",
    )  # fmt: skip


def _telling(reason: str | None) -> bool:
    return bool(reason) and "not responding" not in (reason or "").lower()


def _at(cites: tuple[Cite, ...]) -> datetime | None:
    return next((at for c in cites if (at := getattr(c, "at", None)) is not None), None)


def _attempt(facts: Facts) -> int:
    rows = [n for n, row in enumerate(facts.jobs) if row.disposition == "node_fail"]
    return rows[-1] if rows else facts.last.n


def _cleared(facts: Facts) -> Cleared | None:
    job = facts.job
    if job is None or job.disposition in ("unknown", "running", "pending"):
        return None
    why = f"the record says {job.state}, and no node of the job left service before its end"
    return Cleared(CODE, why, (job.cite,))
