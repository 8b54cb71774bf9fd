"""
Whether the machine was as quiet in the slow phases as in the fast ones, signal by signal.

For a cause in the training itself every way in which hosts, GPUs and network slow a run must have
been measured and found the same in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from flatline.facts import Facts
from flatline.judging.throughput import Course, Slow
from flatline.judging.timeline import instant
from flatline.model import QueryCite
from flatline.signals import LOSS

RISEN = 1.2
"""A queue, a clock's fall or a loss that grew by less than a fifth does not cost a twentieth."""


@dataclass(frozen=True, slots=True)
class Watched:
    """
    A signal over the whole run as one number: `query` with `[w]` for a phase's length.

    `worse` is the way it slows a run: up, or down.  `floor` is what it may reach without any
    effect, in its own unit.
    """

    name: str
    signals: tuple[str, ...]
    query: str
    worse: str
    floor: float = 0.0


NETWORK = (
    Watched("RDMA traffic sent again", LOSS, "max(sum by (host) (rate({}[w])))", "up", 1.0),
)
SOCKETS = Watched("TCP segments sent again", ("tcp_retransmits_total",),
                  "max(sum by (host) (rate({}[w])))", "up", 1.0)  # fmt: skip
"""Watched where no RDMA counter was read: collectives may run on sockets then."""
WATCHED = (
    *NETWORK,
    Watched("run queue", ("host_procs_running",),
            "max(avg_over_time({}[w]))", "up", 4.0),
    Watched("storage pressure", ("host_io_pressure_seconds_total",),
            "max(rate({}[w]))", "up", 0.05),
    Watched("storage pressure", ("host_io_pressure_ratio",),
            "max(avg_over_time({}[w]))", "up", 0.05),
    Watched("lowest SM clock", ("gpu_sm_clock_hertz",), "min(avg_over_time({}[w]))", "down"),
    Watched("temperature", ("gpu_temperature_celsius",), "max(avg_over_time({}[w]))", "up", 80.0),
    Watched("lowest GPU power beside the median", ("gpu_power_watts",),
            "min(avg_over_time({0}[w])) / quantile(0.5, avg_over_time({0}[w]))", "down"),
)  # fmt: skip
KINDS = (("RDMA traffic sent again",), ("run queue",), ("lowest SM clock",),
         ("lowest GPU power beside the median",))  # fmt: skip
"""What must have been measured; the others count where they were.  Power falls on every GPU where
they wait more, for whatever: a limit that is all GPUs' lowers their clock."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """A signal in the slow phase and in the best, and whether it got worse."""

    watched: Watched
    slow: QueryCite
    best: QueryCite
    worse: bool


def quiet(facts: Facts, run: Course, watch: tuple[Watched, ...] = WATCHED) -> tuple[Quiet, ...]:
    """Every watched signal that is measured, beside itself in the worst slow phase and the best
    one."""
    worst = min(run.slow, key=lambda phase: phase.part)
    out = []
    for watched in watch:
        for signal in filter(facts.measured, watched.signals):
            pair = [_value(facts, watched, signal, phase) for phase in (worst, run.best)]
            slow, best = pair
            if slow is not None and best is not None:
                out.append(Quiet(watched, slow, best, _worse(watched, slow.value, best.value)))
    return tuple(out)


def all_quiet(found: tuple[Quiet, ...], unread: tuple[Watched, ...] = ()) -> bool | None:
    """Whether nothing got worse; None where a kind that matters was not measured, but for those
    that are known to be `unread`."""
    measured = {one.watched.name for one in found} | {watched.name for watched in unread}
    if any(one.worse for one in found):
        return False
    return True if all(measured & set(kind) for kind in KINDS) else None


def _value(facts: Facts, watched: Watched, signal: str, phase: Slow) -> QueryCite | None:
    length_s = max(1, int(phase.ends - phase.begins))
    query = watched.query.format(signal).replace("[w]", f"[{length_s}s]")
    answer = instant(facts, query, float(int(phase.ends)))
    if answer is None or len(answer.rows) != 1 or not isfinite(answer.rows[0].last):
        return None
    cite: QueryCite = answer.cite(answer.rows[0], watched.name)
    return cite


def _worse(watched: Watched, slow: float, best: float) -> bool:
    if watched.worse == "down":
        return slow * RISEN < best
    return slow > watched.floor and slow > RISEN * best
