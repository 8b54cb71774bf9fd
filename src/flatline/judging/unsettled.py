"""
What stood out in a run that ended well while nothing tells whether it cost anything, or why.

No cause: each is what a family that finds causes looks at as well, and leaves undecided.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import median

from flatline.facts import Facts
from flatline.judging import losses
from flatline.judging.anchored import EFFECT as SLOWER
from flatline.judging.bypassed import waiting_on_sockets
from flatline.judging.claims import claim
from flatline.judging.clock_events import BAD, MASK, clock_reasons, told_each
from flatline.judging.gpus import Gpus, Readings, at_work, beside_peers, stretches
from flatline.judging.heat import Heat
from flatline.judging.held_low import held_low
from flatline.judging.launches import BUSY, RAN
from flatline.judging.throughput import (
    LASTING,
    Course,
    course,
    course_in_order,
    course_to_tell,
    pace,
)
from flatline.judging.timeline import usual
from flatline.judging.unpaced import unpaced
from flatline.model import Claim, Place
from flatline.series.phases import EFFECT
from flatline.signals import clock_events
from flatline.tracks import stands_for

CLOCK = "gpu_sm_clock_hertz"
LEAST_SHARE = 0.1
"""Of the time at work, and of the run: less costs it little."""
QUARTER = 0.25
"""Of the steps' time, as much as makes saves a cause of slowness (D2); and of the run, that much
of other time to compare with."""
LOWER, BINDS = 0.9, 0.95
"""Of its peers' power limit, below which one stands apart (B3), and of its own limit, at which a
GPU draws what it may."""
BELOW = 0.97
"""Of its peers' clock: beyond the 2 % by which repeats of a run differ."""
READ = 0.01
"""Of the time: where nothing at all ran, what was read is not what the steps were made on."""
APART = "Whether that cost the run anything: no slow time is laid at it."
HOT, CAPPED = "hotter than its peers and clocked below them", "at a power limit below its peers'"
WAITED = "Whether the steps must wait so long for their data: a faster loader would tell."
IDLE = "Whether the GPUs could have done more: little ran on them while steps went on."
SOCKETS = "Whether the GPUs wait for the network: NCCL took sockets, and little of them was used."
HELD = "Whether that cost the run anything: clocks of like GPUs differ by as much."
FAILED = 2
"""Allocations; what happens once is tried again, as a library's search for its fastest kernel."""
LEFT_OUT = "Whether it left out the batches that did not fit: it went on each time."
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
    return (*_held_down(facts), *_set_apart(facts), *_lossy(facts), *_waited(facts),
            *_idle(facts), *_on_sockets(facts), *_unallocated(facts), *_unpaced(facts),
            *(_slipped(facts) if paced else ()))  # fmt: skip


def _held_down(facts: Facts) -> Iterator[Unsettled]:
    """The GPU that said for longest that its clock was held down while it worked."""
    cut = stretches(facts, CLOCK) if facts.measured(MASK) or told_each(facts) else None
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


def _set_apart(facts: Facts) -> Iterator[Unsettled]:
    """The GPU that for longest was clocked below its peers, beyond their spread, and was hotter
    than they, or drew all that a lower power limit than theirs lets it, unless the pace tells that
    it cost nothing; or that was held down all through the run."""
    cut = stretches(facts, CLOCK)
    clock = None if cut is None else cut.means(facts, CLOCK)
    gpus = None if cut is None or clock is None else at_work(facts, cut, clock, _model(clock))
    if cut is None or clock is None or gpus is None:
        return
    heat = Heat(gpus, cut.means(facts, "gpu_temperature_celsius"))
    limit, power = (cut.means(facts, f"gpu_power_{name}watts") for name in ("limit_", ""))
    beside = beside_peers(gpus, clock)
    below = {
        place: {time for time, (part, far) in beside.of(place).items() if far and part < BELOW}
        for place in beside.far_below()
    }
    found: list[tuple[float, str, Claim]] = []
    for place, times in gpus.busy.items():
        hot = [t for t in times if t in below.get(place, ()) and heat.hotter(place, t)]
        held = [t for t in times if _binds(gpus, limit, power, place, t)]
        for at, why, read in ((hot, HOT, heat.read), (held, CAPPED, limit)):
            if read is None or len(at) < max(2.0, LEAST_SHARE * len(times)):
                continue
            if not _as_fast(course(facts), cut.length_s, at):
                share, time = len(at) / len(times), at[len(at) // 2]
                text = f"{place} was {why} in {share:.0%} of its time at work"
                cites = clock.cite(place, time, "SM clock"), read.cite(place, time, "then")
                found.append((share, str(place), claim(text, *cites)))
    low = held_low(facts)
    if found:
        yield Unsettled(APART, (max(found, key=lambda one: one[:2])[2],))
    elif low is not None:
        yield Unsettled(APART, low.shows)


def _as_fast(run: Course | None, length_s: float, ends: Sequence[float]) -> bool:
    """Whether the run is known to have been as fast in the stretches that end then as in its other
    time: a lighter stage of a pipeline may be slowed for nothing."""
    inside: list[float] = []
    outside: list[float] = []
    points = zip(run.pace.times, run.pace.values, strict=True) if run is not None else ()
    for time, value in points:
        at = bisect_left(ends, time)
        within = at < len(ends) and time > ends[at] - length_s
        (inside if within else outside).append(value)
    both = len(inside) + len(outside)
    if len(inside) < LASTING or len(outside) < max(LASTING, QUARTER * both):
        return False
    return median(inside) > (1 - SLOWER) * median(outside)


def _model(clock: Readings) -> Callable[[Place, object], str | None]:
    return lambda place, _: clock.rows[place].labels.get("model") if place in clock.rows else None


def _binds(
    gpus: Gpus, limit: Readings | None, power: Readings | None, place: Place, time: float
) -> bool:
    """Whether a GPU draws what its limit allows, which is lower than its peers'."""
    part = gpus.part(limit, place, time)
    own, drawn = (None if read is None else read.value(place, time) for read in (limit, power))
    return (part is not None and part < LOWER and own is not None and drawn is not None
            and drawn >= BINDS * own)  # fmt: skip


def _waited(facts: Facts) -> Iterator[Unsettled]:
    """That a good part of the time the steps say they took was spent waiting for data."""
    track = facts.main_track(facts.last.n)
    span = track.of_attempt(facts.last.n) if track is not None else ()
    if track is None:
        return
    known = [i for i in span if isfinite(track.data_s[i]) and isfinite(track.step_s[i])]
    took_s = sum(track.step_s[i] for i in known)
    waited_s = sum(track.data_s[i] for i in known)
    if 2 * len(known) > len(span) and QUARTER * took_s <= waited_s <= took_s:
        cites = [facts.point(track, known[at]).cite for at in (len(known) // 2, -1)]
        text = (
            f"Its steps waited for data in {waited_s / took_s:.0%} of the time they say they took"
        )
        yield Unsettled(WAITED, (claim(text, *cites),))


def _idle(facts: Facts) -> Iterator[Unsettled]:
    """That even on the busiest GPU nothing ran in much of the time: a small model does not fill
    it, or the host is late, and nothing tells which."""
    known, signal = pace(facts), next(filter(facts.measured, RAN), None)
    if known is None or signal is None:
        return
    begins, ends = map(int, known.span)
    mean = f"avg_over_time({signal}[{max(1, ends - begins)}s])"
    most = usual(facts, mean, ends, "the busiest GPU", "max({})")
    if most is not None and READ < most.value < BUSY:
        text = f"Something ran on the busiest GPU only {most.value:.0%} of the time"
        yield Unsettled(IDLE, (claim(text, most),))


def _on_sockets(facts: Facts) -> Iterator[Unsettled]:
    """That NCCL took sockets between hosts, and the GPUs waited or had little to do."""
    shown = waiting_on_sockets(facts)
    if shown is not None:
        yield Unsettled(SOCKETS, (shown,))


def _unallocated(facts: Facts) -> Iterator[Unsettled]:
    """That allocations on the GPU failed again and again while the run went on: a trainer that
    leaves such a batch out learns nothing from it."""
    track = facts.main_track(facts.last.n)
    begins = track.lines[track.of_attempt(facts.last.n)[0]] if track is not None else 0
    failed = [m.cite for m in facts.matches
              if m.attempt == facts.last.n and stands_for("family:B1", m)
              and (track is None or m.cite.source != track.source
                   or m.cite.line > begins)]  # fmt: skip
    if len(failed) >= FAILED:
        text = f"{len(failed)} lines tell of GPU memory that could not be allocated"
        yield Unsettled(LEFT_OUT, (claim(text, failed[0], failed[-1]),))


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


def _unpaced(facts: Facts) -> Iterator[Unsettled]:
    """What only the pace could tell, where nothing tells that."""
    if course_in_order(facts) is None:
        yield from (Unsettled(question, (shown,)) for question, shown in unpaced(facts))


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
