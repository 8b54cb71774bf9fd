"""
Hosts whose CPUs are clocked below the others': what launches the work of their GPUs is slow.

For the whole of a run, or at moments at which its pace is then asked.
"""

from __future__ import annotations

from statistics import median

from flatline.facts import Facts
from flatline.judging.anchored import Anchored, anchored
from flatline.judging.claims import claim
from flatline.judging.throughput import Course, Slow
from flatline.judging.timeline import by_host, instant, timeline, usual
from flatline.model import Claim, QueryCite
from flatline.series.answer import by_exporter

CPU_CLOCK, CPU_SLOW, CPU_ALIKE = "host_cpu_frequency_hertz", 0.85, 0.9
"""Hosts of one job clock their CPUs alike, within the few per cent of their own heat and load: one
held to its base clock, by heat or by a governor, stands a fifth and more below boost (published
base and boost clocks of server CPUs).  The bar between them is a judgement."""
MEAN = f"avg_over_time({CPU_CLOCK}[w])"
LEAST_HOSTS = 4
"""Of so many one may stand alone."""
FEW_SLOW = 0.7
"""Of the other's clock, where there are but two or three hosts: base clocks lie above it."""
MOST_SHARE = 0.25
"""Of the hosts: more are of another kind, or under another load."""
MEETING = 0.1
"""As devices that stand apart (`judging.apart`): a host's slow CPUs slow a synchronous run."""


def at_moments(facts: Facts, run: Course) -> Anchored | None:
    """The hosts whose CPUs are slow at moments at which the run is slower."""
    cut = timeline(facts, [CPU_CLOCK], run.pace.span) if facts.measured(CPU_CLOCK) else None
    read = None if cut is None else cut.hosts(facts, f"avg by (host) ({MEAN})")
    if cut is None or read is None or len(read.rows) < LEAST_HOSTS:
        return None
    lit: dict[str, list[bool]] = {host: [] for host in read.rows}
    alike = by_exporter(read.rows).values()
    for end in cut.ends:
        now = read.at(end)
        for hosts in alike:
            known = [now[host] for host in hosts if host in now]
            bar = CPU_SLOW * median(known) if known else 0.0
            for host in hosts:
                lit[host].append(host in now and now[host] < bar)
    burst = {host: marks for host, marks in lit.items() if any(marks) and not all(marks)}
    if not burst or len(burst) > MOST_SHARE * len(lit):
        return None
    return anchored(run.pace, cut, burst, MEETING)


def beside(facts: Facts, host: str, inside: Slow) -> Claim | None:
    """The clocks of a host's CPUs beside the median host's, over a time."""
    end = float(int(inside.ends))
    mean = f"avg by (host) ({MEAN.replace('[w]', f'[{max(1, int(end - inside.begins))}s]')})"
    read = by_host(instant(facts, mean, end))
    own = None if read is None else read.cite(host, end, "CPU clock")
    if read is None or own is None:
        return None
    usually = usual(facts, mean, end, "CPU clock, the median host",
                    exporter=read.rows[host].exporter)  # fmt: skip
    return None if usually is None else _told(host, own, usually)


def standing_apart(facts: Facts) -> Claim | None:
    """That the CPUs of one host alone are slow over all that was measured: where no step is dated
    nothing tells what it costs."""
    if facts.window is None or not facts.measured(CPU_CLOCK):
        return None
    begins, ends = (int(moment.timestamp()) for moment in facts.window)
    mean = f"avg by (host) (avg_over_time({CPU_CLOCK}[{max(1, ends - begins)}s]))"
    read = by_host(instant(facts, mean, float(ends)))
    now = {} if read is None else read.at(float(ends))
    if read is None or len(now) < LEAST_HOSTS:
        return None
    low = [host for host in now if now[host] < CPU_SLOW * median(now.values())]
    own = read.cite(low[0], float(ends), "CPU clock, over all that was measured") if low else None
    usually = usual(facts, mean, float(ends), "CPU clock, the median host")
    return _told(low[0], own, usually) if len(low) == 1 and own and usually else None


def slow_cpus(facts: Facts, run: Course, host: str, hosts: tuple[str, ...]) -> Claim | None:
    """That the CPUs of this host, and of none of the others, are clocked below the usual."""
    if not facts.measured(CPU_CLOCK):
        return None
    begins, ends = (int(moment) for moment in run.pace.span)
    mean = f"avg by (host) (avg_over_time({CPU_CLOCK}[{max(1, ends - begins)}s]))"
    read = by_host(instant(facts, mean, float(ends)))
    own = None if read is None else read.cite(host, float(ends), "CPU clock, over the run")
    if read is None or own is None:
        return None
    others = [v for one, v in read.beside(host, float(ends)).items() if one in hosts]
    if not others:
        return None
    middle, few = median(others), len(others) < LEAST_HOSTS - 1
    if own.value > (FEW_SLOW if few else CPU_SLOW) * middle or min(others) < CPU_ALIKE * middle:
        return None
    usually = usual(facts, mean, float(ends), "CPU clock, the median host",
                    exporter=read.rows[host].exporter)  # fmt: skip
    return None if usually is None else _told(host, own, usually)


def _told(host: str, own: QueryCite, usually: QueryCite) -> Claim:
    text = (
        f"The CPUs of {host} ran at {own.value / 1e9:.2f} GHz on average, the median host's at"
        f" {usually.value / 1e9:.2f}"
    )
    return claim(text, own, usually)
