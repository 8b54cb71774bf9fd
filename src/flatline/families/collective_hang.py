"""
Training froze in a collective that never completed.

Symptom:
    Steps were made, then nothing; minutes later the watchdog, Gloo or the coordination service
    reports that a collective timed out or that a peer is gone.  Ranks that report it were in the
    collective; the one they waited for reports something else, or nothing.

Mechanism:
    A collective completes only when every rank enters it.  One that is stopped, slow beyond the
    timeout (straggler-timeout), in another collective (mismatch), or no longer there (lost-peer)
    holds all others.  Launchers name the rank they noticed first, which is usually a victim.

Told apart from:
    A2, A3, B1, B2, F1: there the lost rank's own end is seen; it explains this one.
    C1 rendezvous-hang: no collective had ever completed, and none was at work elsewhere.
    C4 heartbeat-false-positive: the accused was working when it was declared dead.
    C5 network-failure: the peer was alive and the link to it failed.

Do:
    Look at the rank the others waited for: its stack (py-spy dump), its host's kernel log, its
    data.  Record the flight recorder on shared storage (TORCH_NCCL_DEBUG_INFO_TEMP_FILE) so that
    the next one names itself.

References:
    PyTorch ProcessGroupNCCL watchdog and flight recorder; gloo transport/tcp; JAX coordination
    service heartbeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from flatline.facts import Facts
from flatline.judging.addresses import carded
from flatline.judging.both_ends import closed_at_the_end
from flatline.judging.claims import cap, claim, distinct, name_places, number
from flatline.judging.crashes import failures
from flatline.judging.first_wait import never_met
from flatline.judging.idle_power import apart, none_worked
from flatline.judging.left_waiting import COPIED, left_waiting
from flatline.judging.odd_ending import odd_ending
from flatline.judging.one_look import looked_once
from flatline.judging.outlived import outlived
from flatline.judging.pace import silent_while_it_runs, standstill
from flatline.judging.ras import stuck
from flatline.judging.recorder import analyse
from flatline.judging.spinning import on_the_only_card, spinning
from flatline.judging.stalled import REPORT
from flatline.judging.steering import scheduler
from flatline.judging.stood_apart import stood_apart, stood_still
from flatline.judging.waited_for import (
    ACCUSED,
    Suspect,
    by_ras,
    by_stacks,
    of_its_rank,
    on_card,
    recorded,
    suspected,
)
from flatline.judging.waiting import FIRST_ONE, Waiting, waiting
from flatline.model import Action, Cite, Claim, Cleared, Finding, Judgement, Match, Place

CODE = "C2"
NAME = "collective-hang"
NEEDS = ("job log to its end", "flight-recorder dumps|GPU activity and power metrics")
DECIDED_BY = (
    "which rank had not entered the collective: flight-recorder dumps or stacks of all ranks "
    "(py-spy dump)"
)
EXPLAINS = {
    "A3": "the timeout surfaces as an exception on the ranks that waited",
    "C5": "peers of a rank that timed out and left see its connections close",
    "F3": "ranks frozen in a collective hold the allocation to the wall",
}
TAGS = ("timeout", "mismatch")
ECHOES = ("lost-peer", "heartbeat")
NCCL_CLOSED = "nccl-connection-closed"
ABORTED, TAKEN_DOWN = "watchdog-abort", 0.5
"""What the watchdog says last, and what it is worth alone: an error of NCCL's makes it say so."""


def judge(facts: Facts) -> Judgement:
    """Name the rank the others waited for, where the evidence singles it out; else nobody."""
    timed_out = waiting(facts, *TAGS)
    victims = timed_out or waiting(facts, *ECHOES)
    if victims is None:
        measured = _from_dumps(facts) or _frozen(facts) or _spun(facts)
        seen = measured or stood_still(facts, CODE) or looked_once(facts, CODE)
        return seen or stuck(facts, CODE) or _taken_down(facts) or _cleared(facts)
    if not _fatal(facts, victims):
        return _cleared(facts)
    everyone = waiting(facts, *TAGS, *ECHOES) or victims
    suspect = on_card(facts, suspected(facts, victims, everyone), victims)
    suspect = outlived(facts, suspect, victims)
    fault_class = _fault_class(victims, timed_out)
    if suspect.kind == "mismatch":
        fault_class = "mismatch"
    if not facts.has_progress and (_in_rendezvous(facts) or never_met(facts)):
        return None
    strength = _strength(facts, victims, suspect, timed_out=timed_out is not None)
    found = Finding(
        code=CODE,
        summary=_summary(facts, victims, suspect, fault_class),
        fault_class=fault_class,
        attribution="unknown",
        strength=strength,
        most=suspect.most,
        shows=tuple(_shows(victims, suspect)),
        implies=(claim(_victims(victims), *victims.cites[:2]),),
        culprits=distinct(facts.on_host(place) for place in suspect.places),
        scope="place" if suspect.places else "none",
        onset=_onset(facts) or victims.first.cite.at,
        onset_step=facts.last_step,
        order=(victims.first.cite.source, victims.first.cite.line),
        noticed=None if victims.first.cite.at_assumed else victims.first.cite.at,
        unordered=timed_out is None,
        attempt=victims.first.attempt,
        cannot_decide=tuple(_cannot(suspect, fault_class)),
        actions=_actions(facts, suspect),
        resubmit="unknown",
    )
    return carded(facts, found)


def _strength(facts: Facts, victims: Waiting, suspect: Suspect, *, timed_out: bool) -> float:
    strength = (0.86 if timed_out else 0.6) + (0.06 if suspect.places else 0.0)
    if suspect.kind is not None:
        strength = max(strength, 0.9)
    if not timed_out and suspect.sure <= ACCUSED:
        if not facts.has_progress:
            strength = min(strength, ECHO_ALONE)
        elif _reset(facts) and closed_at_the_end(facts) is not None:
            strength = min(strength, CLOSED_ALONE)
    if victims.first_ever(facts) and not facts.has_progress:
        strength = min(strength, FIRST_ONE)
    weak = victims.first.signature.strength
    if weak < 0.5 or "shown" in victims.first.signature.tags:
        strength = min(strength, weak if weak < HINT else 0.5)
    return strength


def _reset(facts: Facts) -> bool:
    return any(
        m.signature.id == NCCL_CLOSED and "Connection reset by peer" in m.cite.text
        for m in facts.tagged("lost-peer")
        if m.attempt == facts.last.n
    )


def _fatal(facts: Facts, victims: Waiting) -> bool:
    if facts.disposition == "completed":
        return False
    return not facts.went_on(victims.first.cite, victims.first.attempt)


def _in_rendezvous(facts: Facts) -> bool:
    return any("rendezvous" in m.signature.tags for m in facts.of_role("root"))


def _fault_class(victims: Waiting, timed_out: Waiting | None) -> str:
    if any("mismatch" in m.signature.tags for m in victims.matches):
        return "mismatch"
    return "straggler-timeout" if timed_out else "lost-peer"


ECHO_ALONE = 0.28
"""That a peer was lost shows in every failure of another process, whatever ended it; that training
stood still does not, where no step and no timeout was read."""
CLOSED_ALONE = 0.35
"""That a connection of NCCL's was reset, to end the one log there is, is C5's to tell: of a
standstill it says nothing, and a process that ends by itself closes its connections in order."""
HINT = 0.3
"""A line believed less than this alone decides nothing: `diagnose` shows it and blames nobody."""
FROZEN = 0.65
"""Silence of all ranks is most often a collective that never completes, but storage and data can
hold them alike."""
IDLED_MOST = 0.6
"""What waits in a collective keeps its GPU busy: all of them idle, and it waits elsewhere, or is
gone.  A cause of another kind goes first."""
WHY_ONE = "Why that process did not come: its stack or its host's kernel log would tell."
WHERE_ELSE = (
    "Whether it waited for storage or for data, or had left: the stacks of the ranks would tell."
)
WHERE = (
    "Whether it waited in a collective, for storage or for data: the stacks of the ranks or the"
    " power of their GPUs at that time would tell."
)
REPORTED_WITHIN = timedelta(minutes=5)
"""What holds a run is reported after it held it: an NFS server after its retransmits (60 s and
more with nfs(5)'s timeo and retrans), a blocked task after 120 s (hung_task_timeout_secs)."""
SPUN, SPUN_MOST = 0.75, 0.79
"""Kernels that run and draw little for long wait, most likely: a long evaluation that prints no
step, and generates token by token, looks alike.  Only a card that is idle meanwhile tells."""
FROZEN_AND_IDLE = 0.85
"""Some cards idle, the others busy: what held all alike is out."""
DUMPS_ALONE = 0.75
"""Dumps of a run that still moves are taken milliseconds apart and can look like a standstill, so
without any sign of one they do not reach "confident"."""


def _from_dumps(facts: Facts) -> Finding | None:
    """The flight recorder alone: dumps are written when a collective times out, or on request."""
    if facts.disposition in ("completed", "running"):
        return None
    seen = analyse(facts.dumps, facts.world_size)
    suspect = recorded(facts)
    if seen is None or suspect is None or suspect.why is None:
        return None
    fault_class = "mismatch" if seen.kind == "mismatch" else "straggler-timeout"
    where = name_places(suspect.places)
    return Finding(
        code=CODE,
        summary=f"The others wait in a collective for {where}",
        fault_class=fault_class,
        attribution="unknown",
        strength=DUMPS_ALONE,
        shows=(suspect.why,),
        implies=(
            claim("Ranks with pending collectives are victims: they wait.", *seen.cites[:2]),
        ),
        culprits=distinct(facts.on_host(place) for place in suspect.places),
        onset=seen.since,
        attempt=facts.last.n,
        cannot_decide=(
            "Whether the run stood still when the dumps were taken: its log would tell.",
            *_cannot(suspect, fault_class),
        ),
        actions=_actions(facts, suspect),
        resubmit="unknown",
    )


def _frozen(facts: Facts) -> Finding | None:
    """Several ranks went silent together long before the run was ended from outside, or while it
    runs and its GPUs wait for one that does not work."""
    ended = standstill(facts)
    still = ended or silent_while_it_runs(facts)
    left = left_waiting(facts) if still is None else None
    still = left.still if left else still
    many = (facts.world_size or len(facts.ranks)) > 1 or len(facts.hosts) > 1
    many = many or stood_apart(facts) is not None  # whose log tells of no ranks
    if still is None or not many:
        return None
    seen, seconds, derived, end = still
    at = getattr(end, "at", None)
    until = _until(facts, ended is not None, left is not None)
    unpowered = left.idle if left else apart(facts, at.timestamp() if ended and at else None)
    if unpowered is None and ended is None:
        return None
    odd = None if unpowered else by_stacks(facts) or by_ras(facts) or odd_ending(facts)
    places = unpowered.places if unpowered else odd.places if odd else ()
    places, late = of_its_rank(facts, places)
    idle = None if places or at is None or seen.at is None else none_worked(facts, seen.at, at)
    step = f" after step {facts.last_step}" if facts.last_step is not None else ""
    return Finding(
        code=CODE,
        summary=f"Training froze{step}: "
        + (
            f"the others waited for {_waited_for(places)}"
            if places
            else f"no step was printed for the last {seconds:.0f} s"
        ),
        attribution="unknown",
        strength=FROZEN_AND_IDLE if unpowered else FROZEN,
        most=unpowered.most if unpowered else IDLED_MOST if idle else odd.most if odd else 1.0,
        shows=(
            claim(f"Progress came every {seen.interval_s:.1f} s, and then none for"
                  f" {seconds:.0f} s until {until}", derived, seen.last, end),
            *((unpowered.why,) if unpowered else ()),
            *((odd.why,) if odd and odd.why else ()),
            *((claim("No GPU of the run worked meanwhile", idle),) if idle else ()),
            *late,
        ),
        implies=(claim("It stood still while it held its allocation.", seen.last, end),),
        ended_run=idle is None,
        severity="degraded" if idle else "fatal",
        culprits=places,
        scope="place" if places else "none",
        onset=seen.at,
        onset_step=facts.last_step,
        noticed=_noticed(seen.at, at),
        attempt=facts.last.n,
        cannot_decide=(*((COPIED,) if left else ()),
                       WHY_ONE if places else WHERE_ELSE if idle else WHERE),
        actions=_actions(facts, Suspect(places, None, 0.0)),
        resubmit="unknown",
    )  # fmt: skip


def _until(facts: Facts, ended: bool, left: bool) -> str:
    if left:
        return "the last reading of its GPUs"
    until = "its log" if facts.disposition in ("unknown", "running") else "the run was"
    return f"{until} ended" if ended else "its record was taken"


def _spun(facts: Facts) -> Finding | None:
    """All GPUs fell to what waiting draws, for as long as no step accounts for."""
    held = spinning(facts)
    if held is None or on_the_only_card(facts) is not None:
        return None
    since = datetime.fromtimestamp(held.since, UTC)
    ended = facts.last.ended_at
    unpowered = apart(facts, ended.timestamp() if ended else None, held.since)
    if unpowered is None and not held.recorded:
        return None
    places, late = of_its_rank(facts, unpowered.places if unpowered else ())
    step = f" after step {facts.last_step}" if facts.last_step is not None else ""
    return Finding(
        code=CODE,
        summary=f"Training froze{step}: for its last {held.seconds:.0f} s "
        + (f"the others waited for {_waited_for(places)}" if places else "all GPUs waited"),
        attribution="unknown",
        strength=FROZEN_AND_IDLE if unpowered else SPUN,
        most=unpowered.most if unpowered else SPUN_MOST,
        shows=(*held.shows, *((unpowered.why,) if unpowered else ()), *late),
        implies=(
            claim("It stood still while it held its allocation.", *held.shows[-1].cites[:2]),
        ),
        culprits=places,
        scope="place" if places else "none",
        onset=since,
        onset_step=facts.last_step,
        noticed=_noticed(since, facts.last.ended_at),
        attempt=facts.last.n,
        cannot_decide=tuple(_cannot(Suspect(places, None, 0.0), "straggler-timeout")),
        actions=_actions(facts, Suspect(places, None, 0.0)),
        resubmit="unknown",
    )


def _taken_down(facts: Facts) -> Finding | None:
    """That the watchdog ended a run that had made steps, of which nothing else tells why."""
    said = [m for m in facts.tagged(ABORTED) if m.attempt == facts.last.n]
    if not said or not facts.has_progress or facts.disposition in ("completed", "cancelled"):
        return None
    first = said[0]
    if any(failure.fatal for failure in failures(facts)) or facts.went_on(
        first.cite, first.attempt
    ):
        return None
    text = "The watchdog took the process down for a collective that failed or timed out"
    return Finding(
        code=CODE,
        summary=f"{text}, after step {facts.last_step}",
        attribution="unknown",
        strength=TAKEN_DOWN,
        shows=(claim(text, *(m.cite for m in said[:4])),),
        implies=(claim("The process that says so waited: it is a victim.", first.cite),),
        scope="none",
        onset=first.cite.at,
        onset_step=facts.last_step,
        order=(first.cite.source, first.cite.line),
        attempt=facts.last.n,
        cannot_decide=("Whether the collective timed out or failed, and on which rank: the lines"
                       " before it, and the other ranks' logs, would tell.",),
        actions=_actions(facts, Suspect((), None, 0.0)),
        resubmit="unknown",
    )  # fmt: skip


def _noticed(froze: datetime | None, ended: datetime | None) -> datetime | None:
    """By when a cause must have shown: kernels speak of it only after a while."""
    if froze is None or ended is None:
        return froze
    return min(ended, froze + REPORTED_WITHIN)


def _waited_for(places: Sequence[Place]) -> str:
    """One card by its number; ranks and hosts as lists."""
    card = len(places) == 1 and places[0].gpu is not None
    return str(places[0]) if card else name_places(places)


def _summary(facts: Facts, victims: Waiting, suspect: Suspect, fault_class: str) -> str:
    step = f" after step {facts.last_step}" if facts.last_step is not None else ""
    if suspect.places:
        where = _waited_for(suspect.places)
        if suspect.kind == "mismatch":
            return f"Training froze{step}: {where} entered another collective than the others"
        return f"Training froze{step}: the others waited for {where}"
    what = {
        "mismatch": "the ranks entered different collectives",
        "straggler-timeout": "a collective timed out",
        "lost-peer": "a peer was lost",
    }[fault_class]
    return f"Training froze{step}: {what}; nothing read singles out the rank that was waited for"


def _shows(victims: Waiting, suspect: Suspect) -> list[Claim]:
    numbered = [m for m in victims.matches if number(m.cite.place) is not None]
    where = name_places(distinct(m.cite.place for m in numbered))
    text = f"{cap(where)} reported it" if where else "The log reports it"
    shown: list[Cite] = [m.cite for m in _first_each(victims)]
    claims = [claim(f"{text}: {_lower(victims.first.signature.meaning)}", *shown)]
    return [*claims, *(why for why in (suspect.why, suspect.card) if why is not None)]


def _victims(victims: Waiting) -> str:
    if victims.first.signature.id == REPORT:
        return "Rank 0 reports it for all: ranks that are not listed sent theirs and are victims."
    return (
        "The ranks that report it were in the collective and waited: they are victims, whichever"
        " of them the launcher names first."
    )


def _first_each(victims: Waiting) -> list[Match]:
    rest = [m for m in victims.matches if m is not victims.first]
    return [victims.first, *rest][:4]


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _onset(facts: Facts) -> datetime | None:
    """The last step is when it froze; the timeout is only when that was noticed."""
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    return track.time(track.of_attempt(facts.last.n)[-1])


def _cannot(suspect: Suspect, fault_class: str) -> list[str]:
    said = []
    if not suspect.places:
        said.append(
            "Which rank the others waited for: flight-recorder dumps of all ranks, or the logs of"
            " every rank, would tell."
        )
    else:
        said.append(
            "Why that rank did not come: its stack at the time, its host's kernel log and its"
            " GPU's metrics would tell."
        )
    if suspect.doubt is not None:
        said.append(suspect.doubt)
    if fault_class == "lost-peer":
        said.append(
            "Whether the peer died or the network to it failed: the scheduler's record or the"
            " kernel log of its host would show an earlier end."
        )
    return said


def _actions(facts: Facts, suspect: Suspect) -> tuple[Action, ...]:
    hosts = tuple(sorted({p.host for p in suspect.places if p.host}))
    look = Action(
        "collect",
        "If it recurs, dump the stacks of the rank that is waited for while it hangs.",
        "py-spy dump --pid PID",
        hosts,
    )
    if _records_nothing(facts):
        return (look,)
    shared = "$SLURM_SUBMIT_DIR" if scheduler(facts) == "slurm" else "/SHARED/FOLDER"
    record = Action(
        "collect",
        "Keep flight-recorder dumps on shared storage for the next run.",
        f"export TORCH_NCCL_DEBUG_INFO_TEMP_FILE={shared}/fr/rank_ TORCH_NCCL_DUMP_ON_TIMEOUT=1",
    )
    return look, record


def _records_nothing(facts: Facts) -> bool:
    """Whether the collectives that stopped are of JAX, Gloo or Horovod alone: the recorder is
    that of NCCL under torch (torch/csrc/distributed/c10d, ProcessGroupNCCL)."""
    stopped = [m for tag in (*TAGS, *ECHOES) for m in facts.tagged(tag)]
    origins = {match.signature.origin for match in stopped}
    return bool(origins) and origins <= {"gloo", "jax", "mpi"}


def _cleared(facts: Facts) -> Cleared | None:
    track = facts.main_track(facts.last.n)
    if facts.disposition == "completed" and track is not None:
        last = facts.point(track, track.of_attempt(facts.last.n)[-1])
        why = "training went on to the end of the run, which ended on its own"
        return Cleared(CODE, why, (last.cite,), decisive=True)
    absent = facts.absence(
        ["tag:timeout", "tag:lost-peer", "tag:mismatch", "tag:heartbeat"],
        "no collective timed out and no peer was lost in any log",
    )
    return None if absent is None else Cleared(CODE, absent.text, (absent,))
