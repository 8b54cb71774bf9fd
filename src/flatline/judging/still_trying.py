"""
Hosts that go on trying to reach the store of rank 0, to the end of what was read.

A try that fails is harmless where the store is not there yet, and one address family may be closed
for good.  One that finds no route, is refused or times out, from the start of a run on for many
minutes and to the last lines of its log, while no step was ever made, is a rendezvous that hangs.
Fewer do where somebody interrupted the program in the very call that tries.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from flatline.facts import Facts
from flatline.judging.claims import claim, name_places
from flatline.judging.named_logs import host_of_log
from flatline.judging.wrappers import is_interrupt
from flatline.logs.clock import Clock
from flatline.model import Claim, Crash, LogCite, Match, Place

ENDPOINTS = "paddle-endpoints-awaited"
RETRIED = (
    "c10d-store-retry", "paddle-master-awaited", "dgl-server-awaited", ENDPOINTS,
    "tensorflow-session-awaited",
)  # fmt: skip
LEAST = timedelta(minutes=10)
"""Stores are there within minutes; c10d itself waits for ten at most unless told otherwise
(`default_pg_timeout` of torch.distributed)."""
INTERRUPTED = timedelta(minutes=2)
"""A judgement: whoever ends a program that waits for others thinks that they do not come."""
TIMES, NEAR, LAST_LINES = 4, 4, 6
"""Tries, at least; lines around one of which some must be dated; and how near to its log's end the
last one stands."""
SYN_S, FITS = 127.0, (0.5, 1.2)
"""How long Linux tries to connect before it gives up (tcp_syn_retries of 6, ip-sysctl.rst); and
of the run's length, what such tries of a host's processes, one for each GPU, add up to: more came
faster, and fewer may have been over long before."""
PAUSE_S, PER_HOST = 3.0, 8
"""Between two tries of one process (`wait_server_ready` of Paddle), and how many a host's log may
be of, where each waits for one address alone: for several of them only rank 0 does."""
_ENDPOINT = re.compile(r"'([\w.-]{1,253}):\d{1,5}'")
_HERE = re.compile(r"127\.|localhost|0\.0\.0\.0")
_GAVE_UP = re.compile(r"errno: 110\b")
_CONNECTS = re.compile(
    r"(?i)connect|rendezvous|init_process_group|barrier|create_c10d_store|wait_server_ready"
)
_NO_WAY = re.compile(r"(?i)errno: (?:101|110|111|113)\b|no route to host|connection refused"
                     r"|network is unreachable|timed out|retrying \(try=\d"
                     r"|master not ready|wait to retry|not ready endpoints"
                     r"|still waiting for response"
                     r"|IPv4 network addresses of .{1,300}gai error|gai error: -3\b")  # fmt: skip
"""Unreachable, timed out, refused, no route (Linux, errno.h), a name that is not resolved; not an
address family that is closed."""


@dataclass(frozen=True, slots=True)
class Trying:
    """The hosts, what shows it, the first such line, when that was, and the host that is not
    reached where the lines name it; `cut_short`: somebody did not wait for long."""

    places: tuple[Place, ...]
    shows: Claim
    first: LogCite
    at: datetime | None
    sought: tuple[Place, ...] = ()
    cut_short: bool = False


def still_trying(facts: Facts) -> Trying | None:
    """None where a step was made, the run ended by itself, or no log goes on trying for long."""
    if facts.has_progress or facts.disposition in ("completed", "failed", "out_of_memory"):
        return None
    tries: dict[str, list[Match]] = {}
    for match in facts.matches:
        if match.signature.id in RETRIED and match.attempt == facts.last.n and (
            _NO_WAY.search(match.cite.text)
        ):  # fmt: skip
            tries.setdefault(match.cite.source, []).append(match)
    lasting = {source: lasts for source, own in tries.items()
               if (lasts := _lasting(facts, source, own)) is not None}  # fmt: skip
    if not lasting:
        return None
    hosts = {source: host_of_log(facts, source) for source in lasting}
    named = {host for host in hosts.values() if host is not None}
    few = None not in hosts.values() and 0 < len(named) < len(facts.hosts)
    places = tuple(Place(host=host) for host in sorted(named)) if few else ()
    tasks = {match.cite.place.task for source in lasting for match in tries[source]}
    if not places and len(tasks) == 1 < len(facts.hosts) and None not in tasks:
        places = (facts.on_host(Place(task=tasks.pop())),)
    length = min(lasts for lasts, _ in lasting.values())
    cites = [tries[source][at].cite for source in list(lasting)[:3] for at in (0, -1)]
    given = set.intersection(*(_sought(match) for one in lasting for match in tries[one]))
    sought = tuple(Place(host=host) for host in sorted(given))
    source = min(lasting, key=lambda one: lasting[one][1] or datetime.max.replace(tzinfo=UTC))
    who = name_places(places) if places else "It"
    store = name_places(sought) or ("another rank" if of_ranks(tries[source][0].cite)
                                    else "the store of rank 0")  # fmt: skip
    text = (
        f"{who[:1].upper()}{who[1:]} tried again and again to reach {store}, for"
        f" {length.total_seconds() / 60:.0f} minutes and to the end of its log"
    )
    return Trying(places, claim(text, *cites), tries[source][0].cite, lasting[source][1], sought,
                  cut_short=length < LEAST)  # fmt: skip


def of_ranks(cite: LogCite) -> bool:
    """Whether other ranks are waited for, and not the store of rank 0."""
    return "not ready endpoints" in cite.text or "from worker: /job:" in cite.text


def _sought(match: Match) -> set[str]:
    """The other hosts that a line says are not reached."""
    if match.signature.id != ENDPOINTS:
        return {match.groups["host"]} if match.groups.get("host") else set()
    return {host for host in _ENDPOINT.findall(match.cite.text) if not _HERE.match(host)}


def _lasting(
    facts: Facts, source: str, tries: Sequence[Match]
) -> tuple[timedelta, datetime | None] | None:
    """For about how long a log tells of tries, to its end, and since when."""
    lines = next((read.lines for read in facts.files if read.source == source), 0)
    interrupted = _interrupted(facts, source)
    if interrupted is not None:
        lines = interrupted.head.line
    if len(tries) < TIMES or tries[-1].cite.line <= lines - LAST_LINES:
        return None
    begins, ends = (_dated(facts, tries[at].cite) for at in (0, -1))
    least = LEAST if interrupted is None else INTERRUPTED
    if begins is not None and ends is not None:
        return (ends - begins, begins) if ends - begins >= least else None
    if any(match.signature.id != ENDPOINTS for match in tries):
        return _by_their_number(facts, tries)
    several = all(len(_ENDPOINT.findall(match.cite.text)) > 1 for match in tries)
    lasted = timedelta(seconds=PAUSE_S * len(tries) / (1 if several else PER_HOST))
    return (lasted, begins) if lasted >= least else None


def _interrupted(facts: Facts, source: str) -> Crash | None:
    """Somebody's Ctrl-C that met the program where it connects."""
    return next(
        (crash for crash in facts.crashes
         if crash.cite.source == source and crash.attempt == facts.last.n and is_interrupt(crash)
         and any(_CONNECTS.search(frame.function) for frame in crash.frames)),
        None,
    )  # fmt: skip


def _by_their_number(facts: Facts, tries: Sequence[Match]) -> tuple[timedelta, datetime] | None:
    """The same of tries without a time, each of which took as long as Linux takes to give one up,
    where those of one task are about as many as its processes make in the run's time."""
    job, begins = facts.job, facts.last.started_at
    ends = facts.last.ended_at or (facts.window[1] if facts.window is not None else None)
    if job is None or not job.gpus or not job.nodes or begins is None or ends is None:
        return None
    one = len({match.cite.place.task for match in tries}) == 1
    if not one or not all(_GAVE_UP.search(match.cite.text) for match in tries):
        return None
    lasted = timedelta(seconds=SYN_S * len(tries) * len(job.nodes) / job.gpus)
    least, most = (part * (ends - begins) for part in FITS)
    return (lasted, begins) if lasted >= LEAST and least <= lasted <= most else None


def _dated(facts: Facts, cite: LogCite) -> datetime | None:
    """When a line was printed, by itself or by a dated one that stands beside it."""
    if cite.at is not None:
        return cite.at
    clock, first = Clock(), max(1, cite.line - NEAR)
    stamps = [clock.read(text) for text in facts.lines(cite.source, first, 2 * NEAR + 1)]
    told = [stamp.at for stamp in stamps if stamp is not None]
    return told[len(told) // 2] if told else None
