"""A process whose end bears no time, and that a kernel dates."""

from __future__ import annotations

from flatline.facts import Facts
from flatline.model import LogCite, ProcessExit


def killed_earlier(facts: Facts, event: ProcessExit, other: LogCite) -> bool:
    """Whether the kernel of its host killed a process for memory before that other line: who is
    told of as killed, and no line says when, was not killed by what came since.  The time that a
    line without one takes from above is enough: it was printed no sooner."""
    if event.signal not in (9, None) or not getattr(event.cite, "at_assumed", True):
        return False
    host = None if event.place.host is None else facts.node_of(event.place.host)
    return host is not None and any(
        match.cite.at is not None and not match.cite.at_assumed
        and other.at is not None and match.cite.at < other.at
        and match.attempt == event.attempt
        and facts.on_host(match.cite.place).host == host
        for match in facts.standing("oom-kill")
    )  # fmt: skip


def short_earlier(facts: Facts, event: ProcessExit, other: LogCite) -> bool:
    """The same where the line on its end itself says that memory ran out: by a bare signal the
    launcher ends others as well, once a worker of one of them was killed."""
    return killed_earlier(facts, event, other) and any(
        (match.cite.source, match.cite.line) == (event.cite.source, event.cite.line)
        for match in facts.standing("oom-kill")
    )
