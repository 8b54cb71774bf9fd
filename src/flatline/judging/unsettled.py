"""
What stood out in a run that ended well while nothing tells whether it cost anything, or why.

No cause: each is what a family that finds causes looks at as well, and leaves undecided.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from flatline.facts import Facts
from flatline.judging import losses
from flatline.judging.claims import claim
from flatline.judging.clock_events import BAD, clock_reasons
from flatline.judging.gpus import at_work, stretches
from flatline.judging.throughput import LASTING, course, course_to_tell
from flatline.model import Claim
from flatline.series.phases import EFFECT
from flatline.signals import clock_events

CLOCK = "gpu_sm_clock_hertz"
LEAST_SHARE = 0.1
"""Of the time at work, and of the run: less costs it little."""
HELD = "Whether that cost the run anything: clocks of like GPUs differ by as much."
LOSSY = (
    "Whether the losses of {} slowed the run: throughput was {:.1%} lower meanwhile, but bursts"
    " laid at random meet as slow a time too often."
)


@dataclass(frozen=True, slots=True)
class Unsettled:
    """What cannot be decided, and what shows that there is something to decide."""

    question: str
    shows: tuple[Claim, ...] = ()


def unsettled(facts: Facts, paced: bool) -> tuple[Unsettled, ...]:
    """Empty where nothing stood out, or nothing was measured; by the pace alone if `paced`."""
    return (*_held_down(facts), *_lossy(facts), *(_slipped(facts) if paced else ()))


def _held_down(facts: Facts) -> Iterator[Unsettled]:
    """The GPU that said for longest that its clock was held down while it worked."""
    cut = stretches(facts, CLOCK) if facts.measured("gpu_clock_event_reasons") else None
    clock = None if cut is None else cut.means(facts, CLOCK)
    gpus = (None if cut is None or clock is None
            else at_work(facts, cut, clock, lambda place, row: None))  # fmt: skip
    if cut is None or gpus is None:
        return
    reasons = clock_reasons(facts, cut)
    lit = {place: [time for time in times if reasons.mostly(place, (time,), BAD)]
           for place, times in gpus.busy.items() if not reasons.silent(place)}  # fmt: skip
    if not any(lit.values()):
        return
    share, place = max(((len(at) / len(gpus.busy[p]), p) for p, at in lit.items()),
                       key=lambda one: (one[0], str(one[1])))  # fmt: skip
    mask, cite = reasons.usual(place, lit[place], BAD)
    if cite is not None and share >= LEAST_SHARE:
        text = f"{place} gave {clock_events(mask)} as a reason in {share:.0%} of its time at work"
        yield Unsettled(HELD, (claim(text, cite),))


def _lossy(facts: Facts) -> Iterator[Unsettled]:
    """The host during whose losses the run was slowest, chance or not."""
    run = course(facts)
    whole = losses.network(facts, run) if run is not None else None
    if run is None or whole is None:
        return
    for found in (whole, losses.closely(facts, run, whole)):
        lower = {} if found is None else losses.slower(run, found)
        if found is not None and lower:
            host = max(lower, key=lambda name: (lower[name], name))
            at = found.cut.ends[found.lit[host].index(True)]
            cites = [read.cite(host, at, signal) for signal, read in found.read.items()]
            lost = [cite for cite in cites if cite is not None and cite.value > 0]
            text = f"{host} lost more {found.what} than the others"
            question = LOSSY.format(host, lower[host])
            yield Unsettled(question, (claim(text, *lost),) if lost else ())
            return


def _slipped(facts: Facts) -> Iterator[Unsettled]:
    """A good part of the run in phases slower than one before them by more than repeats are."""
    run = course_to_tell(facts)
    if run is None:
        return
    best = slowest = slow_s = 0.0
    for phase in run.phases:
        if phase.points[1] - phase.points[0] + 1 >= LASTING:
            best = max(best, phase.level)
        below = 1 - phase.level / best if best else 0.0
        if below > EFFECT:
            slowest, slow_s = max(slowest, below), slow_s + phase.ends - phase.begins
    if slow_s >= LEAST_SHARE * (run.pace.times[-1] - run.pace.times[0]):
        yield Unsettled(f"Why throughput was {slowest:.1%} lower for a time than before it.")
