"""
A node that Slurm set DOWN because its daemon did not answer, while the run worked on there.

A slurmd that waits for a health check or has no thread left answers nobody, and its node is given
up after SlurmdTimeout with all that runs there.  A node that is gone makes no step in that time,
and nothing is read of it up to its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import isfinite

from flatline.errors import FormatError
from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.heartbeats import made_until
from flatline.judging.kept_power import POWER, kept_working
from flatline.judging.timeline import by_host, instant
from flatline.logs.hostlists import expand
from flatline.model import Claim, LogCite, RecordCite

TAG, REASON = "node-unheard", "not responding"
WINDOW_S = 300.0
"""SlurmdTimeout by default (slurm.conf)."""
AT_THE_END = timedelta(seconds=60)
"""The controller ends a job and records its node within seconds of each other."""
FRESH_S, BEHIND_S = 60, 180
"""Scrapes come every 15 to 60 s; a server does not boot within three minutes."""
BOOTED, SAME_S = "host_boot_time_seconds", 60.0
"""The boot time is reckoned back from now, and off by as much as clocks are set right."""

Told = tuple[str, datetime, LogCite | RecordCite]


@dataclass(frozen=True, slots=True)
class SetDown:
    """The nodes, when the first was set DOWN, what says so, and what shows that it was up."""

    hosts: tuple[str, ...]
    at: datetime
    said: tuple[LogCite | RecordCite, ...]
    shows: tuple[Claim, ...]


def set_down(facts: Facts) -> SetDown | None:
    """None unless all of its nodes that were given up made steps up to it, kept their power, and
    were read on as others were."""
    told = _told_at_its_end(facts)
    track = facts.main_track(facts.last.n)
    if not told or track is None or facts.disposition == "completed":
        return None
    hosts = tuple(sorted({host for host, _, _ in told}))
    at = min(at for _, at, _ in told)
    made = made_until(facts, track, at, WINDOW_S)
    if made is None or not _read_on(facts, hosts, int(at.timestamp())):
        return None
    drew = kept_working(facts, at.timestamp(), WINDOW_S, hosts)
    if drew is None:
        return None
    text = "Steps, which complete only with every rank, went on up to the moment it was set DOWN"
    return SetDown(hosts, at, tuple(cite for *_, cite in told), (claim(text, *made), drew))


def seemed_up(facts: Facts, lost: Sequence[str]) -> bool:
    """Whether such nodes of these made steps up to that moment or, where no step is dated, kept
    their GPUs' power, and no reading speaks against it: less than clears them, and too much to be
    sure that they were down.  Where nothing says that they did not answer, they must have been
    read behind it without a boot."""
    track, job = facts.main_track(facts.last.n), facts.job
    told = [(host, at) for host, at, _ in _told(facts) if facts.node_of(host) in lost]
    failed = job.ended_at if job is not None and job.disposition == "node_fail" else None
    unsaid = not told and failed is not None and facts.measured(BOOTED)
    told = [(host, failed) for host in lost] if unsaid and failed is not None else told
    if not told:
        return False
    at, hosts = min(at for _, at in told), sorted({facts.node_of(host) for host, _ in told})
    read = _read_on(facts, hosts, int(at.timestamp()), behind_too=unsaid)
    if not read and (unsaid or facts.measured(POWER)):
        return False
    if track is not None and any(map(isfinite, track.at)):
        return made_until(facts, track, at, WINDOW_S) is not None
    return kept_working(facts, at.timestamp(), WINDOW_S, hosts) is not None


def _told_at_its_end(facts: Facts) -> list[Told]:
    """Those of its nodes that were set DOWN as it ended."""
    job = facts.job
    if job is None or job.ended_at is None or job.scheduler != "slurm":
        return []
    return [one for one in _told(facts)
            if one[0] in job.nodes and abs(one[1] - job.ended_at) <= AT_THE_END]  # fmt: skip


def _told(facts: Facts) -> list[Told]:
    """Nodes that were set DOWN for not answering, by the controller's log or the record of the
    nodes."""
    found: list[Told] = []
    for match in facts.tagged(TAG):
        at = None if match.cite.at_assumed else match.cite.at
        if at is not None and match.attempt == facts.last.n:
            found += [(host, at, match.cite) for host in _hosts(match.groups["host"])]
    for event in facts.node_events:
        down = any(state.startswith("DOWN") for state in event.states)
        if down and event.at is not None and REASON in (event.reason or "").lower():
            found.append((event.host, event.at, event.cite))
    return found


def _hosts(text: str) -> tuple[str, ...]:
    try:
        return expand(text)
    except FormatError:
        return ()


def _read_on(facts: Facts, hosts: Sequence[str], at: int, *, behind_too: bool = False) -> bool:
    """Whether each was read just before, behind it as well where others were, or in any case, and
    never booted."""
    before, behind = (
        by_host(instant(facts, f"count by (host) (count_over_time({POWER}[{FRESH_S}s]))", when))
        for when in (at, at + BEHIND_S)
    )
    wanted = set(hosts)
    if before is None or not wanted <= {facts.node_of(host) for host in before.rows}:
        return False
    if behind is None and behind_too:
        return False
    if behind is not None and not wanted <= {facts.node_of(host) for host in behind.rows}:
        return False
    return not _booted(facts, wanted, at)


def _booted(facts: Facts, hosts: set[str], at: int) -> bool:
    if not facts.measured(BOOTED):
        return False
    since, until = (
        by_host(instant(facts, f"max by (host) ({what}_over_time({BOOTED}[{length}s]))", when))
        for what, length, when in (("min", 2 * BEHIND_S, at), ("max", BEHIND_S, at + BEHIND_S))
    )
    if since is None or until is None:
        return False
    return any(
        until.rows[host].last - row.last > SAME_S
        for host, row in since.rows.items()
        if facts.node_of(host) in hosts and host in until.rows
    )
