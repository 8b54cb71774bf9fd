"""
Kernel lines about the processes of other jobs.

A kernel log speaks of the whole host.  The memory cgroup of an out-of-memory kill carries the id
of the Slurm job it belongs to, in the line of the kill itself or in the report around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from flatline.model import Job, Match

REPORT_LINES = 80
"""How far the cgroup of a killed process stands before the line of its kill: between them the
kernel prints the memory it counted and the tasks of the cgroup."""
_JOB = re.compile(r"/job_(\d{1,10})(?=[/,\s:]|$)")
_OF_VICTIM = re.compile(r"task_memcg=([^,\s]+)")
_REPORT = re.compile(r"oom-kill:constraint=|^.{0,80}Task in /|Memory cgroup stats for /")
_BEGINS = re.compile(r"invoked oom-killer")
_PID = re.compile(r"(?:Kill(?:ed)? process |reaped process |,pid=)(\d{1,10})\b")
ReadLines = Callable[[str, int, int], Sequence[str]]


def of_other_jobs(
    matches: Sequence[Match], rows: Sequence[Job], kernel: frozenset[str], lines: ReadLines
) -> list[Match]:
    """
    The matches that concern a job that is not this one.

    Nothing where the job's id is not the number its cgroups carry, as with the tasks of an
    array, whose records name the array.
    """
    own = {job.id for job in rows}
    if not own or not all(job.isdigit() for job in own):
        return []
    return [
        match
        for match in matches
        if match.cite.source in kernel
        and "oom-kill" in match.signature.tags
        and (owner := _owner(match, lines)) is not None
        and owner not in own
    ]


def _owner(match: Match, lines: ReadLines) -> str | None:
    """The job whose process was killed, by the report the line stands in."""
    text, line = match.cite.text, match.cite.line
    if (job := _named(text)) is not None:
        return job
    if _BEGINS.search(text):
        around = lines(match.cite.source, line + 1, REPORT_LINES)
    else:
        first = max(1, line - REPORT_LINES)
        around = tuple(reversed(lines(match.cite.source, first, line - first)))
    killed = _PID.search(text)
    for other in around:
        pid = _PID.search(other)
        if _BEGINS.search(other) or (pid and killed and pid[1] != killed[1]):
            return None
        if _REPORT.search(other):
            return _named(other)
    return None


def _named(text: str) -> str | None:
    victim = _OF_VICTIM.search(text)
    found = _JOB.search(victim[1] if victim else text)
    return found[1] if found else None
