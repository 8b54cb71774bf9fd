"""Which job logs of a folder are of, and which files of one that holds several are one job's."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from flatline.collect.events import LogEvents
from flatline.collect.files import Found
from flatline.collect.numbered import numbered
from flatline.errors import SourceError
from flatline.facts import EVENTS, KERNEL, LOG, SCHEDULER
from flatline.logs.places import NamePlace, place_of_name
from flatline.logs.reading import read_head
from flatline.model import Gap, Job
from flatline.rank_hosts import named_after

S = TypeVar("S")
MOST_LOGS, HEAD_BYTES = 64, 16_384
"""Looked at for the job they are of: a program prints its surroundings first."""
LEAST_DIGITS = 4
SLACK = timedelta(minutes=2)
"""By which clocks of hosts and of the controller differ."""
LISTED_LATE = 0.05
"""Of its time, by which a job's log is shorter or longer than the list says that it had run: a
program prints its first line some minutes in."""
ZONE_STEP, ZONES = timedelta(minutes=15), 56
"""Zones differ by quarters of an hour, from UTC by fourteen hours at most."""
_STATED = re.compile(
    rb"((?i:prev\w*|parent|after\w*|last|old|chain\w*)\W{1,3})?\bSLURM_JOB_?ID\b['\"]?\s{0,3}[=:]\s{0,3}['\"]?(\d{1,12})\b"
)
_ID = r"\d+(?:[_/.-]\d+)?"
"""A job's number, or an array task's."""


def meant(
    targets: Sequence[str], found: Sequence[Found], known: Set[str], job_id: str | None
) -> str | None:
    """The job that the target's own name carries or, of several, that its logs are of."""
    named = named_by(targets)
    if job_id is not None or named in known or len(known) <= 1:
        return named
    return told_by_logs(found, known)


def named_by(targets: Sequence[str]) -> str | None:
    """The job id a single target's own name carries, as in `outputs/8308` or `slurm-8308.out`."""
    if len(targets) != 1:
        return None
    numbers = re.findall(r"\d+(?:_\d+)?", Path(targets[0]).resolve().name)
    return numbers[0] if len(numbers) == 1 else None


def told_by_logs(found: Sequence[Found], known: Set[str]) -> str | None:
    """The one job of several `known` that the logs, or files of records, are named after or, where
    none is, say at their beginning that they are of; None where they tell of several."""
    told = [file for file in found if file.kind in (LOG, SCHEDULER)]
    logs = [file for file in told if file.kind == LOG][:MOST_LOGS]
    named = {job for file in told[:MOST_LOGS] for job in known if _is_named(file.source, job)}
    if named:
        return named.pop() if len(named) == 1 else None
    said = {told for file in logs for told in said_by(file)} & known
    return said.pop() if len(said) == 1 else None


def _is_named(source: str, job: str) -> bool:
    """By a name that Slurm gives, or one whose last part is a number as long as jobs have."""
    name, number = source.rpartition("/")[2], re.escape(job).replace("_", "[_.-]")
    least = len(job) >= LEAST_DIGITS
    return bool(
        re.search(rf"(?i)(?:^|[._-])(?:slurm|job|jobid)[._-]?{number}(?![0-9A-Za-z])", name)
        or (least and re.search(rf"(?:^|[._-]){number}\.(?:out|err|log|txt)$", name))
    )


def said_by(file: Found) -> set[str]:
    """The jobs that a log says at its beginning that it is of, by its environment."""
    try:
        head = read_head(file.path, HEAD_BYTES)
    except (OSError, SourceError):  # told of where it is read
        return set()
    return {told.decode() for other, told in _STATED.findall(head) if not other}


def of_job(
    found: list[Found],
    rows: Sequence[Job],
    asked: str,
    known: set[str],
    unsure: list[Found] | None = None,
    gaps: list[Gap] | None = None,
) -> list[Found]:
    """
    The files of one job where a folder holds several.

    Logs named after the job are its own; so are those named after a rank, a task or one of its
    hosts, or that say which process wrote each, and after no job, unless something in
    the folder is named after another job: another of those that are `known` by records, or a log
    that differs from one of its own by that number alone.  A log of another name there may be
    anybody's: it is `unsure`.  Where none is named after the job, all
    are that are named after no other.  A kernel log
    speaks of a host, whoever ran there: it is kept unless it is named after another job.  Records
    and metrics are kept: their rows, as a kernel's lines, are told apart later.
    """

    job = rows[-1].id if rows else asked
    hosts, others = rows[-1].nodes if rows else (), known - {job}

    def named(job_id: str) -> str:
        return rf"(?<!\d){re.escape(job_id).replace('_', '[_/.-]')}(?!\d)"

    def names(file: Found, job_id: str) -> bool:
        return re.search(named(job_id), file.source) is not None

    logs = [file for file in found if file.kind in (LOG, EVENTS)]
    own = {id(file) for file in found if names(file, job)}
    alike = {shape for file in logs for shape in _without(named(job), file.source)}
    strange = {id(file) for file in found if any(names(file, other) for other in others)}
    strange |= {id(file) for file in logs if not alike.isdisjoint(_without(_ID, file.source))}
    strange -= own
    told = numbered(logs, {file.source: NamePlace() for file in logs})
    several = any(id(file) in strange for file in found if file.kind in (LOG, EVENTS, KERNEL))

    def keep(file: Found) -> bool:
        if file.kind in (LOG, EVENTS) and alike and id(file) not in own:
            placed = place_of_name(file.source) or named_after(file.source, hosts)
            said = placed is not None or file.source in told
            if unsure is not None and file.kind == LOG and not (several or said):
                unsure.append(file)
            elif gaps is not None and several and id(file) not in strange:
                gaps.append(_left(file))
            return not several and said
        return file.kind not in (LOG, KERNEL, EVENTS) or id(file) not in strange

    return list(filter(keep, found))


def _left(file: Found) -> Gap:
    why = "nothing says that it is this job's: left out; named itself as a target, it is read"
    return Gap(LOG, why, file.source)


Log = tuple[Found, S, LogEvents]


def in_its_time(
    found: Sequence[Found],
    unsure: Sequence[Found],
    logs: Sequence[Log[S]],
    rows: Sequence[Job],
    gaps: list[Gap],
) -> tuple[list[Found], list[Log[S]]]:
    """The files with those of which it was unsure, and the logs, where what they date shows them
    to be the job's: with steps only where no log that is surely its own has any."""
    found, logs = _without_earlier(found, logs, rows, gaps)
    stepless = not any(events.tracks for file, _, events in logs if file not in unsure)
    kept = [one for one in logs
            if one[0] not in unsure or _in_its_time(one[2], rows, stepless=stepless)]  # fmt: skip
    read = {id(file) for file, *_ in kept}
    gaps += (_left(file) for file in unsure if id(file) not in read)
    return [*found, *(file for file, *_ in kept if file in unsure)], kept


def _without_earlier(
    found: Sequence[Found], logs: Sequence[Log[S]], rows: Sequence[Job], gaps: list[Gap]
) -> tuple[Sequence[Found], Sequence[Log[S]]]:
    """Without logs that were over before the job began, where those named after it show no step:
    what the last run left there.  A run with steps may have begun with that one's."""
    own = [events for file, _, events in logs
           if rows and file.kind == LOG and _is_named(file.source, rows[-1].id)]  # fmt: skip
    if not own or any(events.tracks for events in own):
        return found, logs
    over = {id(file): file.source for file, _, events in logs
            if file.kind == LOG and _was_over(events, rows)
            and not _is_named(file.source, rows[-1].id)}  # fmt: skip
    gaps += (Gap(LOG, "all that it dates was over before the job began: left out", source)
             for source in over.values())  # fmt: skip
    return ([file for file in found if id(file) not in over],
            [one for one in logs if id(one[0]) not in over])  # fmt: skip


def _was_over(events: LogEvents, rows: Sequence[Job]) -> bool:
    """Whether all dates of a log lie before the job's time by its record, and no zone would lay
    them within it: a container's clock may be UTC's where the record is local."""
    began = min((row.started_at for row in rows if row.started_at), default=None)
    ended, first, last = rows[-1].ended_at, events.first_seen, events.last_seen
    if began is None or ended is None or first is None or last is None or last > began - SLACK:
        return False
    offsets = (n * ZONE_STEP for n in range(1, ZONES + 1))
    return not any(began - SLACK <= first + at and last + at <= ended + SLACK for at in offsets)


def _in_its_time(events: LogEvents, rows: Sequence[Job], *, stepless: bool) -> bool:
    """Whether a log that has steps, or tells of the job or of a node of it, has dates, and all of
    them lie within the job's time by its record: a log of no name is the job's then."""
    first, last = events.first_seen, events.last_seen
    if not rows or first is None or last is None:
        return False
    began = _began(rows, first, last)
    ended = rows[-1].ended_at
    if began is None:
        return False
    job = rows[-1]
    if ended is None and job.disposition != "running":
        return False
    named = any(m.groups.get("job") == job.id or m.cite.place.host in job.nodes
                for m in events.matches)  # fmt: skip
    if not ((events.tracks and stepless) or named):
        return False
    return began - SLACK <= first and (ended is None or last <= ended + SLACK)


def _began(rows: Sequence[Job], first: datetime, last: datetime) -> datetime | None:
    """When a job began: by its record, or where a list alone tells how long it had run, with the
    first line of a log that is about as long, of a run that ends where that list was made."""
    told = min((row.started_at for row in rows if row.started_at), default=None)
    ran = rows[-1].listed_after_s
    if told is not None or not rows[-1].listed or ran is None:
        return told
    short = ran - (last - first).total_seconds()
    return first if abs(short) <= max(SLACK.total_seconds(), ran * LISTED_LATE) else None


def _without(pattern: str, source: str) -> list[str]:
    """The name with each place that matches left out in turn."""
    return [
        f"{source[: found.start()]}#{source[found.end() :]}"
        for found in re.finditer(pattern, source)
    ]
