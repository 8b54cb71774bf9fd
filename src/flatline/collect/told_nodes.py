"""The hosts of a job as its own log prints them, for runs of which no record was kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flatline.errors import FormatError
from flatline.logs.hostlists import expand
from flatline.model import Match

TOLD = "slurmenv-nodes"
CUT = 400
"""Characters the signature takes."""


def told_nodes(matches: Iterable[Match]) -> tuple[str, ...]:
    """Those it lists, or else those whose lines it holds where these are known to be all."""
    read = [*matches]
    return _listed(read) or _heard(read)


def _heard(matches: Sequence[Match]) -> tuple[str, ...]:
    """The hosts of lines that say where they come from; empty unless they are as many as the
    program says that it runs on, or as many GPUs or ranks spoke there as it has."""
    hosts = dict.fromkeys(m.cite.place.host for m in matches if m.cite.place.host)
    stated = {int(told) for m in matches if (told := m.groups.get("hosts", "")).isdecimal()}
    world = {int(told) for m in matches if (told := m.groups.get("world_size", "")).isdecimal()}
    places = {m.cite.place for m in matches if m.cite.place.host}
    ranks = {place.rank for place in places if place.rank is not None}
    cards = {(place.host, place.gpu) for place in places if place.gpu is not None}
    spoke = len(ranks) or len(cards)
    if stated == {len(hosts)} or (len(hosts) > 1 and world == {spoke}):
        return tuple(host for host in hosts if host)
    return ()


def _listed(matches: Iterable[Match]) -> tuple[str, ...]:
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
