"""
What may have slowed a run whose steps nothing dates, so that no family can lay it beside its pace.

No cause, as nothing tells that the run was slower: tasks that waited much of the time on half the
hosts or more, and GPUs that drew less for a good part of the run than for the rest of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.timeline import timeline
from flatline.model import Claim
from flatline.series.phases import LEAST, phases

PRESSURE = {f"host_{kind}_pressure_seconds_total": f"for {said}" for kind, said in
            (("cpu", "a CPU"), ("memory", "memory"), ("io", "storage"))}  # fmt: skip
POWER = "gpu_power_watts"
STRAINED = 0.2
"""Of the time some task waited, on the median host: as D5 asks of a queue that grows."""
LOWER, IDLE = 0.9, 0.5
"""Of the highest level that lasted: less than the first may have cost a tenth; at less than the
second a run sets up, saves, evaluates or is over."""
LEAST_SHARE = 0.1
"""Of the run: less costs it little."""
DREW_LESS = "Whether the run was slower while its GPUs drew less: nothing tells its pace."
Doubt = tuple[str, Claim]


def unpaced(facts: Facts) -> Iterator[Doubt]:
    """Questions that only the pace could answer, with what raises them."""
    began, ended = facts.last.started_at, facts.last.ended_at
    within = None if began is None or ended is None else (began.timestamp(), ended.timestamp())
    for signal, said in PRESSURE.items():
        yield from _strained(facts, signal, said, within)
    yield from _lower(facts, within)


def _strained(
    facts: Facts, signal: str, said: str, within: tuple[float, float] | None
) -> Iterator[Doubt]:
    cut = timeline(facts, [signal], within)
    answer = None if cut is None else cut.ask(facts, f"quantile(0.5, rate({signal}[w]))")
    if answer is None or len(answer.rows) != 1:
        return
    row = answer.rows[0]
    high = [(value, time) for time, value in row.points() if value >= STRAINED]
    if len(high) >= max(2.0, LEAST_SHARE * len(row)):
        value, time = max(high)
        cite = answer.cite(row, f"waiting {said}, the median host", at=time)
        text = f"Half the hosts or more waited {said} {value:.0%} of the time, at most"
        yield f"Whether waiting {said} slowed the run: nothing tells its pace.", claim(text, cite)


def _lower(facts: Facts, within: tuple[float, float] | None) -> Iterator[Doubt]:
    cut = timeline(facts, [POWER], within)
    answer = None if cut is None else cut.ask(facts, f"quantile(0.5, avg_over_time({POWER}[w]))")
    if answer is None or len(answer.rows) != 1:
        return
    row = answer.rows[0]
    lasting = [phase for phase in phases(row.values) if len(phase) >= LEAST]
    best = max(lasting, key=lambda phase: phase.level, default=None)
    if best is None:
        return
    low = [phase for phase in lasting if IDLE * best.level < phase.level < LOWER * best.level]
    if sum(map(len, low)) < LEAST_SHARE * len(row):
        return
    worst = min(low, key=lambda phase: phase.level)
    cites = [
        answer.cite(row, "power of the median GPU", at=row.times[(phase.first + phase.last) // 2])
        for phase in (worst, best)
    ]
    text = f"The median GPU drew {worst.level:.0f} W for a time, and {best.level:.0f} W otherwise"
    yield DREW_LESS, claim(text, *cites)
