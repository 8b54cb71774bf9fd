"""
File systems that gave nothing more at a moment, by their own count: no room, no inodes, or
read-only; and which of them the run writes to.

A full file system by itself ends nothing: it may be another's, or full all along.  What counts is
one that had room while the run went on and none as it ended, and that the log names a path on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import floor

from flatline.facts import LOG, Facts
from flatline.judging.belonging import none_besides
from flatline.judging.claims import claim
from flatline.judging.crashes import failures
from flatline.judging.kills import kills
from flatline.judging.throughput import clock
from flatline.judging.timeline import alone, instant
from flatline.model import Claim, Finding, LogCite, Place, QueryCite
from flatline.series.answer import Answer, Row

ROOM, SIZE = "filesystem_available_bytes", "filesystem_size_bytes"
INODES, ALL_INODES = "filesystem_free_inodes", "filesystem_inodes"
READ_ONLY = "filesystem_read_only"
FULL, SCARCE = 0.001, 0.01
"""Of all its room: so little is left where a large write has just failed, and so little beside a
line that says there was none.  A judgement: file systems keep a reserve of their own, and what a
failed write leaves behind is often removed."""
CLOSE_S = 300.0
"""Before the end: what ran full earlier let the run go on."""
SEEN_AFTER_S = 60.0
"""Most exporters are read every 15 to 60 s, as `judging.health` has it."""
STEP_S, _POINTS = 15.0, 480
_BEHIND = 40
"""Lines behind a failure in which its launcher says where it was."""
NOT_WRITTEN = re.compile(r"/(?:boot|snap|dev|proc|sys|run|efi|media)(?:/|$)")
"""Mounts that no run writes its files to; a full /dev/shm ends a process by SIGBUS (`A2`)."""
OF_THE_HOST = re.compile(
    r"^/(?:tmp|var|dev|run|proc|sys|scratch/local|local|mnt/(?:nvme|ssd))(?:/|$)"
)
"""Paths that are each host's own by convention: nothing that places share."""
PATH = re.compile(r"['\"\s:=(](/[\w.+-]+(?:/[\w.+@=-]+)*)")
_WRITES = re.compile(
    r"\b(?:sav(?:e[ds]?|ing)|writ(?:e[s]?|ing|ten)|wrote|checkpoint\w*|ckpt\w*|dump\w*"
    r"|(?:output|log|cache|work)[ _-]?(?:dir(?:ectory)?|path|folder))\b",
    re.IGNORECASE,
)
_ENDS, _LOGS = 300, 16
"""Lines at the beginning and at the end of a log that are looked through for paths, and logs."""

At = tuple[str, str]
"""A host as the metrics call it, and where the file system is mounted."""


@dataclass(frozen=True, slots=True)
class Spent:
    """A file system that gave nothing more: `lacks` is "room", "inodes" or "writes", `at` POSIX
    seconds; `shows` says so."""

    host: str
    mount: str
    lacks: str
    at: float
    shows: Claim


@dataclass(frozen=True, slots=True)
class _Read:
    """What a signal showed of each file system around a moment, and before."""

    near: Answer
    rows: Mapping[At, Row]
    before: Answer | None
    lowest: Mapping[At, Row]
    whole: Mapping[At, Row]
    all_of: Answer | None


def spent(facts: Facts, until: float, *, told: bool) -> tuple[Spent, ...]:
    """
    The file systems of the run's hosts that gave nothing more just before POSIX `until`, the
    first one first.

    Where no line says so (not `told`), those alone that had some all the time before.
    """
    found: list[Spent] = []
    for lacks, signal, total in (("room", ROOM, SIZE), ("inodes", INODES, ALL_INODES)):
        read = _read(facts, signal, total, until)
        for at in read.rows if read is not None else ():
            low = _ran_out(read, at, SCARCE if told else FULL, told) if read is not None else None
            if read is not None and low is not None:
                found.append(_told(facts, read, at, low, lacks))
    return tuple(
        sorted(
            (*found, *_turned(facts, until, told)), key=lambda one: (one.at, one.host, one.mount)
        )
    )


def spent_at_all(facts: Facts) -> tuple[Spent, ...]:
    """The same at any time that was measured, for a line of which no one knows when it was
    printed; of room and inodes alone."""
    found: list[Spent] = []
    if facts.window is None:
        return ()
    start, end = (moment.timestamp() for moment in facts.window)
    step_s = max(STEP_S, (end - start) // _POINTS)
    for lacks, signal, total in (("room", ROOM, SIZE), ("inodes", INODES, ALL_INODES)):
        near = facts.series(signal, step_s=step_s) if facts.measured(signal) else None
        most = total if facts.measured(total) else signal
        whole = instant(facts, f"max_over_time({most}[{max(1, int(end - start))}s])", end)
        if near is None or whole is None:
            continue
        read = _Read(near, _rows(facts, near), None, {}, _rows(facts, whole), whole)
        found += [_told(facts, read, at, low, lacks) for at in read.rows
                  if (low := _ran_out(read, at, SCARCE, told=True)) is not None]  # fmt: skip
    return tuple(sorted(found, key=lambda one: (one.at, one.host, one.mount)))


def on_its_host(facts: Facts, found: Finding, full: Sequence[Spent]) -> Finding:
    """A finding that names ranks of which no host is known, with the one host that it was full
    on: where every host of the run was measured and it was not on the others, or where a line that
    follows names that host."""
    hosts = {one.host for one in full}
    nowhere = found.culprits and not any(place.host for place in found.culprits)
    if not nowhere or len(hosts) != 1:
        return found
    read = {facts.node_of(host) for host, where in _rows_of(facts) if where == full[0].mount}
    (host,) = hosts
    known = host in facts.hosts and {*facts.hosts} <= read
    alone = not facts.hosts and len(read) > 1 and none_besides(facts)
    named = _named_behind(facts, found, host)
    if not (known or alone or named):
        return found
    told = () if named is None else (claim(f"What followed was on {host}", named),)
    return replace(
        found,
        culprits=tuple(replace(place, host=host) for place in found.culprits),
        shows=(*found.shows, *told),
    )


def _named_behind(facts: Facts, found: Finding, host: str) -> LogCite | None:
    """The line after the finding's last that begins with a host's name, as a launcher labels those
    of its agents."""
    cites = [cite for shown in found.shows for cite in shown.cites if isinstance(cite, LogCite)]
    last = max(cites, key=lambda cite: cite.line, default=None)
    if last is None:
        return None
    label = re.compile(rf"[\[(]?{re.escape(host.partition('.')[0])}(?:\.[\w.-]+)?[\]):]+\s")
    for line, text in enumerate(facts.lines(last.source, last.line, _BEHIND), last.line):
        if label.match(text):
            return LogCite(last.source, line, facts.text(last.source, line), Place(host=host))
    return None


def _turned(facts: Facts, until: float, told: bool) -> Iterator[Spent]:
    """The file systems that were read-only then."""
    read = _read(facts, READ_ONLY, None, until)
    for (host, mount), row in read.rows.items() if read is not None else ():
        at = next((time for time, value in row.points() if value >= 1), None)
        was = read.lowest.get((host, mount)) if read is not None else None
        turned = was is not None and was.last < 1
        if read is None or at is None or not (turned or told):
            continue
        text = f"{mount} of {host} was read-only at {clock(at)}"
        cites = [read.near.cite(row, "read-only", at=at)]
        if turned and was is not None and read.before is not None:
            text += f", and was not until {CLOSE_S / 60:.0f} min before the end"
            cites.append(read.before.cite(was, "read-only before"))
        yield Spent(facts.node_of(host), mount, "writes", at, claim(text, *cites))


def _read(facts: Facts, signal: str, total: str | None, until: float) -> _Read | None:
    """None where it was not measured before that moment and in the run."""
    if not facts.measured(signal) or facts.window is None:
        return None
    began = facts.last.started_at
    start = max(facts.window[0].timestamp(), began.timestamp() if began else 0.0)
    end = float(floor(min(until + SEEN_AFTER_S, facts.window[1].timestamp())))
    close = float(floor(until - CLOSE_S))
    if end <= close:
        return None
    near = facts.series(signal, start=_at(close), end=_at(end), step_s=STEP_S)
    fold, long_s = "max" if signal == READ_ONLY else "min", int(close - start)
    before = (
        instant(facts, f"{fold}_over_time({signal}[{long_s}s])", close)
        if long_s >= CLOSE_S
        else None
    )
    if near is None:
        return None
    measured = total is not None and facts.measured(total)
    most = total if measured else signal
    whole = instant(facts, f"max_over_time({most}[{int(end - start)}s])", end)
    lowest, highest = ({} if one is None else _rows(facts, one) for one in (before, whole))
    return _Read(near, _rows(facts, near), before, lowest, highest, whole)


def _at(time: float) -> datetime:
    return datetime.fromtimestamp(time, UTC)


def _rows(facts: Facts, answer: Answer) -> dict[At, Row]:
    """By host and mount, of the run's hosts; those that have several rows are left out."""
    mine = set(facts.hosts)
    return alone(
        ((row.place.host, row.place.device), row)
        for row in answer.rows
        if row.place.host and row.place.device and not NOT_WRITTEN.match(row.place.device)
        and (not mine or facts.node_of(row.place.host) in mine)
    )  # fmt: skip


def _ran_out(read: _Read, at: At, part: float, told: bool) -> tuple[float, float] | None:
    """When it first had less left than this part of all, and how much."""
    whole, was = read.whole.get(at), read.lowest.get(at)
    bar = part * whole.last if whole is not None else 0.0
    if bar <= 0 or (not told and (was is None or was.last <= bar)):
        return None
    return next(((time, value) for time, value in read.rows[at].points() if value <= bar), None)


def _told(facts: Facts, read: _Read, at: At, low: tuple[float, float], lacks: str) -> Spent:
    host, mount = at
    said = spelled if lacks == "room" else lambda value: f"{value:,.0f} inodes"
    time, value = low
    cites: list[QueryCite | None] = [read.near.cite(read.rows[at], "left", at=time)]
    text = f"{mount} of {host} had {said(value)} left at {clock(time)}"
    if read.all_of is not None and at in read.whole:
        cites.append(read.all_of.cite(read.whole[at], "in all"))
        text += f", of {said(read.whole[at].last)}"
    if read.before is not None and at in read.lowest and read.lowest[at].last > value:
        cites.append(read.before.cite(read.lowest[at], "before"))
        text += f", and never less than {said(read.lowest[at].last)} until"
        text += f" {CLOSE_S / 60:.0f} min before the end"
    return Spent(facts.node_of(host), mount, lacks, time, claim(text, *cites))


def spelled(size: float) -> str:
    """Bytes as a person says them, in powers of two."""
    units = ("B", "KiB", "MiB", "GiB")
    at = 0
    while size >= 1024 and at < len(units) - 1:
        size, at = size / 1024, at + 1
    return f"{size:,.0f} {units[at]}" if at == 0 or size >= 100 else f"{size:,.1f} {units[at]}"


def has_room(facts: Facts, mount: str, until: float) -> bool:
    """Whether a mount was measured just before a moment, and never short of room or inodes."""
    read = _read(facts, ROOM, SIZE, until)
    measured = read is not None and any(where == mount for _, where in read.rows)
    return measured and mount not in {one.mount for one in spent(facts, until, told=True)}


# --- what the run writes to ---------------------------------------------------------------------


def mount_of(path: str, mounts: Iterable[str]) -> str | None:
    """The mount that a path lies on.  A path that none has but "/" lies there if it is a host's
    own by convention; others may be mounts that are not read, or a container's."""
    inside = [one for one in mounts if one == path or path.startswith(one.rstrip("/") + "/")]
    best = max(inside, key=len, default=None)
    return None if best == "/" and not OF_THE_HOST.match(path) else best


def mounts(facts: Facts) -> frozenset[str]:
    """Where anything is mounted on the run's hosts, as far as it was measured."""
    return frozenset(mount for _, mount in _rows_of(facts))


def _rows_of(facts: Facts) -> Mapping[At, Row]:
    if not facts.measured(ROOM) or facts.window is None:
        return {}
    start, end = (moment.timestamp() for moment in facts.window)
    read = instant(facts, f"max_over_time({ROOM}[{max(1, int(end - start))}s])", end)
    return {} if read is None else _rows(facts, read)


def written(facts: Facts, mount: str) -> LogCite | None:
    """A line of the log by which the run writes to a mount; None where no line says so."""
    every = mounts(facts)
    return next((cite for path, cite in _paths(facts) if mount_of(path, every) == mount), None)


def _paths(facts: Facts) -> Sequence[tuple[str, LogCite]]:
    return facts.memo("filesystems.paths", lambda facts: tuple(_read_paths(facts)))


def _read_paths(facts: Facts) -> Iterator[tuple[str, LogCite]]:
    """Absolute paths in lines that speak of writing, from the ends of the run's logs."""
    for read in facts.log_files(LOG)[:_LOGS]:
        spans = {1: _ENDS, max(_ENDS, read.lines - _ENDS) + 1: _ENDS}
        for first, count in spans.items():
            for line, text in enumerate(facts.lines(read.source, first, count), first):
                if not _WRITES.search(text):
                    continue
                for path in PATH.findall(text):
                    yield (
                        path,
                        LogCite(read.source, line, facts.text(read.source, line), read.place),
                    )


# --- what ran out as the run ended --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RanOut:
    """The first that ran out, on these hosts; `used` is the line by which the run writes there."""

    first: Spent
    hosts: tuple[str, ...]
    used: LogCite | None


def ran_out(facts: Facts) -> RanOut | None:
    """What ran out as the run ended without a word, the first that the run is known to write to
    before others; None where another end is told of, or nothing did."""
    end = facts.last.ended_at or facts.lived[1]
    silent = facts.disposition in ("failed", "unknown") and not facts.end_seen
    if end is None or not silent or facts.reached_plan or not _unexplained(facts):
        return None
    found = [(one, written(facts, one.mount)) for one in spent(facts, end.timestamp(), told=False)]
    best = next((pair for pair in found if pair[1] is not None), found[0] if found else None)
    if best is None:
        return None
    first, used = best
    alike = (one for one, _ in found if (one.mount, one.lacks) == (first.mount, first.lacks))
    return RanOut(first, tuple(sorted({one.host for one in alike})), used)


def _unexplained(facts: Facts) -> bool:
    """Whether nothing in the logs tells of another end than a write that failed would make."""
    kill = kills(facts)
    if kill is not None and kill.first.fatal and kill.fault_class not in ("kill-unknown", "bus"):
        return False
    return all(f.family == "A2" or f.fault_class == "io" for f in failures(facts)
               if f.fatal and f.attempt == facts.last.n)  # fmt: skip
