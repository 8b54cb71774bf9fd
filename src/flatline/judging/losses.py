"""What each host of a run lost of its traffic, by stretches, and the pace meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from statistics import median

from flatline.facts import Facts
from flatline.judging.anchored import EFFECT, finest, stretch_levels
from flatline.judging.bursts import bursts
from flatline.judging.throughput import Course
from flatline.judging.timeline import ByHost, Timeline, timeline
from flatline.signals import LINK, LOSS

COUNTERS = (*LOSS, *(name for name in LINK if name.endswith("_total")),
            "rdma_symbol_errors_total", "rdma_retries_exceeded_total")  # fmt: skip
LEAST_SHARE = 0.1
"""Of the run's time: what bursts less costs it little, however slow it is then."""


@dataclass(frozen=True, slots=True)
class Network:
    """Every counter that was measured, by host, over the stretches of the run."""

    cut: Timeline
    read: dict[str, ByHost]
    lit: dict[str, list[bool]]


def network(facts: Facts, run: Course) -> Network | None:
    """None where no counter of lost RDMA traffic was measured on several hosts."""
    if not any(facts.measured(signal) for signal in LOSS):
        return None
    known = [signal for signal in COUNTERS if facts.measured(signal)]
    cut = timeline(facts, known, run.pace.span, 2 * run.pace.interval_s)
    return None if cut is None else _read(facts, known, cut)


def closely(facts: Facts, run: Course, whole: Network) -> Network | None:
    """The same on a finer cut, for bursts that follow one another too closely for that one."""
    known = [*whole.read]
    cut = finest(facts, known, run.pace, whole.cut) if whole.lit else None
    return None if cut is None else _read(facts, known, cut)


def _read(facts: Facts, known: Sequence[str], cut: Timeline) -> Network | None:
    read: dict[str, ByHost] = {}
    for signal in known:
        rows = cut.hosts(facts, f"sum by (host) (increase({signal}[w]))")
        if rows is not None and len(rows.rows) > 1:
            read[signal] = rows
    return Network(cut, read, bursts(tuple(read.values()), cut)) if read else None


def slower(run: Course, found: Network) -> dict[str, float]:
    """By what part the pace was lower while a host lost more than the others, of those that did
    for a good part of the time and not always: chance or not."""
    here = stretch_levels(run.pace, found.cut)
    out = {}
    for host, marks in found.lit.items():
        known = [(v, lit) for v, lit in zip(here, marks, strict=True) if v is not None]
        inside, outside = ([v for v, lit in known if lit is wanted] for wanted in (True, False))
        if outside and len(inside) >= max(1.0, LEAST_SHARE * len(known)):
            lower = 1 - exp(median(inside) - median(outside))
            if lower >= EFFECT:
                out[host] = lower
    return out
