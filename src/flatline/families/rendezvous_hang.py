"""
The ranks never found each other.

Symptom:
    Every rank is up and cold; no collective has run; after the rendezvous timeout they report
    that the store, the master address or some of the ranks could not be reached, or the first
    collective of all times out.

Mechanism:
    Process-group start-up needs every rank to reach one address (MASTER_ADDR:MASTER_PORT, the
    c10d store, the JAX coordinator).  A wrong or taken port, a name that does not resolve, a
    firewall, a network interface chosen wrongly, or one node that never started leaves all the
    others waiting.

Told apart from:
    A1 startup-crash: a rank raised an error of its own first; the others waited for it.
    C2 collective-hang: collectives had run before, or the one that is missing was at work.
    F4 launch-failure: a task never started, and the launcher says so.

Do:
    Check the address and port every rank used, from every node; check that every node was
    started; choose the interface with NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME.

References:
    PyTorch documentation, torch.distributed initialization and torchrun rendezvous;
    jax.distributed.initialize (initialization_timeout).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flatline.facts import Facts
from flatline.judging.claims import claim, distinct, name_places
from flatline.judging.crashes import NAMES_NO_CALL, Failure, failures
from flatline.judging.first_wait import Unmet, never_met
from flatline.judging.given_up import GivenUp, given_up
from flatline.judging.group_setup import checked_in_vain, lost_in_the_making
from flatline.judging.leads import Lead, fix, lead, raised, shows
from flatline.judging.left_behind import LeftBehind, left_behind
from flatline.judging.never_joined import never_joined
from flatline.judging.one_look import looked_once
from flatline.judging.registration import (
    Absent,
    Doubled,
    never_came,
    numbered_twice,
    turned_away_first,
    waited_for,
)
from flatline.judging.steering import leave_out
from flatline.judging.still_trying import Trying, of_ranks, still_trying
from flatline.judging.stood_apart import stood_still
from flatline.judging.too_few_nodes import TooFew, too_few_nodes
from flatline.judging.unreached import unreached
from flatline.judging.waiting import FIRST_ONE
from flatline.model import Action, Claim, Cleared, Crash, Finding, Judgement, LogCite, Place

CODE = "C1"
NAME = "rendezvous-hang"
NEEDS = ("job log",)
DECIDED_BY = (
    "a line of each rank that it joined the group, or the stack of one that waits to (py-spy dump)"
)
ALONE = 0.55
"""Victims of a store that went away look as those of one that was never reached."""
TRYING, CUT_SHORT = 0.78, 0.6
"""The run had not ended: whoever is waited for may still come."""
SOON = "Whether it would have come: somebody did not wait for long."
TOO_FEW, TOO_FEW_BY_ONE = 0.9, 0.74
"""A number that the job itself gives, beside what the scheduler gave it; and where not every agent
was heard of."""
LEFT, LEFT_MOST = 0.72, 0.79
"""One start was seen, and a line that was not written out looks like one that was not printed."""
GIVEN_UP = 0.4
"""Nothing tells how long it had waited: most who stop it there thought that nobody came."""
MOST_NAMED = 64
EXPLAINS = {
    "F3": "ranks waiting for a rendezvous that never completes hold the allocation to the wall",
    "A2": "the runtime ends the process when the rendezvous times out",
    "C2": "without a process group the first collective cannot complete",
    "C5": "a peer that never joined looks like a network that does not answer",
}


def judge(facts: Facts) -> Judgement:
    """Blame the rendezvous only where no step was made before it failed."""
    found = lead(facts, CODE)
    if found is None:
        told = (tell(facts, read) for look, tell in TOLD if (read := look(facts)))
        seen = next(told, None) or stood_still(facts, CODE) or looked_once(facts, CODE)
        return seen or _met(facts)
    first = found.first
    if first.started or _only_an_echo(facts, first):
        return None
    absent_from, ends = never_joined(facts, CODE)
    if not absent_from:
        absent_from, ends = unreached(facts)
    cannot = [
        "Which of an unreachable address, a firewall, a wrong name or a rank that never started"
        " is the trigger: these lines look alike for all of them."
    ]
    return Finding(
        code=CODE,
        summary=f"The ranks never formed their process group: {_brief(found)}",
        fault_class=first.fault_class,
        attribution=first.attribution,
        strength=first.strength,
        shows=(shows(found, first.what), *_unheard(facts), *((ends,) if ends else ())),
        implies=(
            claim(
                "The run failed before any training: a matter of addresses, ports, names or a"
                " node that did not start, not of the model.", first.cite,
            ),
        ),
        culprits=absent_from[:MOST_NAMED],
        scope="place" if absent_from else "all",
        onset=first.cite.at,
        order=(first.cite.source, first.cite.line),
        attempt=first.attempt,
        cannot_decide=tuple(cannot),
        actions=(fix(found, "Check the rendezvous address and port from every node."),),
        resubmit="fix_first" if first.attribution == "job" else "unknown",
    )  # fmt: skip


def _only_an_echo(facts: Facts, first: Failure) -> bool:
    """Whether a line that names no call stands beside the failure of another rank."""
    if first.signature is None or NAMES_NO_CALL not in first.signature.tags:
        return False
    return any(
        f.fatal and f.attempt == first.attempt and f.family != CODE and f.strength > first.strength
        for f in failures(facts)
    )


def _unheard(facts: Facts) -> tuple[Claim, ...]:
    """Which ranks were missing, where those that came say so of themselves."""
    ranks, said = never_came(facts)
    if not ranks:
        return ()
    missing = name_places([Place(rank=rank) for rank in ranks])
    return (claim(f"{missing[:1].upper()}{missing[1:]} never went to the rendezvous",
                  *(m.cite for m in said[:4])),)  # fmt: skip


def _incomplete(facts: Facts, absent: Absent) -> Finding:
    places = tuple(Place(rank=rank) for rank in absent.ranks)
    return Finding(
        code=CODE,
        summary=f"The ranks never formed their process group: {name_places(places)} of"
        f" {absent.world} never came",
        attribution="unknown",
        strength=0.72,
        shows=absent.shows,
        implies=(
            claim("Those that came wait until the rendezvous times out or the job is ended.",
                  absent.first),
        ),
        culprits=places[:MOST_NAMED],
        onset=absent.first.at,
        order=(absent.first.source, absent.first.line),
        attempt=facts.last.n,
        cannot_decide=(
            "Whether they were never started, cannot reach rank 0, or print into a log that was"
            " not read.",
        ),
        actions=(
            Action("collect", "See whether the processes of these ranks were started, and reach"
                   " MASTER_ADDR:MASTER_PORT from their host; check num_nodes, devices and the"
                   " tasks that the launcher starts."),
        ),
        resubmit="unknown",
    )  # fmt: skip


def _misnumbered(facts: Facts, doubled: Doubled) -> Finding:
    return Finding(
        code=CODE,
        summary="The ranks never formed their process group: several have the same number",
        attribution="job",
        strength=0.72,
        shows=(doubled.shows,),
        implies=(
            claim("Each node numbered its processes by itself: the group never becomes complete.",
                  doubled.first),
        ),
        scope="all",
        onset=doubled.first.at,
        order=(doubled.first.source, doubled.first.line),
        attempt=facts.last.n,
        cannot_decide=("Whether a complete group is told of elsewhere: what came after these"
                       " lines was not read.",),
        actions=(
            Action("fix", "Start the program so that its launcher is seen: by srun with as many"
                   " tasks as devices, or by torchrun with --node_rank; check SLURM_NTASKS,"
                   " NODE_RANK and num_nodes."),
        ),
        resubmit="fix_first",
    )  # fmt: skip


def _turned_away(facts: Facts, crash: Crash) -> Finding:
    said = " ".join(crash.message.split())[:160]
    return Finding(
        code=CODE,
        summary="The ranks never formed their process group: a connection broke while it was made",
        attribution="unknown",
        strength=ALONE,
        shows=(claim(f"{crash.exception}: {said}", crash.cite),),
        implies=(claim("This rank lost the one that keeps the group's store.", crash.cite),),
        scope="all",
        onset=crash.cite.at,
        order=(crash.cite.source, crash.cite.line),
        attempt=crash.attempt,
        cannot_decide=(
            "Whether the other end died first: the log of the rank that keeps the store (rank 0)"
            " would tell, and nothing of it was read.",
        ),
        actions=(
            Action("collect", "Read the log of rank 0 first; then reach MASTER_ADDR:MASTER_PORT"
                   " from that host and look for another service on the port."),
        ),
        resubmit="unknown",
    )  # fmt: skip


def _broke(facts: Facts, line: LogCite, trace: LogCite) -> Finding:
    by_store = "TCP client failed" in trace.text
    what = "connecting to the store" if by_store else "the call that sets NCCL up"
    return Finding(
        code=CODE,
        summary="The ranks never formed their process group: "
        + ("a connection to its store broke off as it was made" if by_store
           else "NCCL lost a connection while it was set up"),
        attribution="unknown",
        strength=ALONE,
        shows=(claim(f"A peer closed its connection within {what}", line, trace),),
        implies=(claim("The process that says so is a victim: its peer or the path to it went.",
                       line),),
        scope="all",
        onset=line.at,
        order=(line.source, line.line),
        attempt=facts.last.n,
        cannot_decide=("Whether the peer's process had failed before: its own log would tell.",),
        actions=(
            Action("collect", "Read the logs of the other ranks first; then try the interfaces"
                   " with NCCL_DEBUG=INFO and NCCL_SOCKET_IFNAME."),
        ),
        resubmit="unknown",
    )  # fmt: skip


def _checked(facts: Facts, said: tuple[LogCite, ...]) -> Finding:
    first = said[0]
    return Finding(
        code=CODE,
        summary="The ranks never formed their process group: a check of NCCL's own failed before"
        " any step",
        attribution="unknown",
        strength=ALONE,
        shows=(claim("NCCL ended with an internal error, and no training step was read before it",
                     *said[:4]),),
        implies=(claim("NCCL checks links and settings while it makes a group.", first),),
        scope="all",
        onset=first.at,
        order=(first.source, first.line),
        attempt=facts.last.n,
        cannot_decide=(
            "Which check failed, and whether a rank had gone before: the NCCL WARN lines of all"
            " ranks tell (NCCL_DEBUG=WARN).",
        ),
        actions=(
            Action("collect", "Rerun with NCCL_DEBUG=INFO; compare versions and NCCL_ variables of"
                   " all ranks, and the links that each host sees (nvidia-smi topo -m,"
                   " rocm-smi --showtopo)."),
        ),
        resubmit="unknown",
    )  # fmt: skip


def _unmet(facts: Facts, unmet: Unmet) -> Finding:
    first = unmet.victims.first.cite
    missing = name_places(unmet.missing)
    return Finding(
        code=CODE,
        summary="The first collective of all never completed"
        + (f": {missing} did not join it" if missing else "; the ranks may never have met"),
        attribution="unknown",
        strength=FIRST_ONE,
        shows=(
            claim("What timed out is the first that the group was asked for, before any step",
                  *unmet.victims.cites[:4]),
            *((unmet.why,) if unmet.why is not None else ()),
        ),
        implies=(claim("Those that report it joined and waited: they are victims.", first),),
        culprits=distinct(facts.on_host(place) for place in unmet.missing)[:MOST_NAMED],
        scope="place" if missing else "none",
        onset=first.at,
        order=(first.source, first.line),
        attempt=unmet.victims.first.attempt,
        cannot_decide=(
            "Whether a rank was late or gone, went another way in the program, or was there and"
            " could not be reached: the logs of all ranks with NCCL_DEBUG=INFO would tell, or"
            " the stack of a rank that hangs (py-spy dump).",
        ),
        actions=(
            Action("collect", "See what each rank did meanwhile, above all one that is missing;"
                   " then run all_reduce_perf (nccl-tests) on the same hosts and network"
                   " interfaces."),
        ),
        resubmit="unknown",
    )  # fmt: skip


def _trying(facts: Facts, trying: Trying) -> Finding:
    """Tries that go on to the end of what was read."""
    who, culprits = name_places(trying.places), trying.places or trying.sought
    others, are = of_ranks(trying.first), "are" if len(trying.sought) > 1 else "is"
    store = name_places(trying.sought) or ("another rank" if others else "rank 0's store")
    return Finding(
        code=CODE,
        summary="The ranks never formed their process group: "
        + (f"{who} cannot reach the store of rank 0" if who else f"{store} {are} not reached"),
        attribution="unknown",
        strength=CUT_SHORT if trying.cut_short else TRYING,
        shows=(trying.shows,),
        implies=(
            claim("Those that came wait until the rendezvous times out or the job is ended.",
                  trying.first),
        ),
        culprits=culprits[:MOST_NAMED],
        scope="place" if culprits else "all",
        onset=trying.at,
        order=(trying.first.source, trying.first.line),
        attempt=facts.last.n,
        cannot_decide=(
            "Which of an unreachable address, a firewall, a wrong name or a rank that never"
            " started is the trigger: these lines look alike for all of them.",
            *((SOON,) if trying.cut_short else ()),
        ),
        actions=(
            Action("collect", "See whether the processes of those ranks were started, and reach"
                   " their addresses from rank 0's host." if others
                   else "From that host, resolve and reach MASTER_ADDR:MASTER_PORT; see"
                   " whether rank 0 listens there."),
        ),
        resubmit="unknown",
    )  # fmt: skip


def _too_few(facts: Facts, few: TooFew) -> Finding:
    return Finding(
        code=CODE,
        summary=f"The ranks never formed their process group: the launch waits for {few.wanted}"
        f" nodes, the job has {few.nodes}",
        attribution="job",
        strength=TOO_FEW if few.all_heard else TOO_FEW_BY_ONE,
        most=1.0 if few.all_heard else LEFT_MOST,
        shows=few.shows,
        implies=(
            claim("Nobody else can come: they wait until the rendezvous times out or the job is"
                  " ended.", few.first),
        ),
        scope="all",
        onset=few.first.at,
        order=(few.first.source, few.first.line),
        attempt=facts.last.n,
        cannot_decide=() if few.all_heard else (
            "Whether agents of other nodes were meant to come: not every one was heard of.",),
        actions=(
            Action("fix", "Take --nnodes from the job ($SLURM_NNODES), or ask for as many nodes."),
        ),
        resubmit="fix_first",
    )  # fmt: skip


def _left_behind(facts: Facts, left: LeftBehind) -> Finding:
    return Finding(
        code=CODE,
        summary=f"The ranks never formed their process group: {name_places(left.places)} never"
        " came to the launch",
        attribution="unknown",
        strength=LEFT,
        most=LEFT_MOST,
        shows=left.shows,
        implies=(
            claim("Those that came wait until the rendezvous times out or the job is ended.",
                  left.last),
        ),
        culprits=left.places[:MOST_NAMED],
        onset=left.last.at,
        order=(left.last.source, left.last.line),
        attempt=facts.last.n,
        cannot_decide=(
            "What it stood in, and whether it had printed more that was never written out.",
        ),
        actions=(
            leave_out(facts, tuple(filter(None, (place.host for place in left.places)))),
            Action("collect", "See on that host what the task's shell waits for: its environment's"
                   " file system first (ps -o stat,wchan,cmd)."),
        ),
        resubmit="exclude",
    )  # fmt: skip


def _given_up(facts: Facts, ended: GivenUp) -> Finding:
    return Finding(
        code=CODE,
        summary="The ranks never formed their process group: it was interrupted while it waited"
        " for others",
        attribution="unknown",
        strength=LEFT if ended.lasted else GIVEN_UP,
        most=LEFT_MOST,
        shows=ended.shows,
        implies=(
            claim("Those that came wait until the rendezvous times out or the job is ended.",
                  ended.first),
        ),
        scope="all",
        onset=ended.first.at,
        order=(ended.first.source, ended.first.line),
        attempt=facts.last.n,
        cannot_decide=(
            "Whether the others were never started, cannot reach the address, or print into a log"
            " that was not read.",
            *(() if ended.lasted else (SOON,)),
        ),
        actions=(
            Action("collect", "See whether as many processes were started as the program waits"
                   " for (nodes, tasks, devices), and reach MASTER_ADDR:MASTER_PORT from their"
                   " hosts."),
        ),
        resubmit="unknown",
    )  # fmt: skip


def _brief(found: Lead) -> str:
    if found.first.signature is None:
        return raised(found)
    text = found.first.what.rstrip(".")
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def _met(facts: Facts) -> Cleared | None:
    if len(facts.ranks) < 2:
        return None
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    first = facts.point(track, track.of_attempt(facts.last.n)[0])
    return Cleared(CODE, "the ranks met: training steps were made", (first.cite,))


TOLD: tuple[tuple[Callable[[Facts], Any], Callable[[Facts, Any], Finding]], ...] = (
    (numbered_twice, _misnumbered), (waited_for, _incomplete), (turned_away_first, _turned_away),
    (never_met, _unmet), (lost_in_the_making, lambda facts, lines: _broke(facts, *lines)),
    (checked_in_vain, _checked), (still_trying, _trying),
    (too_few_nodes, _too_few), (left_behind, _left_behind), (given_up, _given_up),
)  # fmt: skip
"""What else tells of it, the first that does, and how it is told."""
