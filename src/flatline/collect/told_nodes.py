"""The hosts of a job as its own log prints them, for runs of which no record was kept."""

from __future__ import annotations

from collections.abc import Iterable

from flatline.errors import FormatError
from flatline.model import Match
from flatline.parsers._hostlist import expand

TOLD = "slurmenv-nodes"
CUT = 400
"""Characters the signature takes."""


def told_nodes(matches: Iterable[Match]) -> tuple[str, ...]:
    """Empty where no line names them, where lines name different ones (a log may hold several
    jobs, and a heterogeneous job has a list a component), and where the list is so long that it
    may have been cut: what is left out of it would not be looked at."""
    lists = {match.groups.get("node", "") for match in matches if match.signature.id == TOLD}
    if len(lists) != 1:
        return ()
    (told,) = lists
    try:
        return () if len(told) >= CUT else expand(told.rstrip(".,"))
    except FormatError:
        return ()
