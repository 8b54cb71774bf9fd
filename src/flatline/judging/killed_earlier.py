"""A process whose end is told of late: without a time though a kernel dates it, or below a line on
the kill by the daemon of its step."""

from __future__ import annotations

from datetime import datetime
from operator import itemgetter

from flatline.facts import Facts
from flatline.model import LogCite, Place, ProcessExit

STEP_DAEMON = "slurm-oom-kill"
"""slurmstepd counts the kernel's kills once the tasks that it had are over."""


def killed_earlier(facts: Facts, event: ProcessExit, other: LogCite) -> bool:
    """Whether the kernel of its host killed a process for memory before that other line: who is
    told of as killed, and no line says when, was not killed by what came since."""
    if event.signal not in (9, None) or not isinstance(event.cite, LogCite):
        return False
    if not event.cite.at_assumed:
        return False
    counted = _counted_above(facts, event.cite, event.attempt)
    if counted is not None and counted.source == other.source and counted.line < other.line:
        return True
    at = _no_sooner(facts, other)
    return at is not None and any(
        killed < at for killed, _ in _by_kernel(facts, event.place, event.attempt)
    )


def short_earlier(facts: Facts, event: ProcessExit, other: LogCite) -> bool:
    """The same where the line on its end itself says that memory ran out: by a bare signal the
    launcher ends others as well, once a worker of one of them was killed."""
    return killed_earlier(facts, event, other) and any(
        (match.cite.source, match.cite.line) == (event.cite.source, event.cite.line)
        for match in facts.standing("oom-kill")
    )


def told_before(facts: Facts, cite: LogCite, place: Place, attempt: int) -> LogCite | None:
    """The line that tells of the same kill before this one: of the step's daemon in the same log,
    else of the kernel where it dates what this line does not; None where there is none."""
    if not cite.at_assumed:
        return None
    counted = _counted_above(facts, cite, attempt)
    kernels = _by_kernel(facts, place, attempt)
    return counted or (min(kernels, key=itemgetter(0))[1] if kernels else None)


def _counted_above(facts: Facts, cite: LogCite, attempt: int) -> LogCite | None:
    """Where the step's daemon told of a kill above a line by which srun says that a task ran out
    of memory: of another task's death it says nothing."""
    standing = facts.standing("oom-kill")
    if not any((m.cite.source, m.cite.line) == (cite.source, cite.line) for m in standing):
        return None
    above = [m.cite for m in standing
             if m.signature.id == STEP_DAEMON and m.attempt == attempt
             and m.cite.source == cite.source and m.cite.line < cite.line]  # fmt: skip
    return above[0] if above else None


def _by_kernel(facts: Facts, place: Place, attempt: int) -> list[tuple[datetime, LogCite]]:
    """Dated lines of the kernel of that host on kills for memory."""
    host = None if place.host is None else facts.node_of(place.host)
    return [
        (match.cite.at, match.cite)
        for match in facts.standing("oom-kill")
        if host is not None
        and match.cite.at is not None
        and not match.cite.at_assumed
        and match.attempt == attempt
        and facts.on_host(match.cite.place).host == host
    ]


def _no_sooner(facts: Facts, line: LogCite) -> datetime | None:
    """A time that a line has no sooner than: its own, else the last of those that lines above it
    in its log have of themselves; None where no line has one."""
    if line.at is None or not line.at_assumed:
        return line.at
    return max(
        (m.cite.at for m in facts.matches
         if m.cite.source == line.source and m.cite.line < line.line
         and m.cite.at is not None and not m.cite.at_assumed),
        default=None,
    )  # fmt: skip
