"""Which job logs of a folder are of, and which files of one that holds several are one job's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set

from flatline.collect.files import Found
from flatline.collect.numbered import numbered
from flatline.errors import SourceError
from flatline.facts import EVENTS, KERNEL, LOG
from flatline.logs.places import NamePlace, place_of_name
from flatline.logs.reading import read_head
from flatline.model import Job
from flatline.rank_hosts import named_after

MOST_LOGS, HEAD_BYTES = 64, 16_384
"""Looked at for the job they are of: a program prints its surroundings first."""
LEAST_DIGITS = 4
_STATED = re.compile(
    rb"((?i:prev\w*|parent|after\w*|last|old|chain\w*)\W{1,3})?\bSLURM_JOB_?ID\b['\"]?\s{0,3}[=:]\s{0,3}['\"]?(\d{1,12})\b"
)
_ID = r"\d+(?:[_/.-]\d+)?"
"""A job's number, or an array task's."""


def told_by_logs(found: Iterable[Found], known: Set[str]) -> str | None:
    """The one job of several `known` that the logs are named after or, where none is, say at their
    beginning that they are of; None where they tell of several."""
    logs = [file for file in found if file.kind == LOG][:MOST_LOGS]
    named = {job for file in logs for job in known if _is_named(file.source, job)}
    if named:
        return named.pop() if len(named) == 1 else None
    said = {told for file in logs for told in _said(file)} & known
    return said.pop() if len(said) == 1 else None


def _is_named(source: str, job: str) -> bool:
    """By a name that Slurm gives, or one whose last part is a number as long as jobs have."""
    name, number = source.rpartition("/")[2], re.escape(job).replace("_", "[_.-]")
    least = len(job) >= LEAST_DIGITS
    return bool(
        re.search(rf"(?i)(?:^|[._-])(?:slurm|job|jobid)[._-]?{number}(?![0-9A-Za-z])", name)
        or (least and re.search(rf"(?:^|[._-]){number}\.(?:out|err|log|txt)$", name))
    )


def _said(file: Found) -> set[str]:
    try:
        head = read_head(file.path, HEAD_BYTES)
    except (OSError, SourceError):  # told of where it is read
        return set()
    return {told.decode() for other, told in _STATED.findall(head) if not other}


def of_job(found: list[Found], rows: Sequence[Job], asked: str, known: set[str]) -> list[Found]:
    """
    The files of one job where a folder holds several.

    Logs named after the job are its own; so are those named after a rank, a task or one of its
    hosts, or that say which process wrote each, and after no job, unless something in
    the folder is named after another job: another of those that are `known` by records, or a log
    that differs from one of its own by that number alone.  Where none is named after the job, all
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
            return not several and (placed is not None or file.source in told)
        return file.kind not in (LOG, KERNEL, EVENTS) or id(file) not in strange

    return list(filter(keep, found))


def _without(pattern: str, source: str) -> list[str]:
    """The name with each place that matches left out in turn."""
    return [
        f"{source[: found.start()]}#{source[found.end() :]}"
        for found in re.finditer(pattern, source)
    ]
