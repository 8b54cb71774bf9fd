"""The few hosts that alone could not connect to the rendezvous which all others came to."""

from __future__ import annotations

import re
from collections.abc import Iterator

from flatline.facts import Facts
from flatline.judging.claims import claim, name_places
from flatline.judging.named_logs import host_of_log, hosts_with_logs, known_hosts
from flatline.judging.waiting import FEW_RATIO
from flatline.model import Claim, LogCite, Match, Place

FAILED = ("c10d-store-connect-timeout",)
"""What says that it gave up: one that is told of no route tries again, and may come after all."""
COUNTED, WAITED = "c10d-store-clients-missing", "torchelastic-rendezvous-timeout"
_COUNTS = (
    re.compile(r"(?P<came>\d{1,6})/(?P<all>\d{1,6}) clients joined"),
    re.compile(
        r"world_size=(?P<all>\d{1,6}), (?:num_workers_joined|worker_count)=(?P<came>\d{1,6})"
    ),
)
"""TCPStore's and the store-based barrier's count of those that came, and of all."""
_WORD = re.compile(r"[\w-]+(?:\.[\w-]+)*")


def unreached(facts: Facts) -> tuple[tuple[Place, ...], Claim | None]:
    """Those hosts, where the lines that tell of it name no other and as many are missing as run
    there, or all others are known to have waited at the rendezvous; nothing otherwise."""
    told: dict[str, LogCite] = {}
    for match in facts.matches:
        if match.signature.id in FAILED and match.attempt == facts.last.n:
            host = _host(facts, match)
            if host is None or _came_after_all(facts, match):
                return (), None
            told.setdefault(host, match.cite)
    hosts, missing = len(facts.hosts or hosts_with_logs(facts)), _missing(facts)
    each = missing is not None and missing[2] - missing[1] == len(told)  # of agents, or of ranks
    if not told or len(told) > FEW_RATIO * (missing[2] if missing and each else hosts):
        return (), None
    places = tuple(Place(host=host) for host in sorted(told))
    alone = f"Alone {name_places(places)} could not connect to it"
    if missing is None:
        waited = _waited(facts)
        if not waited or set(told) & set(waited) or {*told, *waited} != set(facts.hosts):
            return (), None
        return places, claim(f"{alone}: the {len(waited)} others waited there until their timeout",
                             *told.values(), *waited.values())  # fmt: skip
    cite, came, world = missing
    if not each and (world - came) * hosts != len(told) * world:
        return (), None
    text = f"{alone}, and {world - came} of {world} were missing: the others came"
    return places, claim(text, *told.values(), cite)


def _waited(facts: Facts) -> dict[str, LogCite]:
    """The hosts on which a launcher gave up to wait at the rendezvous; nothing where one of these
    lines names none."""
    hosts: dict[str, LogCite] = {}
    for match in facts.matches:
        if match.signature.id == WAITED and match.attempt == facts.last.n:
            host = _host(facts, match)
            if host is None:
                return {}
            hosts.setdefault(host, match.cite)
    return hosts


def _came_after_all(facts: Facts, match: Match) -> bool:
    """Whether the same log goes on to lose a connection that it then had."""
    return any(
        one.cite.source == match.cite.source
        and one.cite.line > match.cite.line
        and "lost-peer" in one.signature.tags
        for one in facts.matches
    )


def _host(facts: Facts, match: Match) -> str | None:
    """The host on which it was printed."""
    told = facts.on_host(match.cite.place).host
    if told is not None:
        return told
    nodes, task = facts.job.nodes if facts.job is not None else (), match.cite.place.task
    missing = _missing(facts)
    if task is not None and missing is not None and missing[2] == len(nodes) > task:
        return nodes[task]  # one agent a node: Slurm numbers them in the order of its nodes
    peer = {facts.node_of(word) for word in _WORD.findall(match.groups.get("peer", ""))}
    named = {facts.node_of(word) for word in _WORD.findall(match.cite.text)} - peer
    own = named.intersection(known_hosts(facts))
    if own:
        return own.pop() if len(own) == 1 else None
    return host_of_log(facts, match.cite.source)


def _missing(facts: Facts) -> tuple[LogCite, int, int] | None:
    """How many had come of how many, as the last line of it says."""
    counts = [*_counted(facts)]
    return counts[-1] if counts else None


def _counted(facts: Facts) -> Iterator[tuple[LogCite, int, int]]:
    for match in facts.matches:
        if match.signature.id == COUNTED and match.attempt == facts.last.n:
            found = next(filter(None, (one.search(match.cite.text) for one in _COUNTS)), None)
            if found is not None and int(found["came"]) < int(found["all"]):
                yield match.cite, int(found["came"]), int(found["all"])
