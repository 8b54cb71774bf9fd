"""The loads of a run's hosts over its stretches, and which hosts stand above the others."""

from __future__ import annotations

from dataclasses import dataclass

from flatline.facts import Facts
from flatline.judging.bursts import Bar, bursts
from flatline.judging.throughput import Course
from flatline.judging.timeline import ByHost, Timeline, timeline

QUEUE = "host_procs_running"
SIGNALS = {
    "run-queue": (f"avg_over_time({QUEUE}[w])", QUEUE, Bar(1.5, 1.0, 8.0, counts=False)),
    "cpu-pressure": ("rate(host_cpu_pressure_seconds_total[w])",
                     "host_cpu_pressure_seconds_total", Bar(2.0, 0.02, 0.1, counts=False)),
    "memory-pressure": ("rate(host_memory_pressure_seconds_total[w])",
                        "host_memory_pressure_seconds_total", Bar(2.0, 0.02, 0.1, counts=False)),
    "io-pressure": ("rate(host_io_pressure_seconds_total[w])",
                    "host_io_pressure_seconds_total", Bar(2.0, 0.05, 0.2, counts=False)),
}  # fmt: skip
"""What is asked by fault class, and how far above the other hosts it must stand. Seventeen
leaked threads on a queue of eighteen cost one per cent (AMD, MaxText-Slurm): below 1.5 times
the others nothing is said; of pressure, shares of time under a few per cent are noise."""


@dataclass(frozen=True, slots=True)
class HostLoads:
    """What was measured of the hosts over the stretches of the run."""

    cut: Timeline
    read: dict[str, ByHost]
    lit: dict[str, dict[str, list[bool]]]

    def pressed(self, most: float) -> list[str]:
        """The hosts that stood above the others in both queue and pressure, where they are no
        more than this part of all."""
        queue, pressure = (self.lit.get(kind, {}) for kind in ("run-queue", "cpu-pressure"))
        both = [host for host in queue if host in pressure]
        return both if len(both) <= most * len(self.read["run-queue"].rows) else []


def host_loads(facts: Facts, run: Course | None) -> HostLoads | None:
    """None where the run queue was not measured on several hosts."""
    if not facts.measured(QUEUE):
        return None
    within = run.pace.span if run is not None else None
    least_s = 2 * run.pace.interval_s if run is not None else 0.0
    cut = timeline(facts, [QUEUE], within, least_s)
    if cut is None:
        return None
    read, lit = {}, {}
    for kind, (query, signal, bar) in SIGNALS.items():
        if not facts.measured(signal) and kind == "io-pressure":
            query, signal = "avg_over_time(host_io_pressure_ratio[w])", "host_io_pressure_ratio"
        rows = cut.hosts(facts, query) if facts.measured(signal) else None
        if rows is not None and len(rows.rows) > 1:
            read[kind] = rows
            lit[kind] = bursts((rows,), cut, bar)
    return HostLoads(cut, read, lit) if "run-queue" in read else None
