"""
A task was declared dead while it was working.

Symptom:
    The coordinator says that tasks stopped sending heartbeats and ends the run; the accused log
    their own death notice, and had been making steps all along.

Mechanism:
    The heartbeat shares a channel or an interpreter lock with something that blocks (a long
    checkpoint, a compile, a stuck RPC), so heartbeats stop though the work goes on.

Told apart from:
    C2 collective-hang: there the work had stopped before the declaration.
    A2 signal-kill, F1 node-down: there the accused were really gone.

Do:
    Raise the heartbeat timeout above the longest blocking phase and resubmit as it is; no node
    needs excluding.

References:
    Kubernetes, liveness probes; JAX coordination service (heartbeat_timeout_seconds); MaxText
    jax_distributed_heartbeat_timeout_seconds; PyTorch ProcessGroupNCCL heartbeat monitor
    (TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from flatline.facts import Facts
from flatline.judging.claims import claim, distinct, name_places, number
from flatline.judging.heartbeats import declared_dead, host_by_log
from flatline.judging.mistaken import Mistaken, mistaken
from flatline.judging.rank_monitors import unheard_ranks
from flatline.judging.set_down import WINDOW_S, SetDown, set_down
from flatline.judging.supervised import given_up
from flatline.judging.unheard_job import Unheard, unheard_job
from flatline.judging.unprobed import Unprobed, unprobed
from flatline.judging.watchdog_stuck import Aborted, watchdog_stuck
from flatline.model import Action, Claim, Cleared, Finding, Judgement, Match, Place
from flatline.rank_hosts import named_after

CODE = "C4"
NAME = "heartbeat-false-positive"
NEEDS = ("job log with dated steps of the accused|GPU power metrics of the accused",)
DECIDED_BY = (
    "dated steps or power of the accused between its last heartbeat and its being declared dead"
)
EXPLAINS = {
    "C2": "the coordination service ends every task once it believes one dead",
    "A2": "the runtime aborts on the fatal error the coordination service sends",
    "A3": "what ran on a node that was given up is lost to whoever waits for it",
    "F1": "the node is up: only its heartbeats were missed",
}
OWN, OTHERWISE, NODE = 0.88, 0.84, 0.68
"""How sure steps of the accused make, what shows their work less directly, and what a node's
daemon writes, which is no work of the run's."""
SHOWN = 3
BUFFERED_MOST = 0.79
BUFFERED = (
    "Whether those steps were made before and printed late: an output that is buffered looks so."
)
SLACK = "Whether the host stood still for a while in which its workers had nothing to do but wait."
ORDER = "Whether the tasks are on those hosts: they stand in the order of the job's nodes."


def judge(facts: Facts) -> Judgement:
    """Clear the accused only on work inside the window of the accusation: their dated steps, those
    of all, or the power of their GPUs."""
    told = declared_dead(facts)
    accusations, accused = list(told.lines), list(told.tasks)
    if (node := mistaken(facts)) is not None:
        return _of_a_node(facts, node)
    if (daemon := set_down(facts)) is not None:
        return _of_a_daemon(facts, daemon)
    if (wrong := given_up(facts)) is not None:
        found = _finding(facts, wrong.lines, wrong.places, wrong.shows, wrong.at,
                         own=wrong.by_steps)  # fmt: skip
        return found if wrong.by_steps else replace(found, strength=NODE, most=BUFFERED_MOST)
    if (whole := _unnamed(facts)) is not None:
        return whole
    if not accusations:
        absent = facts.absence(["tag:heartbeat"], "nobody was declared dead in any log")
        return None if absent is None else Cleared(CODE, absent.text, (absent,))
    if told.at is None and not told.own:
        return None
    places = distinct(facts.on_host(Place(task=task)) for task in accused)
    if len(told.own) == len(accused):
        return _finding(facts, accusations, places, list(told.own.values()), told.at)
    if told.otherwise is None:
        return None
    found = _finding(facts, accusations, places, [told.otherwise], told.at, own=False)
    if not told.by_order:
        return found
    return replace(found, strength=NODE, most=BUFFERED_MOST,
                   cannot_decide=(*found.cannot_decide, BUFFERED))  # fmt: skip


def _unnamed(facts: Facts) -> Finding | None:
    """Where a monitor of one rank ended it, or no task is named: the job as a whole was given
    up."""
    if (aborted := watchdog_stuck(facts)) is not None:
        return _of_a_watchdog(facts, aborted)
    if (ended := unheard_ranks(facts)) is not None:
        return _of_a_monitor(facts, ended)
    if (unheard := unheard_job(facts)) is not None:
        return _of_a_job(facts, unheard)
    probed = unprobed(facts)
    return None if probed is None else _of_a_container(facts, probed)


def _by_order(facts: Facts, place: Place) -> Place:
    """With the host of a task of which nothing says where it is, where there is one task a node,
    or each node has one log, or no task was heard of that has no node of its own: Slurm numbers
    them in the order of its nodes."""
    nodes, task = facts.job.nodes if facts.job is not None else (), place.task
    if place.host is None and task is not None and not nodes:
        return replace(place, host=host_by_log(facts, task))
    logs = {named_after(track.source, nodes) for track in facts.tracks}
    one_each = len(nodes) in (facts.world_size, len(facts.tracks) if logs == {*nodes} else None)
    heard = {n for track in facts.tracks if (n := number(track.place)) is not None}
    fits = len(heard) > 1 and max(heard) < len(nodes) and facts.world_size is None
    if place.host is not None or task is None:
        return place
    if task >= len(nodes) or not (one_each or fits):
        return replace(place, host=host_by_log(facts, task))
    return replace(place, host=nodes[task])


def _finding(
    facts: Facts,
    accusations: Sequence[Match],
    told: tuple[Place, ...],
    proofs: Sequence[Claim],
    declared: datetime | None,
    *,
    own: bool = True,
) -> Finding:
    places = distinct(_by_order(facts, place) for place in told)
    where = name_places(told)
    worked = "still making steps" if own else "at work"
    return Finding(
        code=CODE,
        summary=f"{where[:1].upper()}{where[1:]} {'were' if len(told) > 1 else 'was'} declared"
        f" dead while {worked}",
        attribution="job",
        strength=OWN if own else OTHERWISE,
        shows=(
            claim(f"The coordinator declared {where} dead", *[m.cite for m in accusations[:3]]),
            *proofs[:SHOWN],
        ),
        implies=(
            claim("The declaration was false: the work went on while heartbeats did not arrive.",
                  *proofs[0].cites[:2]),
        ),
        cleared=places,
        scope="none",
        onset=declared,
        onset_step=facts.last_step,
        attempt=accusations[0].attempt,
        cannot_decide=(
            "What held the heartbeats back: no stack of the accused was read.",
            *((ORDER,) if places != told and facts.job is not None else ()),
        ),
        actions=(
            Action("fix", "Raise the heartbeat timeout above the longest blocking phase."),
            Action("rerun", "Resubmit as it is; no node needs excluding."),
        ),
        resubmit="fix_first",
    )  # fmt: skip


def _of_a_watchdog(facts: Facts, aborted: Aborted) -> Finding:
    """Ranks that PyTorch's own monitor aborted."""
    where = name_places(aborted.places)
    found = _finding(facts, aborted.lines, aborted.places, aborted.shows, aborted.at,
                     own=aborted.own)  # fmt: skip
    worked = "still making steps" if aborted.own else "at work"
    return replace(
        found,
        summary=f"PyTorch's heartbeat monitor aborted {where}, {worked}",
        shows=(
            claim(f"The heartbeat monitor of {where} found its NCCL watchdog stuck",
                  *[m.cite for m in aborted.lines[:3]]),
            *aborted.shows[:SHOWN],
        ),
        implies=(
            claim("The work went on: only the watchdog's thread was held up.",
                  *aborted.shows[0].cites[:2]),
        ),
        cannot_decide=(
            "What held the watchdog's thread up, the interpreter lock or a CUDA call: no stack of"
            " it was read.",
        ),
        actions=(
            Action("fix", "Raise TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC, and look for what holds the"
                   " interpreter lock within a CUDA call (py-spy dump --native)."),
            Action("rerun", "Resubmit as it is; no node needs excluding."),
        ),
    )  # fmt: skip


def _of_a_monitor(facts: Facts, unheard: Aborted) -> Finding:
    """Ranks that their own monitors, of nvidia-resiliency-ext, ended."""
    where = name_places(unheard.places)
    found = _finding(facts, unheard.lines, unheard.places, unheard.shows, unheard.at)
    return replace(
        found,
        summary=f"Its rank monitor ended {where}, still making steps",
        shows=(
            claim(f"The rank monitor of {where} had heard nothing of it and ended it",
                  *[m.cite for m in unheard.lines[:3]]),
            *unheard.shows[:SHOWN],
        ),
        cannot_decide=("What held the heartbeats back, a full socket or a monitor that was not"
                       " scheduled: no stack of either was read.",),
        actions=(
            Action("fix", "Raise the timeout that the monitor waited for (rank_heartbeat_timeout,"
                   " rank_section_timeouts, rank_out_of_section_timeout of ft_launcher)."),
            *found.actions[1:],
        ),
    )  # fmt: skip


def _of_a_job(facts: Facts, unheard: Unheard) -> Finding:
    """A whole job that a workflow manager ended."""
    found = _finding(facts, [unheard.said], (), [unheard.shows], unheard.at)
    return replace(
        found,
        summary="The job was given up for missed heartbeats, still making steps",
        most=BUFFERED_MOST,
        shows=(claim("The workflow manager had heard no heartbeat of the job and ended it",
                     unheard.said.cite), unheard.shows),
        cannot_decide=("What held the heartbeats back: the process that sends them, the network or"
                       " a manager that was busy; its own log would tell.",
                       "Whether the log of the steps is of that job: neither names the other."),
        actions=(
            Action("fix", "Raise the manager's heartbeat timeout (CRYOSPARC_HEARTBEAT_SECONDS),"
                   " and see whether its host or database was busy then."),
            *found.actions[1:],
        ),
    )  # fmt: skip


def _of_a_container(facts: Facts, probed: Unprobed) -> Finding:
    """A container that the kubelet ended for its liveness probe."""
    found = _finding(facts, [probed.said], (), [probed.shows], probed.at, own=probed.stepping)
    worked = "still making steps" if probed.stepping else "at work beside its steps"
    return replace(
        found,
        summary=f"Its container was ended for a liveness probe that failed, {worked}",
        most=BUFFERED_MOST,
        shows=(claim("The kubelet ended the container for its liveness probe", probed.said.cite),
               probed.shows),
        attempt=facts.last.n,
        cannot_decide=("What kept the probe's answer: the interpreter lock, a host short of CPU or"
                       " the network; no stack of the process was read.",
                       "Whether those events are of that container's end: they bear ages alone."),
        actions=(
            Action("fix", "Give the liveness probe a longer timeoutSeconds and a higher"
                   " failureThreshold, or answer it from a process of its own."),
            *found.actions[1:],
        ),
    )  # fmt: skip


def _of_a_daemon(facts: Facts, down: SetDown) -> Finding:
    """Nodes that Slurm set DOWN though only slurmd did not answer."""
    places = distinct(Place(host=host) for host in down.hosts)
    where = name_places(places)
    return Finding(
        code=CODE,
        summary=f"Slurm set {where} DOWN while the run worked on there",
        attribution="scheduler",
        strength=OWN,
        shows=(claim(f"The controller had no answer of slurmd on {where} and set it DOWN",
                     *down.said[:3]), *down.shows),
        implies=(claim("The node was up: only its slurmd did not answer.", down.said[0],
                       *down.shows[0].cites[-1:]),),
        cleared=places,
        scope="none",
        onset=down.at,
        onset_within_s=WINDOW_S,
        onset_step=facts.last_step,
        attempt=facts.last.n,
        cannot_decide=("What kept slurmd from answering: its own log on the node would tell.",),
        actions=(
            Action("rerun", "Resubmit as it is; no node needs excluding."),
            Action("escalate", f"Have slurmd on {where} looked at (a health check that hangs, no"
                   " thread left), and SlurmdTimeout set above what it may take."),
        ),
        resubmit="as_is",
    )  # fmt: skip


def _of_a_node(facts: Facts, node: Mistaken) -> Finding:
    """A node of Ray's that was given up while its raylet was at work."""
    places, left = distinct(map(facts.on_host, node.places)), node.left
    where = name_places(places) or "a node"
    who = "its raylet was" if node.host is None else "its workers were"
    said = "The raylet found its node given up and left" if node.host is None else (
        f"Ray marked {where} dead for heartbeats that were missed")  # fmt: skip
    return Finding(
        code=CODE,
        summary=f"Ray gave up {where} while {who} at work",
        attribution="job",
        strength=NODE if node.host is None else OWN,
        most=NODE if node.host is None else BUFFERED_MOST if node.slack else 1.0,
        shows=(
            claim(said, left.cite, *(m.cite for m in node.given_up[:2])),
            node.wrote,
        ),
        implies=(claim("The node is up: its heartbeats were late or lost.", left.cite),),
        cleared=places,
        scope="none",
        onset=left.cite.at,
        onset_step=facts.last_step,
        order=(left.cite.source, left.cite.line),
        attempt=left.attempt,
        cannot_decide=("What held the heartbeats back: a host short of CPU or memory, or the"
                       " network to the head.", *((SLACK,) if node.slack else ())),
        actions=(
            Action("fix", "Leave CPU and memory to Ray's own processes, and raise its health check"
                   " timeouts (RAY_health_check_timeout_ms, RAY_num_heartbeats_timeout)."),
        ),
        resubmit="fix_first",
    )  # fmt: skip
