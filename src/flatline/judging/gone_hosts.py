"""
Hosts of which nothing was read any more, by any exporter, from about the last step on.

One exporter that stops tells of itself.  Where those of the GPUs and of the host stop within a
minute of each other, while other hosts are read on, the host is gone or cut off.
"""

from __future__ import annotations

from dataclasses import dataclass

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.pace import pace
from flatline.judging.timeline import ByHost, by_host, instant
from flatline.model import Claim

GPUS = "gpu_power_watts"
OF_HOSTS = ("host_procs_running", "host_memory_available_bytes", "host_boot_time_seconds",
            "host_procs_blocked")  # fmt: skip
SILENT_S = 180
"""Three scrapes that are missed at the longest usual interval."""
WITHIN_S = 90.0
"""Two exporters are scraped at moments of their own, each every 15 to 60 s."""
BEFORE_S, AFTER_S = 180.0, 300.0
"""Of the last step, which is printed some time after the one in which the host was lost, or was
made while its last reading was already due."""
SHARE = 0.25
"""Of the hosts; where more stop at once the one that reads them has lost them."""
STEP_S = 15


@dataclass(frozen=True, slots=True)
class GoneHosts:
    """Since when (POSIX seconds) they were read no more, and what shows it."""

    hosts: tuple[str, ...]
    since: float
    shows: Claim


def gone_hosts(facts: Facts) -> GoneHosts | None:
    """None where others were read no longer, or those that stopped had stopped well before."""
    ended = facts.last.ended_at or facts.lived[1]
    of_host = next(filter(facts.measured, OF_HOSTS), None)
    if ended is None or facts.window is None or of_host is None or not facts.measured(GPUS):
        return None
    end = float(int(min(ended, facts.window[1]).timestamp()))
    span_s = int(end - facts.window[0].timestamp())
    if span_s < 2 * SILENT_S:
        return None
    ever, last = _read(facts, GPUS, span_s, end), _read(facts, GPUS, SILENT_S, end)
    if ever is None or last is None:
        return None
    gone = sorted(set(ever.rows) - set(last.rows))
    if not gone or len(gone) > max(1, int(SHARE * len(ever.rows))):
        return None
    since = [_last_read(facts, host, of_host, span_s, end) for host in gone]
    seen = pace(facts)
    if None in since or seen is None:
        return None
    first = min(at for at in since if at is not None)
    if not seen.at.timestamp() - BEFORE_S <= first <= seen.at.timestamp() + AFTER_S:
        return None
    cites = [cite for host in gone[:3] if (cite := ever.cite(host, end, "readings of its GPUs"))]
    text = (
        f"No exporter of {', '.join(gone)} was read in the last {end - first:.0f} s of the run,"
        f" those of {len(last.rows)} other hosts were"
    )
    return GoneHosts(tuple(map(facts.node_of, gone)), first, claim(text, *cites))


def _read(facts: Facts, signal: str, span_s: int, end: float) -> ByHost | None:
    return by_host(instant(facts, f"sum by (host) (count_over_time({signal}[{span_s}s]))", end))


def _last_read(facts: Facts, host: str, of_host: str, span_s: int, end: float) -> float | None:
    """The last moment at which a host was read; None where its exporters did not stop together,
    or only one of them was ever read."""
    stopped = [_stopped(facts, host, signal, span_s, end) for signal in (GPUS, of_host)]
    known = [at for at in stopped if at is not None]
    if len(known) < len(stopped) or max(known) - min(known) > WITHIN_S:
        return None
    return max(known)


def _stopped(facts: Facts, host: str, signal: str, span_s: int, end: float) -> float | None:
    """About when a signal of a host was read last, by halving; None where it was never."""
    low, high = 0, span_s  # none within the last `low` seconds, some within the last `high`
    first = _read(facts, signal, span_s, end)
    if first is None or host not in first.rows:
        return None
    while high - low > STEP_S:
        middle = (low + high) // 2
        read = _read(facts, signal, middle, end)
        if read is not None and host in read.rows:
            high = middle
        else:
            low = middle
    return end - low
