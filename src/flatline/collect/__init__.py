"""
From targets to `Facts`: the only place where an error of a source becomes a gap.

Files are told by content, read once, and put together into one run: the job that is meant, its
attempts, how it ended, and what could not be read.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from pathlib import Path

from flatline.collect.appended import of_this_run
from flatline.collect.asking import Own
from flatline.collect.attempts import fold_attempts, in_their_try, kept_to, moved, of_rows
from flatline.collect.baseline import lay_beside, named_baseline, sought
from flatline.collect.catalogue import catalogue
from flatline.collect.early_stops import shows_end
from flatline.collect.events import LogEvents
from flatline.collect.files import BINARY, Found, OnProgress, holds_output, told_in_lines, walk
from flatline.collect.foreign import of_other_jobs
from flatline.collect.held import seen_alive
from flatline.collect.histories import last_of_each, not_beside_a_log
from flatline.collect.line_reader import LineReader
from flatline.collect.listed import as_of_its_list, named_by, with_listed
from flatline.collect.live import resolve
from flatline.collect.losses_beside import joined
from flatline.collect.masking import masked
from flatline.collect.merging import Records_, merge
from flatline.collect.numbered import numbered
from flatline.collect.numbers import ENDLESS, OPEN, Numbers
from flatline.collect.of_job import in_its_time, meant, of_job
from flatline.collect.other_jobs import named_otherwise
from flatline.collect.parent import Span, lay_before, to_be_read
from flatline.collect.placing import placed
from flatline.collect.pod_job import assigned, nodes_of_its_pods
from flatline.collect.pods_on_server import pods_asked
from flatline.collect.pool import Task, read_all
from flatline.collect.runs import attempts, choose, how_a_try_ended, how_it_ended
from flatline.collect.setting import Setting
from flatline.collect.sharing import hold, shared
from flatline.collect.told_nodes import told_nodes
from flatline.collect.unnamed import telling
from flatline.collect.yearless import dated
from flatline.collect.zone import (
    alive,
    apart,
    in_zone,
    lived,
    of_logs,
    recorded,
    told_by,
    when,
    zone_of,
)
from flatline.errors import FormatError, ManyJobs, SourceError
from flatline.facts import DUMPS, EVENTS, KERNEL, LOG, METRICS, SCHEDULER, Facts, FileRead
from flatline.logs.labels import NamePlace, place_of_name
from flatline.model import Gap, Job, NodeEvent, Place, Records
from flatline.model.dumps import Dump
from flatline.parsers import parsed, record_format_of
from flatline.parsers.flight_recorder import parse_dump
from flatline.redact import mask
from flatline.sources import capsule
from flatline.tracks import BASELINE

RECORD_BYTES = 128 << 20
"""Some 12,000 jobs as JSON, which in memory can take twenty times its size."""
_ONE_JOB = "give the records of one job"
DUMP_BYTES = 64 << 20
ALIKE = 20
"""Gaps of one kind that are told one by one: a folder may hold a hundred thousand weights."""


@dataclass(frozen=True)
class Request:
    """What the caller asked for."""

    targets: tuple[str, ...]
    job: str | None = None
    baseline: str | None = None
    prometheus: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    hosts: tuple[str, ...] = ()
    seek_baseline: bool = True
    """Whether the last completed run of its job may be compared with where none is named."""


@dataclass(frozen=True)
class Reading:
    """What the targets hold of one run, each thing as it was read; `fetched` are the names and
    bytes of records that a live scheduler gave, `run` is when the run began and ended."""

    request: Request
    found: list[Found]
    fetched: list[tuple[str, bytes]]
    records: Records_
    rows: tuple[Job, ...]
    logs: list[tuple[Found, Setting, LogEvents]]
    dumps: list[Dump]
    numbers: Numbers
    gaps: list[Gap]
    zone: str = "UTC"


def collect(
    request: Request, on_progress: OnProgress | None = None, given: Sequence[Records] = ()
) -> Facts:
    """Everything the targets hold of one run, and what `given` says of it, records that were read
    already. Raises `UsageError` where the call is wrong."""
    whole = read(request, on_progress, given)
    facts = _facts(whole)
    chosen = named_baseline(request.baseline) if request.baseline else None
    if chosen is None and request.seek_baseline:
        chosen = sought(request.targets, facts.job, whole.records.jobs)

    def other(targets: tuple[str, ...], job: str | None, within: Span, origin: str) -> Facts:
        begin, end = within
        asked = Request(targets, job, None, request.prometheus, begin, end)
        return _facts(read(asked, on_progress, (), origin))

    if chosen is not None:
        lay_beside(facts, chosen, other, named=request.baseline is not None)
    if (parent := to_be_read(facts, whole.records.jobs)) is not None:
        lay_before(facts, request.targets, parent, whole.records.jobs, other)
    return facts


def read(
    request: Request,
    on_progress: OnProgress | None = None,
    given: Sequence[Records] = (),
    origin: str = "",
    zone: tzinfo = UTC,
    of_records: tzinfo | None = None,
    of_pods: Sequence[tuple[str, bytes]] | None = None,
) -> Reading:
    """The same, before it is put together; `origin` stands before every source.  Times that state
    no zone are of `zone`, of records `of_records`, unless the rest of the run tells another.
    `of_pods` is what a server said of its pods, None as long as it was not asked."""
    request, sealed_name = _as_sealed(request, on_progress)
    resolved = resolve(request.targets, request.job)
    gaps, job_id, targets = [*resolved.gaps], resolved.job, tuple(resolved.paths)
    request = replace(request, job=job_id)
    found = walk(targets, gaps, origin, on_progress) if targets else []
    fetched = [(origin + name, data) for name, data in (*resolved.records, *(of_pods or ()))]
    records, local = _records(found, fetched, gaps, given, job_id, of_records or zone)
    ids = {job.id for job in records.jobs}
    named = sealed_name or named_by(targets, found, records.jobs, job_id)
    rows = tuple(masked(job) for job in choose(records.jobs, job_id, named))
    gaps += () if rows else [*_without_record(job_id, len(ids)), *named_otherwise(found, job_id)]
    gaps += shared(records.jobs, rows)
    unsure: list[Found] = []
    if job_id is not None or (rows and len(ids) > 1):
        found = of_job(found, rows, job_id or "", ids, unsure, gaps)
    logs = _logs([*found, *unsure], rows, gaps, on_progress, zone)
    found, logs = in_its_time(found, unsure, logs, rows, gaps)
    rows = as_of_its_list(rows, logs)
    given_to = assigned(m for *_, events in logs for m in events.matches)
    records = replace(records, addresses={**given_to, **records.addresses})
    records = seen_alive(records, rows, logs, None if request.end else request.prometheus)
    held, numbers = _numbers(request, found, gaps, records, rows, logs, origin)
    if of_pods is None and (told := pods_asked(numbers, rows, logs)) is not None:
        within = replace(request, hosts=request.hosts or told[1])
        return read(within, on_progress, given, origin, zone, of_records, told[:1])
    if zone is UTC and of_records is None:
        asked = None if request.start or request.end or origin else numbers.server
        if (told_zone := zone_of(found, rows, local, logs, numbers, asked)) is not None:
            as_told = of_logs(rows, logs, told_zone)
            moved = read(request, on_progress, given, origin, *as_told, of_pods)
            moved.gaps.extend(told_by(told_zone, found, asked))
            return moved
        if (both := apart(found, rows, local, records.now, logs, numbers, asked)) is not None:
            return read(request, on_progress, given, origin, both[1], both[0], of_pods)
    elif of_records is not None:
        gaps.append(Gap("time zone", f"records state none; their times are read as {of_records}"))
    ends = rows and (rows[-1].ended_at or records.now or rows[-1].scheduler != "kubernetes")
    if numbers.server and not (ends or request.end):
        gaps.append(ENDLESS)
    gaps += hold(rows, [e for *_, e in logs], numbers)
    dated(logs, numbers.window, when(rows, ()))
    gaps += of_this_run([e for file, _, e in logs if file.kind == LOG], rows, records.jobs)
    placed(logs, records.addresses,
           lambda: (*held, *(h for one in numbers.carried() for h in one.hosts)))  # fmt: skip
    _unread(found, gaps)
    dumps = _dumps(found, gaps)
    gaps[:] = _folded(list(dict.fromkeys(masked(gap) for gap in gaps)))
    return Reading(request, found, fetched, records, rows, logs, dumps, numbers, gaps, str(zone))


def _without_record(asked: str | None, listed: int) -> list[Gap]:
    if asked is not None:
        return [Gap(SCHEDULER, f"no record of job {asked} was found")]
    text = f"{listed} jobs are listed, and nothing says which this is"
    return [Gap(SCHEDULER, text)] if listed else []


def _numbers(
    request: Request,
    found: Sequence[Found],
    gaps: list[Gap],
    records: Records_,
    rows: Sequence[Job],
    logs: Sequence[tuple[Found, Setting, LogEvents]],
    origin: str,
) -> tuple[tuple[str, ...], Numbers]:
    """The hosts that the run is known to have held, and its metrics."""
    nodes = rows[-1].nodes if rows else ()
    held = request.hosts or nodes or told_nodes(m for *_, e in logs for m in e.matches)
    return held, Numbers(
        [f for f in found if f.kind == METRICS], gaps, held, records.addresses,
        server=request.prometheus, asked=(request.start, request.end), run=lived(rows, logs),
        recorded=recorded(rows) if held else OPEN, alive=alive(rows, records.now, logs),
        origin=origin,
    )  # fmt: skip


def _as_sealed(request: Request, on_progress: OnProgress | None) -> tuple[Request, str | None]:
    """The request of a capsule: what it was sealed for, where the caller asks for nothing else;
    and the job that the name of its target carried."""
    if len(request.targets) != 1 or not capsule.recognise(Path(request.targets[0])):
        return request, None
    tell = None if on_progress is None else partial(on_progress, "opening the capsule")
    asked = capsule.opened(Path(request.targets[0]), tell).asked
    meant = replace(
        request,
        job=request.job or asked.job,
        start=request.start or asked.start,
        end=request.end or asked.end,
        hosts=request.hosts or asked.hosts,
    )
    return meant, asked.named


def own(targets: tuple[str, ...], job: str | None = None) -> Own:
    """What records that lie with the targets say is the run's; nothing where they hold several
    jobs and none is named. Reads no log. Raises `UsageError`."""
    gaps: list[Gap] = []
    try:
        resolved = resolve(targets, job)
        found = walk(tuple(resolved.paths), gaps) if resolved.paths else []
        records, _ = _records(found, [*resolved.records], gaps, (), resolved.job)
        named = meant(tuple(resolved.paths), found, {j.id for j in records.jobs}, resolved.job)
        rows = choose(records.jobs, resolved.job, named)
    except ManyJobs:
        return Own()
    if not rows:
        return Own()
    start, end = when(rows, ())
    return Own(tuple(rows[-1].nodes), records.addresses, start, end)


def _records(
    found: Sequence[Found],
    fetched: Sequence[tuple[str, bytes]],
    gaps: list[Gap],
    given: Sequence[Records],
    asked: str | None,
    zone: tzinfo = UTC,
) -> tuple[Records_, bool]:
    """And whether those of files state no zone."""
    read: list[Records] = [*given]
    local = []
    for file in found:
        if file.kind != SCHEDULER:
            continue
        if file.size > RECORD_BYTES:
            gaps.append(
                Gap(SCHEDULER, f"{file.size} bytes are more than is read: {_ONE_JOB}", file.source)
            )
            continue
        try:
            record, assumed = _record(file.path.name, file.path.read_bytes(), file.source, zone)
            read.append(record)
            local.append(assumed)
            gaps += record.gaps
        except (OSError, FormatError) as fault:
            gaps.append(Gap(SCHEDULER, str(fault), file.source))
    for source, data in fetched:
        try:
            read.append(_record(source.removeprefix(BASELINE), data, source)[0])
            gaps += read[-1].gaps
        except FormatError as fault:
            gaps.append(Gap(SCHEDULER, str(fault), source))
    return with_listed(merge(read), found, asked), all(local) and len(local) == len(read)


def _record(name: str, data: bytes, source: str, zone: tzinfo = UTC) -> tuple[Records, bool]:
    form = record_format_of(name, data)
    if form is None:
        raise FormatError("it is no scheduler record that is known")
    assumed = getattr(form, "ZONE_ASSUMED", False)
    records = parsed(form, data, source)
    return (in_zone(records, zone) if assumed else records), assumed


def _logs(
    found: Sequence[Found],
    rows: Sequence[Job],
    gaps: list[Gap],
    on_progress: OnProgress | None,
    zone: tzinfo,
) -> list[tuple[Found, Setting, LogEvents]]:
    files = last_of_each(filter(told_in_lines, found))
    total = sum(file.size for file in files)
    book = catalogue() if files else None
    names = {
        f.source: place_of_name(f.source.removeprefix(BASELINE)) or NamePlace() for f in files
    }
    names |= numbered(files, names)
    many = bool(rows) and len(rows[-1].nodes) > 1
    hosts = {name.host for name in names.values() if name.host}
    year = next((r.started_at.year for r in reversed(rows) if r.started_at), None)
    tasks = []
    for file in files:
        name = names[file.source]
        attempt = name.attempt or (len(rows) - 1 if len(rows) > 1 else 0)
        setting = Setting(name, year, not many and len(hosts) <= 1, attempt, zone=zone)
        tasks.append(Task(file.path, file.source, setting, file.size))
    done = 0
    read: list[tuple[Found, Setting, LogEvents]] = []
    results = read_all(tasks, book) if book is not None else ()
    for file, task, events in zip(files, tasks, results, strict=True):
        done += file.size
        if on_progress is not None:
            on_progress("reading logs", done, total)
        if isinstance(events, SourceError):
            gaps.append(Gap(file.kind, str(events), file.source))
            continue
        if file.kind == EVENTS:  # its tags are data: nothing else was said in it
            events.matches, events.crashes, events.exits = [], [], []
        elif file.source.endswith(".jsonl"):
            events.keep_steps()
        gaps += events.gaps
        read.append((file, task.setting, events))
    gaps += not_beside_a_log([(file.source, events) for file, _, events in read])
    joined(read)
    return read


def _dumps(found: Sequence[Found], gaps: list[Gap]) -> list[Dump]:
    """Flight-recorder dumps; one that cannot be read, or whose rank is not known, is a gap."""
    read: list[Dump] = []
    for file in (one for one in found if one.kind == DUMPS):
        if file.size > DUMP_BYTES:
            gaps.append(Gap(DUMPS, f"{file.size} bytes are more than is read", file.source))
            continue
        try:
            dump = parse_dump(file.path.read_bytes(), file.source)
        except (OSError, FormatError) as fault:
            gaps.append(Gap(DUMPS, str(fault), file.source))
            continue
        if dump.rank is None:
            gaps.append(Gap(DUMPS, "its name does not tell whose dump it is", file.source))
        read.append(dump)
    return read


def _unread(found: Sequence[Found], gaps: list[Gap]) -> None:
    """What lies there in no format that is known, said so."""
    gaps += [
        Gap(
            "every file",
            "a capsule within a folder: name it as the TARGET"
            if capsule.recognise(file.path)
            else "binary, of no format that is known",
            file.source,
        )
        for file in found
        if file.kind == BINARY
    ]


def _folded(gaps: Sequence[Gap]) -> list[Gap]:
    """Gaps that say the same of many files, the first of them and how many more."""
    said: dict[tuple[str, str], list[Gap]] = {}
    for gap in gaps:
        said.setdefault((gap.need, gap.reason), []).append(gap)
    folded = []
    for (need, reason), same in said.items():
        folded += same[:ALIKE]
        if len(same) > ALIKE:
            folded.append(Gap(need, reason, f"{len(same) - ALIKE} more"))
    return folded


def _facts(read: Reading) -> Facts:
    request, found, records, rows = read.request, read.found, read.records, read.rows
    logs, gaps, numbers = read.logs, read.gaps, read.numbers
    if any(events.zone_assumed for _, _, events in logs):
        gaps.append(Gap("time zone", f"log lines state none; their times are read as {read.zone}"))
    tracks = telling([t for _, _, events in logs for t in events.tracks.values()])
    fold = kept_to(tracks, logs, fold_attempts(logs, len(rows)))
    kernel = frozenset(file.source for file, _, _ in logs if file.kind == KERNEL)
    matches = of_rows((e.matches for *_, e in logs), rows, kernel, fold)
    crashes = [moved(c, fold) for _, _, events in logs for c in events.crashes]
    exits = [moved(e, fold) for _, _, events in logs for e in events.exits]
    markers = [moved(k, fold) for _, _, events in logs for k in events.markers]
    for track in tracks:
        track.attempts = array("h", [fold.get((track.source, n), n) for n in track.attempts])
    reader = LineReader(found, gaps)
    others = set(map(id, of_other_jobs(matches, rows, kernel, reader.lines)))
    matches = in_their_try([m for m in matches if id(m) not in others], tracks)
    job = rows[-1] if rows else None
    tries = sorted(set(fold.values()) or {0})
    told = matches, crashes, exits, tracks, markers
    named = request.hosts or told_nodes(matches) or nodes_of_its_pods(
        records.addresses, matches, (file.path.stem for file, *_ in logs))  # fmt: skip
    earlier = partial(how_a_try_ended, told)
    length = {file.source: events.lines for file, _, events in logs}
    ended = how_it_ended(job, *told, kernel, tries[-1], length)
    seen = [e.last_seen for _, _, e in logs if e.last_seen] + [
        r.ended_at for r in rows if r.ended_at
    ]
    nows = [t for t in (*seen, records.now, numbers.end) if t is not None]
    return Facts(
        targets=tuple(map(mask, request.targets)),
        files=_files_read(found, logs, numbers.server),
        matches=matches,
        crashes=crashes,
        exits=exits,
        tracks=tracks,
        markers=markers,
        jobs=rows,
        dumps=tuple(read.dumps),
        node_events=_of_nodes(records, rows),
        attempts=attempts(rows, matches, tracks, ended, tries, earlier, named),
        gaps=gaps,
        now=max(nows, default=None),
        read_line=reader,
        read_lines=reader.lines,
        ask=numbers.ask,
        window=numbers.window,
        measured=numbers.measured,
        last_lines={e.source: e.last_line for _, _, e in logs if e.last_line},
        last_seen={e.source: e.last_seen for _, _, e in logs if e.last_seen},
        end_seen=shows_end(job, ended, *told, tries[-1]),
        whole_logs=not any(gap.need == LOG for gap in gaps),
        catalogue=catalogue().digest if logs else None,
        nodes=records.addresses,
    )


def _files_read(
    found: Sequence[Found],
    logs: Sequence[tuple[Found, Setting, LogEvents]],
    server: str | None,
) -> list[FileRead]:
    lines = {file.source for file, *_ in logs if not holds_output(file)}
    stores = (f for f in found if f.kind in (SCHEDULER, METRICS, DUMPS) and f.source not in lines)
    return [
        *(_file_read(file, setting, events) for file, setting, events in logs),
        *(FileRead(f.source, f.kind, 0, f.size) for f in stores),
        *([FileRead(server, METRICS, 0, 0)] if server else []),
    ]


def _file_read(file: Found, setting: Setting, events: LogEvents) -> FileRead:
    name = setting.name
    place = Place(host=name.host, rank=name.rank, task=name.task)
    kind = LOG if holds_output(file) else file.kind
    size = events.lines, events.size
    return FileRead(file.source, kind, *size, place, setting.attempt, events.kept)


def _of_nodes(records: Records_, rows: Sequence[Job]) -> list[NodeEvent]:
    nodes = {node for job in rows for node in job.nodes}
    return [masked(e) for e in records.node_events if not nodes or e.host in nodes]
