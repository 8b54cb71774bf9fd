"""GPUs on which less ran as the run slowed: nothing had been launched on any of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from statistics import median

from flatline.facts import Facts
from flatline.judging.again import RECOMPILED
from flatline.judging.claims import claim
from flatline.judging.costly_steps import cost, saves_begun
from flatline.judging.left_uncompiled import left_uncompiled
from flatline.judging.throughput import Pace, Slow, checkpoint_steps, course, shown
from flatline.judging.timeline import usual
from flatline.model import Claim, QueryCite

BUSY = ("gpu_engine_active_ratio", "gpu_utilization_ratio")
"""Whether anything at all ran on a GPU: a wait in a collective keeps both near 1, so that where
they are low nothing had been launched."""
FULL, LOST, OF_LOSS = 0.85, 0.15, 0.6
"""What ran on the least busy GPU while the run was fast, what the slow phase lost of its pace, and
the part of that by which the busiest GPU idled more.  A judgement: small models that keep a large
GPU half busy do so from the first step."""
WORKED = 0.05
"""What ran on a GPU of the run while it was fast, at the least: where nothing names its hosts,
others that were measured stand idle."""
LEAST, WAITED = 4, 0.2
"""Lines that tell what the loader took, and the part of the loss that it must take.  A judgement:
of less, something else in the loop keeps the GPUs waiting."""
SAVED = 0.05
"""Of the time: saves that cost as much idle the GPUs themselves."""


@dataclass(frozen=True, slots=True)
class FellIdle:
    """The phase in which less ran on every GPU, what it lost, and what shows it."""

    phase: Slow
    part: float
    shows: tuple[Claim, ...]


def fell_idle(facts: Facts) -> FellIdle | None:
    """None where the GPUs were not busy before, some of them stayed so, what they idle does not
    account for what the run lost, it saved or compiled meanwhile, or its loop says that it did not
    wait for data."""
    run = course(facts)
    later = [] if run is None else [p for p in run.slow if p.begins >= run.best.ends]
    if run is None or not later or facts.tagged(RECOMPILED.tag) or left_uncompiled(facts):
        return None
    worst = max(later, key=lambda phase: (1 - phase.part) * (phase.ends - phase.begins))
    lost = 1 - worst.part
    if _did_not_wait(run.pace, worst, lost):
        return None
    saved = checkpoint_steps(facts) or saves_begun(facts)
    if lost < LOST or cost(facts, saved, 2, SAVED) is not None:
        return None
    gpus = less_busy(facts, run.best, worst, OF_LOSS * lost, FULL)
    if not gpus:
        return None
    return FellIdle(worst, lost, (shown(facts, run, worst), *gpus))


def _did_not_wait(pace: Pace, slow: Slow, lost: float) -> bool:
    """Whether the loop times its loader and its steps, and that took but a small part of what they
    lost."""
    track, (first, last) = pace.track, slow.points
    at = pace.indexes[first : last + 1] if track is not None else ()
    timed = [(track.data_s[i], track.step_s[i]) for i in at if track is not None
             and isfinite(track.data_s[i]) and track.step_s[i] > 0]  # fmt: skip
    if len(timed) < LEAST:
        return False
    data_s, step_s = (median(column) for column in zip(*timed, strict=True))
    return bool(data_s < WAITED * lost * step_s)


def less_busy(
    facts: Facts, fast: Slow, slow: Slow, by: float, least_before: float = 0.0
) -> tuple[Claim, ...] | None:
    """That less ran on every GPU in the slow phase, by so much; empty where on none of them it
    did, as of waits that the GPUs compute through, or the least busy one was hardly at work
    before, and None where that is not known."""
    signal = next(filter(facts.measured, BUSY), None)
    read: dict[tuple[str, bool], QueryCite] = {}
    before = f"[{max(1, int(fast.ends - fast.begins))}s] @ {int(fast.ends)}"
    own = "" if facts.hosts else f" and avg_over_time({signal}{before}) > {WORKED}"
    for phase in (fast, slow) if signal is not None else ():
        mean = f"avg_over_time({signal}[{max(1, int(phase.ends - phase.begins))}s])"
        for which, query in (("busiest", "max({})"), ("least busy", f"min({{}}{own})")):
            cite = usual(facts, mean, int(phase.ends), f"the {which} GPU", query)
            if cite is None:
                return None
            read[which, phase is slow] = cite
    if not read:
        return None
    least = read["least busy", False]
    if least.value < least_before or read["least busy", True].value > least.value - by:
        return ()
    most = read["busiest", True]
    if most.value > least.value - by:
        return None
    text = (
        f"Something ran on the busiest GPU {most.value:.0%} of that time, on the least busy one"
        f" {least.value:.0%} of the time before"
    )
    return (claim(text, most, least),)
