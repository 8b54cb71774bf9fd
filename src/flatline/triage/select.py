"""
Which jobs ended in a window of time, and where their logs lie: asked of Slurm, or read from files.

From files, the paths in their records are not opened unless the caller says so: a record from
elsewhere could name any file of the user who runs this.  Logs are then told by the job's id in
their names.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import CompletedProcess

from flatline.collect.masking import masked
from flatline.collect.merging import RUNNING, Records_, merge
from flatline.errors import FormatError, SourceError, SourceUnreachable, UsageError
from flatline.model import Gap, Job, Records
from flatline.parsers import parsed, record_format_of
from flatline.parsers._slurm import BASES, COMPACT, FLAGS, disposition
from flatline.parsers.topology import parse_topology, recognise_topology
from flatline.sources import slurm
from flatline.triage import Ask, Ended, Selected

WINDOW = "24h"
"""How far back a live Slurm is asked where nobody says."""
SAVED = "sacct -a -D -S now-24hours --json > sacct.json, then flatline jobs --from sacct.json"
MOST_FILES = 200_000
MOST_LOGS = 1024
RECORD_BYTES = 1 << 30
FOLDERS = ("outputs", "logs")
SCHEDULER = "scheduler records"

_SPAN = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*(s|min|m|h|d|w)")
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_EPOCH = re.compile(r"\d{9,11}(\.\d{1,9})?")
_USER = re.compile(r"[\w.][\w.@-]{0,63}")
_ID = r"(\d{1,12}(?:_\d{1,12})?(?:\+\d{1,6})?)"
_END = r"(?:\.[A-Za-z]\w{0,7}){0,3}$"
_DATE = re.compile(r"(?<!\d)\d{2,4}[-_.]\d\d[-_.]\d\d(?!\d)")
_NAMED = (
    re.compile(rf"{_ID}(?:$|[-_.])"),  # 8308_0.log
    re.compile(rf"(?i)(?:.*[-_.])?(?:slurm|job|jobid)[-_.]?{_ID}(?!\d)"),
    re.compile(rf".*[-_]{_ID}{_END}"),  # train-8308.out, but not n2.log
    re.compile(rf".*[-_.]{_ID}[-_.]\d{{1,5}}{_END}"),  # train-8308-0.out: a rank or node behind it
    re.compile(rf".*\.[oe]{_ID}$"),
)
"""Where a job's id stands in the name of its log; never a part of a date or of a host's name."""


def select(ask: Ask) -> Selected:
    """Raises `UsageError` where the call is wrong, `SourceError` where Slurm does not answer."""
    _checked(ask)
    return _from_files(ask) if ask.sources else _live(ask)


def instant_or_span(said: str, now: datetime | None, option: str) -> datetime:
    """`24h` before now, or an instant: ISO 8601 (UTC where no zone is said) or epoch seconds."""
    word = said.strip()
    found = _SPAN.fullmatch(word)
    try:
        if found is not None:
            if now is None:
                raise UsageError(
                    f"{option} {said}: the records say no time to count back from; give an instant"
                )
            return now - timedelta(seconds=float(found[1]) * _UNITS[found[2]])
        if _EPOCH.fullmatch(word):
            return datetime.fromtimestamp(float(word), UTC)
        at = datetime.fromisoformat(word)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, OSError) as fault:
        raise UsageError(
            f"{option} {said!r} is no time; give a span back from now, as 90min, 24h, 7d, or an"
            " instant in ISO 8601, as 2026-03-01T04:00Z (UTC where no zone is said)"
        ) from fault


def _not_empty(since: datetime | None, last: datetime | None) -> None:
    if since and last and since >= last:
        raise UsageError(f"the window is empty: it begins at {since} and ends at {last}")


def _checked(ask: Ask) -> None:
    for user in ask.users:
        if not _USER.fullmatch(user):
            raise UsageError(f"--user {user[:40]!r} is no user's name")
    for state in ask.states:
        if _state(state) not in {**BASES, **FLAGS}:
            known = ", ".join(sorted(BASES))
            raise UsageError(f"--state {state!r} is none of Slurm's: {known}")


def _state(word: str) -> str:
    return COMPACT.get(word.upper(), word.upper())


# --- a live Slurm -----------------------------------------------------------------------------


def _live(ask: Ask) -> Selected:
    if not slurm.available():
        raise UsageError(
            f"no Slurm is installed here to ask about jobs; where there is one, do {SAVED}"
        )
    now = datetime.now(UTC).replace(microsecond=0)
    since = instant_or_span(ask.since or WINDOW, now, "--since")
    until = instant_or_span(ask.until, now, "--until") if ask.until else None
    _not_empty(since, until or now)
    try:
        fetched = slurm.fetch_window(since, until, ask.users, ask.everyone)
    except SourceError as fault:
        raise UsageError(f"{fault}; or have it saved elsewhere: {SAVED}") from fault
    records = merge([_parsed(fetched.name, fetched.data, fetched.name)])
    ended = _chosen(records, ask, since, until)
    doubtful = [e.job for e in ended if e.job.disposition != "completed"]
    failures: list[SourceError] = []
    nodes = slurm.fetch_nodes(doubtful, failures=failures)
    beside = merge([_parsed(item.name, item.data, item.name) for item in nodes])
    topology = slurm.fetch_topology()
    return Selected(
        ended,
        beside.node_events,
        parse_topology(topology) if topology else (),
        since,
        until or now,
        now,
        tuple(Gap(SCHEDULER, str(fault)) for fault in failures),
        _found_live,
    )


def _parsed(name: str, data: bytes, source: str) -> Records:
    form = record_format_of(name, data)
    try:
        return parsed(form, data, source) if form is not None else Records()
    except FormatError:
        return Records()


def _found_live(ended: Ended) -> Ended:
    logs, looked = slurm.find_logs(_fullest(ended.rows), [Path.cwd()])
    return replace(ended, logs=tuple(logs), looked=tuple(looked))


def _fullest(jobs: Sequence[Job]) -> Job:
    return max(jobs, key=lambda job: sum(map(bool, (job.std_out, job.work_dir, job.submit_line))))


# --- files ------------------------------------------------------------------------------------


def _from_files(ask: Ask) -> Selected:
    gaps: list[Gap] = []
    read: list[Records] = []
    leaves: list[tuple[str, tuple[str, ...]]] = []
    for path in _record_files(ask.sources, gaps):
        found = _read(path, gaps, named=str(path) in ask.sources)
        if isinstance(found, Records):
            read.append(found)
        else:
            leaves += found
    records = merge(read)
    if not records.jobs:
        where = ", ".join(ask.sources)
        why = f" ({gaps[0].reason})" if gaps else ""
        raise UsageError(
            f"{where}: no accounting of jobs was found there{why}; --from takes what `sacct"
            " --json`, `sacct -P` or slurmrestd printed, or a folder that holds it"
        )
    since = instant_or_span(ask.since, records.now, "--since") if ask.since else None
    until = instant_or_span(ask.until, records.now, "--until") if ask.until else None
    _not_empty(since, until or records.now)
    ended = _chosen(records, ask, since, until)
    known = {job.id for job in records.jobs}
    index = log_index([*_log_roots(ask), *ask.logs], known, ask.sources)

    def find(one: Ended) -> Ended:
        logs = index.get(one.job.id, [])
        if not logs and ask.follow:
            logs, looked = slurm.find_logs(_fullest(one.rows), [Path.cwd()], _no_commands)
            return replace(one, logs=tuple(logs), looked=tuple(looked))
        return replace(one, logs=tuple(logs[:MOST_LOGS]))

    return Selected(ended, records.node_events, tuple(leaves), since, until or records.now,
                    records.now, tuple(gaps), find)  # fmt: skip


def _no_commands(argv: Sequence[str]) -> CompletedProcess[bytes]:
    raise SourceUnreachable("a file is read, Slurm is not asked")


def _record_files(sources: Sequence[str], gaps: list[Gap]) -> Iterator[Path]:
    for source in sources:
        root = Path(source)
        if root.is_dir():
            yield from (path for path, _ in _below(root, MOST_FILES, gaps=gaps))
        elif root.exists():
            yield root
        else:
            raise UsageError(f"--from {source!r} does not exist; name a file that sacct printed")


def _read(
    path: Path, gaps: list[Gap], named: bool
) -> Records | tuple[tuple[str, tuple[str, ...]], ...]:
    """What one file says; a file of a folder that is of no record's format says nothing."""
    try:
        with path.open("rb") as file:
            head = file.read(65_536)
            if recognise_topology(head):
                return parse_topology(head + file.read(RECORD_BYTES))
            form = record_format_of(path.name, head)
            if form is not None:
                return parsed(form, head + file.read(RECORD_BYTES), str(path))
    except (OSError, FormatError) as fault:
        said = fault.strerror if isinstance(fault, OSError) else None
        gaps.append(Gap(SCHEDULER, said or str(fault), str(path)))
        return Records()
    if named:
        gaps.append(Gap(SCHEDULER, "it is no record of Slurm's that is known", str(path)))
    return Records()


def _log_roots(ask: Ask) -> list[str]:
    """Folders named, and beside a file named the folder it lies in."""
    return [s if Path(s).is_dir() else str(Path(s).parent) for s in ask.sources]


def _below(
    root: Path, most: int, deep: bool = True, gaps: list[Gap] | None = None
) -> Iterator[tuple[Path, str]]:
    """Regular files below a folder with their path in it; links are not followed."""

    def refused(fault: OSError) -> None:
        if gaps is not None:
            gaps.append(Gap("every folder", fault.strerror or str(fault), fault.filename))

    count = 0
    for folder, folders, names in os.walk(root, onerror=refused):
        folders.sort()
        if not deep:
            level = Path(folder) == root
            folders[:] = [f for f in folders if level and (f in FOLDERS or any(_ids(f)))]
        for name in sorted(names):
            path = Path(folder, name)
            if _regular(path):
                count += 1
                if count > most:
                    return
                yield path, path.relative_to(root).as_posix()


def _regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _ids(name: str) -> Iterator[str]:
    """Ids of jobs that a file or folder may be named after, the fullest reading first."""
    undated = _DATE.sub("@", name)
    for pattern in _NAMED:
        found = pattern.match(undated)
        if found is not None:
            yield found[1]
            yield found[1].partition("_")[0]


def log_index(
    roots: Iterable[str], known: set[str], sources: Sequence[str] = ()
) -> dict[str, list[Path]]:
    """Logs by the job they are named after. A folder that was named is searched whole; one that
    only holds a named file at its top, in `outputs`, `logs`, and folders named after a job."""
    index: dict[str, dict[Path, None]] = defaultdict(dict)
    records = {Path(source).resolve() for source in sources}
    for root in dict.fromkeys(map(Path, roots)):
        deep = str(root) not in {str(Path(s).parent) for s in sources if not Path(s).is_dir()}
        for path, relative in _below(root, MOST_FILES, deep):
            if path.resolve() in records:
                continue
            named = (i for part in reversed(relative.split("/")) for i in _ids(part))
            job_id = next((i for i in named if i in known), None)
            if job_id is not None:
                index[job_id].setdefault(path)
    return {job_id: list(paths) for job_id, paths in index.items()}


# --- which of them ----------------------------------------------------------------------------


def _chosen(
    records: Records_, ask: Ask, since: datetime | None, until: datetime | None
) -> tuple[Ended, ...]:
    """Jobs whose last try ended in the window and that the filters let through, latest first."""
    tries: dict[str, list[Job]] = defaultdict(list)
    for job in records.jobs:
        tries[job.id].append(masked(job))
    kept = []
    for rows in tries.values():
        last = rows[-1]
        if last.disposition in RUNNING or last.disposition == "unknown" or last.ended_at is None:
            continue
        if (since and last.ended_at < since) or (until and last.ended_at > until):
            continue
        if _wanted(last, ask):
            kept.append(Ended(tuple(rows)))
    epoch = datetime.fromtimestamp(0, UTC)
    return tuple(sorted(kept, key=lambda e: e.job.ended_at or epoch, reverse=True))


def _wanted(job: Job, ask: Ask) -> bool:
    return (
        (not ask.users or job.user in ask.users)
        and (not ask.partitions or job.partition in ask.partitions)
        and (not ask.names or any(fnmatch.fnmatchcase(job.name or "", n) for n in ask.names))
    )


def shown(job: Job, states: Sequence[str]) -> bool:
    """Whether the caller asked to see jobs of this state; those left out still count as
    controls."""
    return not states or job.disposition in {disposition([_state(word)]) for word in states}
