"""
A node was lost under the run.

Symptom:
    Output stops on every rank without a traceback; the job ends NODE_FAIL, or the scheduler says
    that a node failed, stopped responding or was set DOWN while the job held it.

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

from datetime import datetime, timedelta

from flatline.facts import Facts
from flatline.judging.claims import claim, distinct, name_places
from flatline.judging.steering import leave_out
from flatline.model import (
    Action,
    Cite,
    Claim,
    Cleared,
    Finding,
    Job,
    Judgement,
    NodeEvent,
    Place,
)

CODE = "F1"
NAME = "node-down"
NEEDS = ("scheduler records|job log to its end", "node events")
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
    if not lines and not failed:
        events = _down_before_end(facts, list(facts.jobs), 0.0)
        if events and job is not None and job.disposition not in ("completed", "pending"):
            return _finding(facts, events, (), ())
        return _cleared(facts)
    if job is not None and not failed and job.disposition == "completed":
        return None
    rows = failed or list(facts.jobs)
    events = _down_before_end(facts, rows, AT_ONCE_S) or _down_before_end(
        facts, rows, AT_THE_END_S
    )
    events = tuple(e for e in events if not hosts or e.host in hosts)
    cites = [match.cite for match in lines if match.groups.get("host")] or [m.cite for m in lines]
    return _finding(facts, events, tuple(hosts), (*cites[:3], *[row.cite for row in failed]))


def _down_before_end(facts: Facts, rows: list[Job], slack_s: float) -> tuple[NodeEvent, ...]:
    starts = [row.started_at for row in rows if row.started_at]
    ends = [row.ended_at for row in rows if row.ended_at]
    if not starts or not ends:
        return ()
    latest = max(ends) + timedelta(seconds=slack_s)
    return tuple(
        event
        for event in facts.node_events
        if LOST & {state.rstrip("*").split("+")[0] for state in event.states}
        and event.at is not None
        and min(starts) <= event.at <= latest
        and any(event.host in row.nodes for row in rows)
    )


def _finding(
    facts: Facts, events: tuple[NodeEvent, ...], hosts: tuple[str, ...], cites: tuple[Cite, ...]
) -> Finding:
    named = dict.fromkeys([*hosts, *(event.host for event in events)])
    places = distinct(Place(host=host) for host in named)
    where = name_places(places) or "A node of the run"
    shown: list[Claim] = []
    if cites:
        shown.append(claim(f"The scheduler ended the run because {where} failed", *cites))
    reasons = [event for event in events if event.reason]
    if events:
        said = f"; the reason on record: {reasons[0].reason}" if reasons else ""
        shown.append(
            claim(f"{where[:1].upper()}{where[1:]} left service before the end{said}",
                  *[event.cite for event in events[:4]])
        )  # fmt: skip
    targets = tuple(named)
    onset = min((e.at for e in events if e.at), default=None) or _at(cites)
    return Finding(
        code=CODE,
        summary=f"The cluster lost {where} under the run" if targets else "A node was lost",
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
