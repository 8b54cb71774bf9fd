"""
Who was declared dead for missed heartbeats, and who of them was at work all the while.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from flatline.facts import Facts, Track
from flatline.judging.claims import number
from flatline.judging.waiting import accused
from flatline.model import LogCite, Match

DEFAULT_TIMEOUT_S = 100.0
"""JAX's heartbeat timeout where the log states none (jax.distributed.initialize, 0.4 to 0.10)."""
STEPS_NEEDED = 2
"""One dated step in the window could be the last before the silence; two show work going on."""
UP_TO_THE_END_STEPS = 3.0
"""The last step must lie within so many step times of the declaration, else it had stopped."""


def accusing(facts: Facts) -> list[Match]:
    """The lines that declare tasks dead."""
    return [m for m in facts.tagged("heartbeat") if accused(facts, m)]


def at_work(facts: Facts) -> dict[int, tuple[LogCite, ...]]:
    """The accused that made dated steps of their own inside the window of the accusation: first
    and last of these steps, by task. Empty where nothing says when they were declared dead."""
    lines = accusing(facts)
    declared = min((m.cite.at for m in lines if m.cite.at), default=None)
    if declared is None:
        return {}
    tasks = sorted({task for m in lines for task in accused(facts, m)})
    proofs = {task: _proof(facts, task, declared, _timeout_s(facts)) for task in tasks}
    return {task: proof for task, proof in proofs.items() if proof}


def _timeout_s(facts: Facts) -> float:
    stated = [
        m.groups["timeout_ms"] for m in facts.tagged("heartbeat") if "timeout_ms" in m.groups
    ]
    return float(stated[0]) / 1000 if stated and stated[0].isdigit() else DEFAULT_TIMEOUT_S


def _proof(
    facts: Facts, task: int, declared: datetime, timeout_s: float
) -> tuple[LogCite, ...] | None:
    """First and last dated step of the accused between its last heartbeat and the declaration;
    None where there are too few or where they stop well before the declaration."""
    for track in facts.tracks:
        if number(track.place) != task:
            continue
        inside = _inside(track, declared - timedelta(seconds=timeout_s), declared)
        if len(inside) < STEPS_NEEDED:
            continue
        first, last = track.time(inside[0]), track.time(inside[-1])
        if first is None or last is None:
            continue
        step_s = (last - first).total_seconds() / (len(inside) - 1)
        if (declared - last).total_seconds() <= UP_TO_THE_END_STEPS * max(step_s, 1.0):
            return facts.point(track, inside[0]).cite, facts.point(track, inside[-1]).cite
    return None


def _inside(track: Track, start: datetime, end: datetime) -> list[int]:
    times = ((i, track.time(i)) for i in range(len(track)))
    return [i for i, at in times if at is not None and start <= at <= end]
