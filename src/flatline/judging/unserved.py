"""
Requests to file servers that had no answer while a run stood still, as its hosts count them.

Over TCP an NFS client sends a request again after a minute without an answer (`timeo` of nfs(5)),
and what a Lustre client gave up is dropped when it comes at last.  The counters run since boot and
rise by a little on sound hosts, so that what counts is how much faster they rose while the run
stood still than in the rest of it, on most of its hosts or on the one whose tasks sleep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import median

from flatline.facts import Facts
from flatline.judging.blocked import BLOCKED, PROCS
from flatline.judging.blocked import TIMES as ASLEEP_TIMES
from flatline.judging.claims import claim, name_places
from flatline.judging.pace import STILL_INTERVALS, pace
from flatline.judging.pauses import (
    COST,
    COST_S,
    LONGER,
    SILENT_S,
    Stalled,
    longest_of,
    stood,
)
from flatline.judging.timeline import by_host, instant
from flatline.model import Action, Claim, Finding, Place
from flatline.series.answer import Answer, Row

COUNTERS: Mapping[str, tuple[str, str]] = {
    "nfs_timeouts_total": ("host, device", "requests to an NFS server that were given no answer"),
    "nfs_retransmits_total": ("host", "requests to NFS servers that were sent again"),
    "lustre_drops_total": ("host", "messages of Lustre that were dropped"),
}
"""The labels each is summed by, and what it counts; the surest first."""
LEAST, TIMES = 3, 10.0
"""Requests, and times as often as in the rest of the run.  A judgement: a busy server lets a few
requests of every hour wait."""
LONG_S = 180.0
"""Of a standstill at the end: three requests in a row that a minute each brought no answer to."""
MOST = 8
"""Pauses that are asked about, the longest first."""
ASLEEP, COUNTED = 0.75, 0.6
"""What hosts count of requests to servers is of all their programs'; where their tasks sleep as
well it is of the run's, more likely.  Both short of confident."""

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class _Risen:
    """By how much one counter rose on each host over a time: the row that rose most, and all."""

    answer: Answer
    most: Mapping[str, Row]
    by: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Resent:
    """The hosts whose counter rose while the run stood still, of how many, what shows it, and the
    one server that they name."""

    hosts: tuple[str, ...]
    of: int
    shows: Claim
    server: str | None

    @property
    def wide(self) -> bool:
        return self.of > 1 and 2 * len(self.hosts) > self.of


def resent(facts: Facts, span: Span, apart: Sequence[Span] = ()) -> Resent | None:
    """What the clients of the run's hosts counted in a span beside the rest of the run, `apart`
    not counted; None where nothing was measured or nothing rose."""
    run = _run(facts)
    if run is None:
        return None
    for signal, (labels, what) in COUNTERS.items():
        inside = _risen(facts, signal, labels, span)
        if inside is None or max(inside.by.values()) < LEAST:
            continue
        spans = {*apart, span}
        every = _risen(facts, signal, labels, run)
        known = [one for each in spans if (one := _risen(facts, signal, labels, each))]
        if every is None:
            continue
        rest_s = max(1.0, run[1] - run[0] - sum(end - begin for begin, end in spans))
        part = TIMES * (span[1] - span[0]) / rest_s
        hosts = []
        for host, rose in inside.by.items():
            rest = every.by.get(host, 0.0) - sum(one.by.get(host, 0.0) for one in known)
            if rose >= max(LEAST, part * rest):
                hosts.append(host)
        if hosts:
            return _told(inside, every, sorted(hosts, key=lambda h: -inside.by[h]), what)
    return None


def _told(inside: _Risen, every: _Risen, hosts: list[str], what: str) -> Resent:
    first = hosts[0]
    own, whole = inside.most[first], every.most[first]
    where = f" for {own.place.device}" if own.place.device else ""
    text = (
        f"Meanwhile {first} counted {own.last:,.0f} {what}{where}, {whole.last:,.0f} in all of the"
        f" run; {len(hosts)} of {len(inside.by)} hosts counted far more of them than in its rest"
    )
    cites = inside.answer.cite(own, "while it stood still"), every.answer.cite(whole, "in all")
    servers = {(inside.most[host].place.device or "").partition(":/")[0] for host in hosts}
    server = (servers.pop() or None) if len(servers) == 1 else None
    return Resent(tuple(hosts), len(inside.by), claim(text, *cites), server)


def _run(facts: Facts) -> Span | None:
    """The last attempt as far as it was measured."""
    if facts.window is None:
        return None
    first, last = facts.window
    begins = max(filter(None, (first, facts.last.started_at)))
    ends = min(filter(None, (last, facts.last.ended_at)))
    return (begins.timestamp(), ends.timestamp()) if ends > begins else None


def _risen(facts: Facts, signal: str, labels: str, span: Span) -> _Risen | None:
    """Of the run's own hosts: a file server has clients that are none of it."""
    end = float(int(span[1]))
    window = f"[{max(1, int(end - span[0]))}s]"
    high, low = (f"sum by ({labels}) ({fold}_over_time({signal}{window}))"
                 for fold in ("max", "min"))  # fmt: skip
    answer = instant(facts, f"{high} - {low}", end) if facts.measured(signal) else None
    most: dict[str, Row] = {}
    by: dict[str, float] = {}
    for row in answer.rows if answer is not None else ():
        host = facts.node_of(row.place.host or "")
        if host and (not facts.hosts or host in facts.hosts):
            by[host] = by.get(host, 0.0) + row.last
            most[host] = max(most.get(host, row), row, key=lambda each: each.last)
    return _Risen(answer, most, by) if answer is not None and by else None


# --- a run that stood still ---------------------------------------------------------------------


def unserved(facts: Facts, code: str, advice: str) -> Finding | None:
    """A run that stood still while its hosts' requests to file servers had no answer, where no
    line of a kernel says so."""
    if facts.disposition in ("completed", "running", "cancelled", "unknown"):
        found = _in_pauses(facts, code, advice)
        if found is not None:
            return found
    if facts.disposition in ("completed", "running"):
        return None
    return _at_the_end(facts, code, advice)


def _in_pauses(facts: Facts, code: str, advice: str) -> Finding | None:
    """Pauses longer than the run's others, in each of which the counters rose."""
    known = stood(facts)
    if known is None or known.off_s > SILENT_S:
        return None
    asked = sorted(known.pauses, key=lambda pause: -pause.lost_s)[:MOST]
    spans = {pause: (pause.begins, pause.ends + SILENT_S) for pause in asked}
    met = {p: r for p in asked if (r := resent(facts, spans[p], tuple(spans.values())))}
    longest = max((p.lost_s for p in known.pauses if p not in met), default=0.0)
    kept = tuple(sorted((p for p in met if p.lost_s >= LONGER * longest), key=lambda p: p.begins))
    lost_s = sum(pause.lost_s for pause in kept)
    if not kept or lost_s < max(COST * known.wall_s, COST_S):
        return None
    first = max(kept, key=lambda pause: pause.lost_s)
    waits = Stalled(known, kept, ())
    found = _finding(facts, code, advice, met[first], spans[first], longest_of(facts, waits))
    if found is None:
        return None
    return replace(
        found,
        summary=f"The run stood still for {lost_s:.0f} s while {found.summary}",
        severity="degraded",
        took_s=(lost_s, known.wall_s),
        onset=datetime.fromtimestamp(kept[0].begins, UTC),
        onset_step=max(0, known.track.steps[kept[0].at[0]]),
        ended_run=False,
        resubmit="exclude" if found.culprits else "unnecessary",
    )


def _at_the_end(facts: Facts, code: str, advice: str) -> Finding | None:
    """From the last progress to the end, where tasks slept as well: a run that hangs for another
    reason asks nothing of its servers, but other programs of its hosts may."""
    seen, end = pace(facts), facts.last.ended_at or facts.lived[1]
    if seen is None or end is None or facts.end_seen or not facts.measured(PROCS):
        return None
    still_s = (end - seen.at).total_seconds()
    if still_s < max(LONG_S, STILL_INTERVALS * (seen.interval_s or 0.0), seen.pauses_s):
        return None
    span = seen.at.timestamp(), end.timestamp()
    rose = resent(facts, span)
    text = f"Nothing came in the last {still_s:.0f} s of the run"
    found = None if rose is None else _finding(facts, code, advice, rose, span,
                                               claim(text, seen.last))  # fmt: skip
    if found is None:
        return None
    return replace(
        found,
        summary=f"The run stood still to its end while {found.summary}",
        onset=seen.at,
        onset_step=facts.last_step,
        resubmit="exclude" if found.culprits else "fix_first",
    )


def _finding(
    facts: Facts, code: str, advice: str, rose: Resent, span: Span, still: Claim
) -> Finding | None:
    """None where the tasks of those hosts did not sleep, or where that was not measured and the
    hosts are not most of the run's."""
    asleep = _asleep(facts, rose, span)
    if asleep is None if facts.measured(PROCS) else not rose.wide:
        return None
    culprits = () if rose.wide else tuple(Place(host=host) for host in rose.hosts)
    where = f"{len(rose.hosts)} of {rose.of} hosts" if rose.wide else name_places(culprits)
    return Finding(
        code=code,
        summary=f"{rose.server or 'file servers'} gave no answer to {where}",
        attribution="infrastructure",
        strength=COUNTED if asleep is None else ASLEEP,
        most=0.79,
        shows=(still, rose.shows, *(() if asleep is None else (asleep,))),
        implies=(claim("What reads or writes there waits, and every rank of the run with it.",
                       *rose.shows.cites),),
        culprits=culprits,
        scope="place" if culprits else "shared",
        domain=None if culprits else rose.server,
        attempt=facts.last.n,
        cannot_decide=(
            "Whether it was the run's own files: clients count for all programs of a host.",
            "Which side failed: the kernel logs of the hosts and the server's would tell.",
        ),
        actions=(Action("escalate", advice, "dmesg -T; nfsiostat; cat /proc/mounts",
                        tuple(p.host for p in culprits if p.host)),),
    )  # fmt: skip


def _asleep(facts: Facts, rose: Resent, span: Span) -> Claim | None:
    """Tasks in uninterruptible sleep then: on the median of those hosts where they are most of the
    run's, else on the one, far beyond the others."""
    end = float(int(span[1]))
    window = f"[{max(1, int(end - span[0]))}s]"
    read = by_host(instant(facts, f"avg by (host) (avg_over_time({PROCS}{window}))", end))
    now = {} if read is None else {facts.node_of(h): (h, v) for h, v in read.at(end).items()}
    own = sorted((now[host] for host in rose.hosts if host in now), key=lambda pair: pair[1])
    if read is None or not own:
        return None
    others = [v for host, (_, v) in now.items() if host not in rose.hosts]
    name, tasks = own[len(own) // 2]
    if median(v for _, v in own) < BLOCKED or (
        not rose.wide and tasks < ASLEEP_TIMES * max(others, default=0.0)
    ):
        return None
    which = f"the median of these hosts ({name})" if len(own) > 1 else name
    text = f"{tasks:.1f} tasks stood in uninterruptible sleep on {which} then"
    return claim(text, read.cite(name, end, f"tasks in uninterruptible sleep on {name}"))
