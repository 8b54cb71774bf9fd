"""
Kernel lines about the processes of other jobs, and of hosts the job did not hold.

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
_DIGITS = re.compile(r"\d+")
_BEGINS = re.compile(r"invoked oom-killer")
_PID = re.compile(r"(?:Kill(?:ed)? process |reaped process |,pid=)(\d{1,10})\b")
_SPEAKER = re.compile(r"^.{8,40}? (\S{1,253}) kernel: ")
SPEAKERS_LINES = 2_000
"""Of a log of several hosts, in which each is heard soon."""
ReadLines = Callable[[str, int, int], Sequence[str]]


def of_other_jobs(
    matches: Sequence[Match], rows: Sequence[Job], kernel: frozenset[str], lines: ReadLines
) -> list[Match]:
    """
    The matches that concern a job or a host that is not this one's.

    An id that is not the number its cgroups carry, as with the tasks of an array, whose records
    name the array, tells nothing of their owner.
    """
    elsewhere = _of_other_hosts(matches, rows, kernel, lines)
    own = {job.id for job in rows}
    if not own or not all(job.isdigit() for job in own):
        return elsewhere
    return elsewhere + [
        match
        for match in matches
        if match.cite.source in kernel
        and "oom-kill" in match.signature.tags
        and (owner := _owner(match, lines)) is not None
        and owner not in own
    ]


def _of_other_hosts(
    matches: Sequence[Match], rows: Sequence[Job], kernel: frozenset[str], lines: ReadLines
) -> list[Match]:
    """Those of hosts that are none of the job's nodes and are named as they are: a host of another
    scheme may be a node by its other name, but not in a log that calls nodes by their own."""
    nodes = {_short(node) for job in rows for node in job.nodes}
    schemes = {_DIGITS.sub("#", node) for node in nodes}
    strange = [
        (match, _short(host))
        for match in matches
        if match.cite.source in kernel
        and (host := match.cite.place.host) is not None
        and nodes
        and _short(host) not in nodes
    ]
    sources = {
        match.cite.source for match, host in strange if _DIGITS.sub("#", host) not in schemes
    }
    calls = {source for source in sources if _speakers(lines(source, 1, SPEAKERS_LINES)) & nodes}
    return [
        match
        for match, host in strange
        if _DIGITS.sub("#", host) in schemes or match.cite.source in calls
    ]


def _speakers(lines: Sequence[str]) -> set[str]:
    """The hosts whose kernels the lines of a syslog name."""
    return {_short(found[1]) for line in lines if (found := _SPEAKER.search(line))}


def _short(host: str) -> str:
    return host.partition(".")[0].lower()


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
