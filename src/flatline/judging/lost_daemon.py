"""A host whose daemon mpirun lost amid the run, and that answered nobody afterwards."""

from __future__ import annotations

import re

from flatline.facts import Facts
from flatline.model import LogCite, Match

LOST, TRIED = "mpi-daemon-lost", "mpi-ssh-unreachable"
BELOW = 8
"""Lines of mpirun's message in which it names the two ends."""
_NODE = re.compile(r"^\s*Remote daemon: \S{1,60} on node ([\w.-]{1,64})\s*$")
_SILENT = re.compile(r": (?:No route to host|Connection timed out)\s*$")
"""One that refuses is up."""


def lost_daemon(facts: Facts) -> tuple[str, tuple[LogCite, ...]] | None:
    """The host, and the lines that show it; None where others tried no connection to it, or one
    was tried before that in the same log."""
    for lost in facts.matches:
        host = _named(facts, lost) if lost.signature.id == LOST else None
        if host is None or lost.attempt != facts.last.n:
            continue
        for tried in facts.matches:
            if tried.signature.id == TRIED and _answers_not(facts, tried, host, lost.cite):
                return host, (lost.cite, tried.cite)
    return None


def _named(facts: Facts, lost: Match) -> str | None:
    below = facts.lines(lost.cite.source, lost.cite.line + 1, BELOW)
    return next((found[1] for text in below if (found := _NODE.match(text))), None)


def _answers_not(facts: Facts, tried: Match, host: str, lost: LogCite) -> bool:
    named, cite = tried.groups.get("host") or "", tried.cite
    if named.partition(".")[0] != host.partition(".")[0] or not _SILENT.search(cite.text):
        return False
    return facts.after(cite, lost) is not False
