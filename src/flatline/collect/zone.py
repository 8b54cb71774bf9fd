"""
The zone of times that state none, where the rest of a run tells it.

Logs and Slurm's text print local time; metrics and Slurm's JSON count seconds since 1970.  Where a
run as read in UTC lies outside what dates it, and inside at one of the offsets that are in use and
at no other, that is its zone, if the metrics are known to be its own: of hosts that its records or
logs name, or of GPUs that took up work as it began and laid it down as it ended; or if a log names
that zone.  Another job's may fit as well.  Where several offsets fit, those times tell.  Metrics
that are far longer than the run fit many, and tell none.  Where the run's own log states an offset
at which it lies within records that state none, they have it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import TypeVar

from flatline.collect.by_clock import spans
from flatline.collect.events import LogEvents
from flatline.collect.files import Found
from flatline.collect.numbers import Numbers
from flatline.collect.setting import Setting
from flatline.collect.told_nodes import told_nodes
from flatline.logs.zones import OFFSETS_H
from flatline.model import Gap, Job
from flatline.signals import CLOCK
from flatline.tracks import LOG, METRICS
from flatline.vocab.hosts import is_address

Logs = Sequence[tuple[Found, Setting, LogEvents]]
Span = tuple[datetime | None, datetime | None]
T = TypeVar("T")

SLACK = timedelta(minutes=5)
"""By which clocks differ, and a run may begin before what dates it."""
LEAST = timedelta(minutes=10)
"""A shorter run fits anywhere."""
OUT = timedelta(minutes=25)
"""By which a run must stand out of what dates it: no offset in use is smaller than half an hour,
and little is printed so long after a job's end."""
STARTS, ENDS = timedelta(minutes=20), timedelta(minutes=7)
"""From a job's start to its GPUs' work, and from that to its end: containers, compilation and the
first read of the data; a last save."""
FARTHEST = timedelta(hours=15)
"""Beyond every offset in use, and a little of what stands beside a run."""
EDGE, STEP_S, LONGEST = timedelta(minutes=2), 30.0, timedelta(days=2)
AT_WORK = 1.5
"""Of an idle GPU's power, the least of one at work: idle ones draw a fifth of their limit."""
MOST = 0.5
"""Of a run within what dates it as it was read: of metrics that miss a part of it no other zone
makes more."""


def when(rows: Sequence[Job], logs: Logs) -> Span:
    """When the run began and ended, as its records and else its dated log lines have it."""
    started = [row.started_at for row in rows if row.started_at]
    ended = rows[-1].ended_at if rows else None
    clocked = [span for _, _, events in logs for span in spans(events)]
    told = _told(logs) + [first for first, _ in clocked]
    seen = [events.last_seen for _, _, events in logs if events.last_seen]
    seen += [last for _, last in clocked]
    first = min(started, default=None) or min(told, default=None)
    return first, ended or max(seen, default=None)


def lived(rows: Sequence[Job], logs: Logs) -> Span:
    """The same, of what is asked for it: without an end while it runs, whatever its log dates."""
    first, last = when(rows, logs)
    return first, None if rows and rows[-1].disposition == "running" else last


def recorded(rows: Sequence[Job]) -> Span:
    """When the run began and ended, by records alone that tell both."""
    return when(rows, ()) if rows and rows[-1].ended_at else (None, None)


def alive(rows: Sequence[Job], taken: datetime | None, logs: Logs) -> datetime | None:
    """Until when the run is known to have been there: to its end, or while it runs to the moment
    its records were `taken` and to the last line of its logs."""
    _, last = when(rows, logs)
    if not rows or rows[-1].disposition != "running":
        return last
    return max((at for at in (taken, last) if at is not None), default=None)


def apart(
    found: Sequence[Found],
    rows: Sequence[Job],
    local: bool,
    taken: datetime | None,
    logs: Logs,
    numbers: Numbers,
    server: str | None = None,
) -> tuple[tzinfo, tzinfo] | None:
    """The zones of records and of logs, where neither states one and they have another each: of
    the two the GPUs' work tells which is UTC."""
    running = of_running(rows, local, taken, logs, numbers, server)
    if running is not None:
        return running[0], running[0] if running[1] else UTC
    zone = _by_records(rows, logs) if local and rows and rows[-1].ended_at else None
    files = [file for file in found if file.kind == METRICS]
    start, end = when(rows, ())
    if zone is None or start is None or end is None:
        return None
    if not files and server is None:
        return UTC, zone
    around = (start - FARTHEST, end + FARTHEST)
    whole = Numbers(files, [], rows[-1].nodes, server=server, run=around)
    off, (first, last) = zone.utcoffset(None) or timedelta(0), whole.window or (None, None)
    if first is None or last is None or last - first > LONGEST:
        return None
    began, ended, held = _worked(first, last, whole)
    down = ended or held
    if began is None or down is None or not _own(rows, logs, whole):
        return None
    if -SLACK <= began - start <= STARTS and -SLACK <= end - down <= ENDS:
        return UTC, zone
    if -SLACK <= began - (start + off) <= STARTS and -SLACK <= end + off - down <= ENDS:
        return timezone(-off), UTC
    return None


def of_logs(rows: Sequence[Job], logs: Logs, zone: tzinfo) -> tuple[tzinfo, tzinfo | None]:
    """The zone of logs, and that of records where it is another: as in a container, that keeps UTC
    where its node does not, they may lie within a record of that zone as they are."""
    own = [e for file, _, e in logs if file.kind == LOG and e.zone_assumed]
    seen = [at for e in own for at in (e.first_seen, e.last_seen) if at]
    (start, end), off = when(rows, ()), zone.utcoffset(None)
    if not rows or not seen or start is None or end is None or off is None:
        return zone, None
    there = _within((min(seen), max(seen)), (start - off, end - off))
    return (UTC, zone) if there else (zone, None)


def of_running(
    rows: Sequence[Job],
    local: bool,
    taken: datetime | None,
    logs: Logs,
    numbers: Numbers,
    server: str | None = None,
) -> tuple[tzinfo, bool] | None:
    """
    The zone of records of a job that runs, and whether its logs are of that zone as well.

    They were taken as the metrics end, but for an offset that is in use.  Containers keep UTC on
    nodes that keep another time: the logs are of the zone in which they begin as the job did, or
    else of that in which they end nearer to that moment.
    A `server` may go on for hours: there the GPUs must have taken up work as the job began, unless
    a log names the zone.
    """
    start = rows[-1].started_at if rows else None
    runs = bool(rows) and rows[-1].disposition == "running" and local
    if not runs or taken is None or start is None:
        return None
    if server is not None:
        around = (start - FARTHEST, taken + FARTHEST)
        numbers = Numbers([], [], rows[-1].nodes, server=server, run=around)
    if (end := numbers.end) is None:
        return None
    offsets = (timedelta(hours=hours) for hours in OFFSETS_H if hours)
    at = next((one for one in offsets if abs(taken - end - one) <= EDGE), None)
    if at is None or not _own(rows, logs, numbers):
        return None
    named = _names(logs, timezone(at))
    if not _begins(start - at, numbers, told=server is not None and not named):
        return None
    there = _begin_with(start, at, logs)
    if there is None:
        seen = [e.last_seen for _, _, e in logs if e.zone_assumed and e.last_seen]
        last = max(seen, default=end)
        there = last > end + SLACK or abs(end - last + at) < abs(end - last)
    return timezone(at), there


def _begin_with(start: datetime, at: timedelta, logs: Logs) -> bool | None:
    """Whether the job's logs, as they are read, begin as it did by its records as they are read;
    None where they may by either zone, or by none."""
    own = [e for file, _, e in logs if file.kind == LOG and e.zone_assumed]
    first = min((e.first_seen for e in own if e.first_seen), default=None)
    if first is None:
        return None
    there, as_utc = (-SLACK <= first - begun <= STARTS for begun in (start, start - at))
    return there if there != as_utc else None


def _begins(start: datetime, numbers: Numbers, *, told: bool) -> bool:
    """Whether nothing shows that its GPUs took up work at another time, or it is `told` that they
    did then."""
    first, last = numbers.window or (None, None)
    if first is None or last is None or last - first > LONGEST:
        return not told
    began, *_ = _worked(first, last, numbers)
    if began is None:
        return not told
    return -SLACK <= began - start <= STARTS


def _told(logs: Logs) -> list[datetime]:
    """Times of what was read first, log by log."""
    times = (
        (at for at in track.at if at == at)
        for _, _, events in logs
        for track in events.tracks.values()
    )
    told = [
        datetime.fromtimestamp(earliest, UTC)
        for of in times
        if (earliest := min(of, default=None)) is not None
    ]
    return told + [cite.at for _, _, e in logs for cite in (m.cite for m in e.matches) if cite.at]


def zone_of(
    found: Sequence[Found],
    rows: Sequence[Job],
    local: bool,
    logs: Logs,
    numbers: Numbers,
    server: str | None = None,
) -> tzinfo | None:
    """None where it is not told, or is UTC. `local` records state no zone; `server` holds the
    metrics, and nobody said of when."""
    if rows and not local:
        return _by_records(rows, logs) or _ahead(rows, logs, numbers)
    if rows and (stated := _stated(rows, logs)) is not None:
        return stated
    run = when(rows, logs)
    if not rows and not any(events.zone_assumed for _, _, events in logs):
        return None
    files = [file for file in found if file.kind == METRICS]
    states = any(e.stated is not None or (e.first_seen and not e.zone_assumed)
                 for file, _, e in logs if file.kind == LOG)  # fmt: skip
    whole = _whole(files, rows, run, numbers, None if states else server)
    if whole is None or (not files and _own(rows, logs, whole) is not True):
        return None
    told, own = _by_work(run, whole.window or (None, None), whole), _own(rows, logs, whole)
    if told is None or (own is not False and (own or told.edges or _names(logs, told.zone))):
        return None if told is None else told.zone
    reason = (
        f"the run would lie within these metrics as {told.zone} times, and nothing tells that they"
        " are its own" if own is None else f"within these metrics the run would lie as {told.zone}"
        " times, and none of its hosts is among theirs"
    )  # fmt: skip
    numbers.note([Gap(CLOCK, reason)])
    return None


def _whole(
    files: Sequence[Found], rows: Sequence[Job], run: Span, numbers: Numbers, server: str | None
) -> Numbers | None:
    """All metrics that may tell: what was read, but for text without a record, was narrowed to the
    run as read in UTC.  None where that holds it already."""
    known, nodes = numbers.window, rows[-1].nodes if rows else ()
    start, end = run
    if files:
        narrowed = bool(rows) or any(file.path.is_dir() for file in files)
        stays = known and not (_stands_out(run, known) if narrowed else _fitting(run, known))
        return None if stays else Numbers(files, [], nodes)
    if server is None or not nodes or start is None or end is None:
        return None
    if rows[-1].disposition == "running" or (known and not _stands_out(run, known)):
        return None
    around = (start - FARTHEST, end + FARTHEST)
    return Numbers([], [], nodes, server=server, run=around)


def _names(logs: Logs, zone: tzinfo) -> bool:
    """Whether a log names a zone that may be this one, as `date` prints it."""
    off = zone.utcoffset(None)
    return any(off == timedelta(hours=h) for f, _, e in logs if f.kind == LOG for h in e.named)


def told_by(zone: tzinfo, found: Sequence[Found], server: str | None) -> Sequence[Gap]:
    """That nothing but the samples of a server tells a zone."""
    if server is None or any(file.kind == METRICS for file in found):
        return ()
    reason = f"no time states one; the server has samples of these hosts when the run is in {zone}"
    return (Gap(CLOCK, reason, server),)


def _own(rows: Sequence[Job], logs: Logs, numbers: Numbers) -> bool | None:
    """Whether a host of the metrics is the run's, as its records name them, or else its logs;
    None where that is not known: a program may run under a name of its own."""
    read = {host for one in numbers.carried() for host in one.hosts}
    here = {host.partition(".")[0].lower() for host in read if not is_address(host)}
    nodes = rows[-1].nodes if rows else ()
    told = (
        *told_nodes(match for _, _, events in logs for match in events.matches),
        *(match.cite.place.host for _, _, events in logs for match in events.matches),
        *(setting.name.host for _, setting, _ in logs),
    )
    mine = {host.partition(".")[0].lower() for host in nodes or told if host}
    if here & mine:
        return True
    return False if nodes and here and len(here) == len(read) else None


def _stated(rows: Sequence[Job], logs: Logs) -> tzinfo | None:
    """The one offset that the job's logs state, where they lie within its records by it alone."""
    own = [events for file, _, events in logs if file.kind == LOG and events.stated is not None]
    offsets = {offset for e in own if e.stated and (offset := e.stated.utcoffset(None))}
    seen = [at for e in own for at in (e.first_seen, e.last_seen) if at]
    start, end = when(rows, ())
    if len(offsets) != 1 or not seen or start is None or end is None:
        return None
    offset, span = offsets.pop(), (min(seen), max(seen))
    if max(start - span[0], span[1] - end) < OUT:
        return None
    return timezone(offset) if _within(span, (start - offset, end - offset)) else None


def _within(run: Span, dated: Span) -> bool:
    (start, end), (first, last) = run, dated
    if start is None or end is None or first is None or last is None:
        return False
    return first - SLACK <= start and end <= last + SLACK


def _by_records(rows: Sequence[Job], logs: Logs) -> tzinfo | None:
    """By rows that are known to be in UTC: the job's own logs lie within them."""
    own = [e for file, _, e in logs if file.kind == LOG and e.zone_assumed]
    first = [events.first_seen for events in own if events.first_seen]
    last = [events.last_seen for events in own if events.last_seen]
    return _zone((min(first, default=None), max(last, default=None)), when(rows, ()), 1.0)


def _ahead(rows: Sequence[Job], logs: Logs, numbers: Numbers) -> tzinfo | None:
    """Of a running job whose log ends later than its metrics by an offset that is in use: nothing
    is printed before its time."""
    own = [e for file, _, e in logs if file.kind == LOG and e.zone_assumed]
    seen = [events.last_seen for events in own if events.last_seen]
    if rows[-1].disposition != "running" or numbers.end is None or not seen:
        return None
    ahead = max(seen) - numbers.end
    offsets = (timedelta(hours=hours) for hours in OFFSETS_H if hours > 0)
    return next((timezone(at) for at in offsets if abs(ahead - at) <= EDGE), None)


def _zone(run: Span, dated: Span, most: float = MOST) -> tzinfo | None:
    """Where the run lies within what dates it at one offset alone, and as read no more than `most`
    of it does."""
    (start, end), (first, last) = run, dated
    if start is None or end is None or first is None or last is None:
        return None
    length, inside = end - start, min(end, last) - max(start, first)
    fitting = _fitting(run, dated)
    if length < LEAST or inside > most * length or len(fitting) != 1:
        return None
    return timezone(fitting[0])


def _fitting(run: Span, dated: Span) -> list[timedelta]:
    """The offsets at which a run lies within what dates it, and as it was read it does not."""
    start, end = run
    if start is None or end is None or not _stands_out(run, dated):
        return []
    offsets = (timedelta(hours=hours) for hours in OFFSETS_H if hours)
    return [at for at in offsets if _within((start - at, end - at), dated)]


def _stands_out(run: Span, dated: Span) -> bool:
    (start, end), (first, last) = run, dated
    if start is None or end is None or first is None or last is None:
        return False
    return max(end - last, first - start) >= OUT


@dataclass(frozen=True, slots=True)
class _Told:
    """A zone; `edges` where GPUs took up work as the run began and laid it down as it ended."""

    zone: tzinfo
    edges: bool


def _by_work(run: Span, dated: Span, numbers: Numbers) -> _Told | None:
    """The one offset that fits, unless its GPUs were at work at other times; of several the one at
    which they took up work as the run began and laid it down as it ended.  A run that hangs ends
    long after, and holds them until then."""
    alone, (start, end), (first, last) = _zone(run, dated), run, dated
    if start is None or end is None or first is None or last is None:
        return None
    fitting = _fitting(run, dated)
    if not fitting or last - first > LONGEST:
        return None if alone is None else _Told(alone, edges=False)
    began, ended, held = _worked(first, last, numbers)
    told = [
        at
        for at in fitting
        if (began is None or -SLACK <= began - (start - at) <= STARTS)
        and (ended is None or ended - (end - at) <= SLACK)
    ]
    close = [at for at in told if began and ended and end - at - ended <= ENDS]
    if not close and began and held:
        close = [at for at in told if -SLACK <= end - at - held <= ENDS]
    if alone is None:
        return _Told(timezone(close[0]), edges=True) if len(close) == 1 else None
    return _Told(alone, bool(close)) if alone.utcoffset(None) in told else None


def _worked(
    first: datetime, last: datetime, numbers: Numbers
) -> tuple[datetime | None, datetime | None, datetime | None]:
    """When the GPUs took up work, laid it down, and fell to what idle ones draw: None where that
    was before or after."""
    answer = numbers.ask("avg(gpu_power_watts)", start=first, end=last, step_s=STEP_S)
    if answer is None or len(answer.rows) != 1:
        return None, None, None
    row = answer.rows[0]
    watts = sorted(row.values)
    low, high = watts[len(watts) // 20], watts[-1 - len(watts) // 20]
    busy = [at for at, watt in zip(row.times, row.values, strict=True) if watt > (low + high) / 2]
    if high < AT_WORK * low or not busy:
        return None, None, None
    drawn = max(at for at, watt in zip(row.times, row.values, strict=True) if watt > AT_WORK * low)
    began, ended, held = (datetime.fromtimestamp(at, UTC) for at in (busy[0], busy[-1], drawn))
    return (
        began if began - first >= EDGE else None,
        ended if last - ended >= EDGE else None,
        held if last - held >= EDGE else None,
    )


def in_zone(value: T, zone: tzinfo) -> T:
    """The same with every time, which was read as UTC's, as that zone's; one that stated its own
    as it is."""
    moved: object = value
    if isinstance(value, datetime):
        moved = (value.replace(tzinfo=zone) if value.tzinfo is UTC else value).astimezone(UTC)
    elif isinstance(value, tuple):
        moved = tuple(in_zone(item, zone) for item in value)
    elif is_dataclass(value) and not isinstance(value, type):
        held = {field.name: getattr(value, field.name) for field in fields(value)}
        moved = replace(value, **{name: in_zone(item, zone) for name, item in held.items()})
    return moved  # type: ignore[return-value]
