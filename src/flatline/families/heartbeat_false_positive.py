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
    JAX coordination service (heartbeat_timeout_seconds); MaxText
    jax_distributed_heartbeat_timeout_seconds.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from flatline.facts import Facts, Track
from flatline.judging.claims import claim, distinct, name_places, number
from flatline.judging.kept_power import kept_working
from flatline.judging.pace import pace
from flatline.judging.waiting import accused as accused_by
from flatline.model import Action, Claim, Cleared, Finding, Judgement, LogCite, Match, Place

CODE = "C4"
NAME = "heartbeat-false-positive"
NEEDS = ("job log with dated steps of the accused|GPU power metrics of the accused",)
EXPLAINS = {
    "C2": "the coordination service ends every task once it believes one dead",
    "A2": "the runtime aborts on the fatal error the coordination service sends",
}
DEFAULT_TIMEOUT_S = 100.0
"""JAX's heartbeat timeout where the log states none (jax.distributed.initialize, 0.4 to 0.10)."""
STEPS_NEEDED = 2
"""One dated step in the window could be the last before the silence; two show work going on."""
UP_TO_THE_END_STEPS, UP_TO_THE_END_PART = 3.0, 0.5
"""The last step must lie within so many step times of the declaration, and so late a part of the
window, else it had stopped: what was under way when a process dies still completes."""
SOON_PART = 0.5
"""Of the timeout: whoever died with the line that dates another is declared dead later."""
OWN, OTHERWISE = 0.88, 0.84
"""How sure steps of the accused make, and what shows their work less directly."""
SHOWN = 3


def judge(facts: Facts) -> Judgement:
    """Clear the accused only on work inside the window of the accusation: their dated steps, those
    of all, or the power of their GPUs."""
    accusations = [m for m in facts.tagged("heartbeat") if accused_by(facts, m)]
    if not accusations:
        absent = facts.absence(["tag:heartbeat"], "nobody was declared dead in any log")
        return None if absent is None else Cleared(CODE, absent.text, (absent,))
    timeout_s = _timeout_s(facts)
    declared = _declared(facts, accusations, timeout_s)
    if declared is None:
        return None
    accused = sorted({task for m in accusations for task in accused_by(facts, m)})
    own = [_steps(facts, task, declared, timeout_s) for task in accused]
    if all(own):
        return _finding(facts, accusations, accused, [c for c in own if c], declared)
    shown = [_with_all(facts, accusations, accused, declared, timeout_s)]
    if shown[0] is None and not _had_stopped(facts, declared, timeout_s):
        hosts = [facts.on_host(Place(task=task)).host for task in accused]
        shown = [kept_working(facts, declared.timestamp(), timeout_s, hosts)]
    found = [c for c in shown if c is not None]
    return _finding(facts, accusations, accused, found, declared, own=False) if found else None


def _declared(facts: Facts, accusations: list[Match], timeout_s: float) -> datetime | None:
    """When it was declared.  A line without a time of its own has that of one before it, which may
    be a dying task's last step: it counts where the job's record ends soon after."""
    dated = [m.cite.at for m in accusations if m.cite.at and not m.cite.at_assumed]
    assumed = min((m.cite.at for m in accusations if m.cite.at), default=None)
    if dated:
        return min(dated)
    ended = None if facts.job is None else facts.job.ended_at
    if assumed is None or ended is None:
        return None
    return assumed if 0 <= (ended - assumed).total_seconds() <= SOON_PART * timeout_s else None


def _timeout_s(facts: Facts) -> float:
    stated = [
        m.groups["timeout_ms"] for m in facts.tagged("heartbeat") if "timeout_ms" in m.groups
    ]
    return float(stated[0]) / 1000 if stated and stated[0].isdigit() else DEFAULT_TIMEOUT_S


def _steps(facts: Facts, task: int, declared: datetime, timeout_s: float) -> Claim | None:
    """The accused's own steps between its last heartbeat and the declaration."""
    for track in facts.tracks:
        made = _made(facts, track, declared, timeout_s) if number(track.place) == task else None
        if made is not None:
            return claim(f"Task {task} made steps inside the window of that accusation", *made)
    return None


def _with_all(
    facts: Facts,
    accusations: list[Match],
    accused: list[int],
    declared: datetime,
    timeout_s: float,
) -> Claim | None:
    """Steps of another task then, where the accused lived to report the accusation themselves: a
    step completes only with every task."""
    reported = {number(m.cite.place) for m in accusations}
    track = facts.main_track(facts.last.n)
    if track is None or not set(accused) <= reported:
        return None
    made = _made(facts, track, declared, timeout_s)
    text = "Steps, which complete only with every task, went on inside that window"
    return None if made is None else claim(text, *made)


def _made(
    facts: Facts, track: Track, declared: datetime, timeout_s: float
) -> tuple[LogCite, ...] | None:
    """First and last dated step in the window; None where there are too few or where they stop
    well before the declaration."""
    inside = _inside(track, declared - timedelta(seconds=timeout_s), declared)
    if len(inside) < STEPS_NEEDED:
        return None
    first, last = facts.point(track, inside[0]).cite, facts.point(track, inside[-1]).cite
    if first.at is None or last.at is None:
        return None
    step_s = (last.at - first.at).total_seconds() / (len(inside) - 1)
    most_s = min(UP_TO_THE_END_STEPS * max(step_s, 1.0), UP_TO_THE_END_PART * timeout_s)
    return (first, last) if (declared - last.at).total_seconds() <= most_s else None


def _had_stopped(facts: Facts, declared: datetime, timeout_s: float) -> bool:
    """Whether dated progress ends before the window: a hang came first."""
    seen = pace(facts)
    if seen is None:
        return False
    quiet_s = (declared - seen.at).total_seconds()
    return quiet_s > max(timeout_s, UP_TO_THE_END_STEPS * (seen.interval_s or 0.0), seen.pauses_s)


def _inside(track: Track, start: datetime, end: datetime) -> list[int]:
    times = ((i, track.time(i)) for i in range(len(track)))
    return [i for i, at in times if at is not None and start <= at <= end]


def _finding(
    facts: Facts,
    accusations: list[Match],
    accused: list[int],
    proofs: list[Claim],
    declared: datetime,
    *,
    own: bool = True,
) -> Finding:
    places = distinct(Place(task=task) for task in accused)
    where = name_places(places)
    worked = "still making steps" if own else "at work"
    return Finding(
        code=CODE,
        summary=f"{where[:1].upper()}{where[1:]} {'were' if len(accused) > 1 else 'was'} declared"
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
        cannot_decide=("What held the heartbeats back: no stack of the accused was read.",),
        actions=(
            Action("fix", "Raise the heartbeat timeout above the longest blocking phase."),
            Action("rerun", "Resubmit as it is; no node needs excluding."),
        ),
        resubmit="fix_first",
    )  # fmt: skip
