"""
The port of a host that a run's sockets went over, and that went down as peers were lost.

NCCL says which it uses.  Gloo does not, but it knows nothing but sockets: a port of one host that
lost its link where Gloo's connections broke, and had not got it back, is most likely theirs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from flatline.facts import Facts
from flatline.judging.bygone import BREATH, interface, over
from flatline.judging.crashes import Failure
from flatline.judging.losses import on_sockets
from flatline.model import LogCite, Match, Place

HEAD = 4_000
"""Lines of a log in which NCCL says what it uses."""
_USES = re.compile(r"(?:NET/Socket|Bootstrap) : Using (?:\[\d{1,2}\])?([\w.-]{1,16}):")


@dataclass(frozen=True, slots=True)
class UsedPort:
    """The failed link, its host, and the lines that show what it carried and who lost it."""

    failure: Failure
    place: Place | None
    uses: LogCite
    lost: tuple[LogCite, ...]
    named: bool = True
    """Whether a line names the port as the one that is used."""


def used_port(facts: Facts, lines: Sequence[Failure]) -> UsedPort | None:
    """None where NCCL uses another port or an adapter, or no peer was lost in the same breath."""
    for failure in lines:
        port = None if failure.match is None else interface(failure.match)
        if failure.match is None or "link-down" not in failure.match.signature.tags or not port:
            continue
        if on_sockets(facts) is None or failure.cite.source in facts.kernel_files:
            continue
        cite = failure.cite
        lost = tuple(
            m.cite for m in facts.tagged("lost-peer")
            if m.cite.source == cite.source and m.attempt == failure.attempt
            and abs(m.cite.line - cite.line) <= BREATH
        )  # fmt: skip
        uses = next((c for c, name in _uses(facts) if name == port), None) if lost else None
        if uses is not None:
            host = failure.place.host or _only_host(facts, cite.source)
            return UsedPort(failure, Place(host=host) if host else None, uses, lost)
    return _of_gloo(facts, lines)


def _of_gloo(facts: Facts, lines: Sequence[Failure]) -> UsedPort | None:
    """The one host's port that was down to the end of a log in which Gloo's connections broke in
    the same breath; None where it came back, or ports of several hosts did so."""
    found = [
        UsedPort(failure, Place(host=host), lost[0], lost, named=False)
        for failure in lines
        if failure.match is not None
        and "link-down" in failure.match.signature.tags
        and (host := failure.place.host)
        and over(facts, failure.match) is None
        and (lost := _broken(facts, failure.match))
    ]
    return found[-1] if len({port.place for port in found}) == 1 else None


def _broken(facts: Facts, down: Match) -> tuple[LogCite, ...]:
    """Where Gloo lost a peer, or waited for one in vain, beside a line of the same log."""
    cite = down.cite
    return tuple(
        m.cite for m in facts.matches
        if m.signature.origin == "gloo" and {"lost-peer", "timeout"} & {*m.signature.tags}
        and m.cite.source == cite.source and m.attempt == down.attempt
        and abs(m.cite.line - cite.line) <= BREATH
    )  # fmt: skip


def _uses(facts: Facts) -> list[tuple[LogCite, str]]:
    said = on_sockets(facts)
    if said is None:
        return []
    source = said.cite.source
    return [(LogCite(source, n, text), found[1])
            for n, text in enumerate(facts.lines(source, 1, HEAD), 1)
            if (found := _USES.search(text)) is not None]  # fmt: skip


def _only_host(facts: Facts, source: str) -> str | None:
    """The one host that lines of a log are labelled with, where those are of one."""
    hosts = {m.cite.place.host for m in facts.matches if m.cite.source == source} - {None}
    return hosts.pop() if len(hosts) == 1 else None
