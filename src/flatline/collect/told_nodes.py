"""The hosts of a job as its own log prints them, for runs of which no record was kept."""

from __future__ import annotations

from collections.abc import Iterable

from flatline.errors import FormatError
from flatline.model import Match
from flatline.parsers._hostlist import expand

TOLD = "slurmenv-nodes"


def told_nodes(matches: Iterable[Match]) -> tuple[str, ...]:
    """None where no line names them, or where lines name different ones: a log may hold several
    jobs, and a step may be given a part."""
    lists = {match.groups.get("node", "") for match in matches if match.signature.id == TOLD}
    if len(lists) != 1:
        return ()
    try:
        return expand(lists.pop().rstrip(".,"))
    except FormatError:
        return ()
