"""
A run whose steps carry no times, and whose GPUs all fell to what waiting draws and stayed there.

A GPU that waits in a collective keeps its engine busy and its power down: utilisation stays where
it was, power falls.  Work that was merely slowed, by a power cap or a smaller batch, is still in
the steps: their times must leave about as much of the run unaccounted for as the GPUs waited.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from flatline.facts import Facts
from flatline.judging.by_steps import Laid, added_up, laid
from flatline.judging.by_work import laid_by_work
from flatline.judging.claims import claim
from flatline.judging.gpus import readings
from flatline.judging.timeline import Timeline, instant, timeline, usual
from flatline.model import Cite, Claim, Place
from flatline.series.phases import phases

POWER, BUSY = "gpu_power_watts", ("gpu_utilization_ratio", "gpu_engine_active_ratio")
FELL, STAYED_BUSY = 0.8, 0.9
"""Of the power while it worked; and of the time with a kernel running.  A judgement, tried on
generated clusters alone."""
MOST_BUSY, SOME_BUSY = (0.1, "nine GPUs in ten"), (0.3, "seven GPUs in ten")
"""Of the GPUs; one host of some that the others wait for holds more of them than a tenth.  Where
no record dates the run it is the usual reason to look."""
HOSTS = 4
"""Of so many hosts or more one holds fewer than three GPUs in ten."""
LEAST_S = 300.0
AGREES, ROOM_S = 0.25, 300.0
"""How far the time the GPUs waited and the time no step accounts for may lie apart: start-up and
saving are in the one and not in the other."""


@dataclass(frozen=True, slots=True)
class Spinning:
    """Since when (POSIX seconds) all GPUs waited, for how long, and what shows it."""

    since: float
    seconds: float
    shows: tuple[Claim, ...]
    recorded: bool = True
    """Whether a record says when the run ended: a log of one that goes on may end anywhere."""


def spinning(facts: Facts) -> Spinning | None:
    """None where steps are dated, or add up to the run, or power and activity say nothing."""
    known, by_work = laid(facts), None
    if known is None or facts.disposition in ("completed", "running"):
        known = by_work = laid_by_work(facts)
    signal = next(filter(facts.measured, BUSY), None)
    lived = _lived(facts, by_work is not None)
    if known is None or signal is None or lived is None or not facts.measured(POWER):
        return None
    began, ended = lived
    if by_work is None and known.slack_s < LEAST_S:
        return None
    cut = timeline(facts, [POWER], (known.times[0] if by_work else began, ended))
    level = None if cut is None else _levels(facts, cut)
    if cut is None or level is None:
        return None
    parts = phases(level)
    best = max((p for p in parts if len(p) >= 4), key=lambda p: p.level, default=None)
    last = parts[-1]
    if best is None or last.level > FELL * best.level:
        return None
    since, until = cut.ends[last.first] - cut.length_s, cut.ends[-1]
    waited_s = ended - since
    agree = (since, known.times[-1]) if by_work else (waited_s, known.slack_s)
    room = ROOM_S + (known.slack_s if by_work else AGREES * known.slack_s)
    if abs(agree[0] - agree[1]) > room or waited_s < LEAST_S:
        return None
    busy_in = SOME_BUSY if by_work or len(facts.hosts) >= HOSTS else MOST_BUSY
    shows = _shows(facts, known, (since, until), cut.ends[best.last - 1],
                   (signal, busy_in), by_work is None)  # fmt: skip
    return None if shows is None else Spinning(since, waited_s, shows, by_work is None)


def on_the_only_card(facts: Facts) -> Place | None:
    """The one GPU that was measured, where no more than one is known to have been given to the
    run: nobody is there that it could wait for in a collective."""
    many = (facts.job and (facts.job.gpus or 1) > 1) or (facts.world_size or 1) > 1
    if many or len(facts.hosts) > 1 or facts.window is None:
        return None
    start, end = facts.window
    lasted = max(1, int((end - start).total_seconds()))
    read = readings(instant(facts, f"max_over_time({POWER}[{lasted}s])", end.timestamp()))
    return next(iter(read.rows)) if read is not None and len(read.rows) == 1 else None


def _lived(facts: Facts, measured: bool) -> tuple[float, float] | None:
    """The run's first and last moment (POSIX seconds), by its record or by what was measured: a
    log that ends where the GPUs stop working is whole if it goes on no longer than they waited."""
    span = facts.window if measured else (facts.last.started_at, facts.last.ended_at)
    began, ended = span or (None, None)
    if began is None or ended is None or (measured and facts.disposition == "completed"):
        return None
    return began.timestamp(), ended.timestamp()


def _levels(facts: Facts, cut: Timeline) -> list[float] | None:
    """The median GPU's power in each stretch; None where one of them has none."""
    answer = cut.ask(facts, f"quantile(0.5, avg_over_time({POWER}[w]))")
    row = answer.rows[0] if answer is not None and len(answer.rows) == 1 else None
    at = dict(row.points()) if row is not None else {}
    found = [at.get(end, float("nan")) for end in cut.ends]
    return found if all(map(isfinite, found)) else None


def _shows(
    facts: Facts,
    known: Laid,
    span: tuple[float, float],
    worked: float,
    busy_in: tuple[str, tuple[float, str]],
    recorded: bool,
) -> tuple[Claim, ...] | None:
    """One of the least busy GPUs then, the median GPU's power then and before, and the steps' sum;
    None where too few were busy."""
    length_s, end = max(1, int(span[1] - span[0])), float(int(span[1]))
    signal, (part, told) = busy_in
    busy = usual(facts, f"avg_over_time({signal}[{length_s}s])", end, "one of the least busy GPUs",
                 f"quantile({part}, {{}})")  # fmt: skip
    then = usual(facts, f"avg_over_time({POWER}[{length_s}s])", end, "the median GPU, waiting")
    before = usual(facts, f"avg_over_time({POWER}[300s])", float(int(worked)),
                   "the median GPU at work")  # fmt: skip
    if busy is None or then is None or before is None or busy.value < STAYED_BUSY:
        return None
    sum_ = added_up(facts, known)
    record: tuple[Cite, ...] = () if facts.job is None else (facts.job.cite,)
    all_but = (
        f"Its steps account for all but {known.slack_s:.0f} s of the {known.wall_s:.0f} s the run"
        " lasted"
        if recorded
        else f"Its steps took {known.spent_s:.0f} s by their own times, as long as the GPUs worked"
    )
    return (
        claim(all_but, sum_, *record),
        claim(f"In its last {length_s} s the median GPU drew {then.value:.0f} W, at work"
              f" {before.value:.0f} W, with a kernel running {busy.value:.0%} of the time on"
              f" {told}: they waited", then, before, busy),
    )  # fmt: skip
