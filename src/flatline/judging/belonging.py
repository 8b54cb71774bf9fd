"""Whether the hosts that are blamed are known to be the run's."""

from __future__ import annotations

from dataclasses import replace

from flatline.facts import Facts
from flatline.judging.timeline import instant
from flatline.model import Finding, LogCite, QueryCite
from flatline.signals import ACTIVITY

UNKNOWN = 0.79
"""Just short of confident: metrics of a cluster hold other jobs' hosts as well, and one that
works on at its own pace looks like the one that the others wait for."""
OF_EVERY_GPU = ("gpu_power_watts", "gpu_sm_clock_hertz", *ACTIVITY, "gpu_memory_used_bytes")


def belonging(facts: Facts, finding: Finding) -> Finding:
    """The finding, less sure where metrics alone speak of a host that no record or log names."""
    if not any(isinstance(cite, QueryCite) for cite in finding.cites):
        return finding
    said = {cite.place.host for cite in finding.cites if isinstance(cite, LogCite)}
    blamed = {place.host for place in finding.culprits if place.host} - said
    strange = sorted(host for host in blamed if facts.node_of(host) not in facts.hosts)
    if not strange or none_besides(facts):
        return finding
    many = "" if len(strange) == 1 else f" and {len(strange) - 1} more"
    told = f"Whether {strange[0]}{many} ran this job: nothing read names it among its hosts."
    return replace(
        finding,
        most=min(finding.most, UNKNOWN),
        cannot_decide=(*finding.cannot_decide, told),
    )


def gpus_seen(facts: Facts) -> bool:
    """Whether any GPU was measured: metrics may be of hosts alone."""
    return any(map(facts.measured, OF_EVERY_GPU))


def none_besides(facts: Facts) -> bool:
    """Whether only one host was measured, or no more GPUs than the run has ranks: then what was
    measured is the run's."""
    return facts.memo("belonging.none-besides", _none_besides)


def scoped(facts: Facts) -> bool:
    """Whether what was measured is known to be the run's: its hosts are named, or nothing else
    was measured."""
    return bool(facts.last.hosts) or none_besides(facts)


def _none_besides(facts: Facts) -> bool:
    signal = next(filter(facts.measured, OF_EVERY_GPU), None)
    if signal is None or facts.window is None:
        return False
    start, end = (moment.timestamp() for moment in facts.window)
    over = f"[{max(1, int(end - start))}s]"
    read = instant(facts, f"count by (host, gpu) (count_over_time({signal}{over}))", end)
    places = [row.place for row in read.rows] if read is not None else []
    alone = len({place.host for place in places}) == 1
    return alone or 0 < len(places) <= (facts.world_size or 0)
