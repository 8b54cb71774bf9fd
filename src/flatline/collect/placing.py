"""
The host of lines that name none.

A kernel log is told by its name to be a host's where that is what hosts are called; any other name
counts where records, the log or the metrics know a host by it, or by that name with other digits.
What `kubectl describe` says of a pod stands below the node that it ran on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from flatline.collect.events import LogEvents
from flatline.facts import KERNEL
from flatline.logs.places import beside_kernel_word
from flatline.model import Match
from flatline.tracks import BASELINE

if TYPE_CHECKING:
    from flatline.collect.files import Found
    from flatline.collect.logs import Setting

POD_NODE, RUNNING, BEFORE = "kubernetes-pod-node", "kubernetes-running", "kubernetes-last-state"
NEXT_LINES = 3
"""Within which kubectl describes the states of one container, one below the other."""
_DIGITS = re.compile(r"\d+")


def placed(
    logs: Sequence[tuple[Found, Setting, LogEvents]], known: Callable[[], Iterable[str]]
) -> None:
    """Puts the host into the matches that have none; `known` names those the run's data speak of,
    and is asked only where the name of a kernel log may be one."""
    for file, setting, events in logs:
        if any(match.signature.origin == "kubernetes" for match in events.matches):
            events.matches = _of_this_container(_on_nodes(events.matches))
        if file.kind == KERNEL and setting.name.host is None:
            told = beside_kernel_word(file.source.removeprefix(BASELINE))
            host = None if told is None else _as_known(told, known())
            if host is not None:
                events.matches = [_at(match, host) for match in events.matches]


def _as_known(told: str, known: Iterable[str]) -> str | None:
    """The host as it is known, by records before metrics; as it is told, where a known one differs
    in its digits alone."""
    hosts: dict[str, str] = {}
    for host in known:
        hosts.setdefault(_short(host), host)
    short = _short(told)
    if short in hosts:
        return hosts[short]
    scheme = _DIGITS.sub("#", short)
    return told if "#" in scheme and scheme in {_DIGITS.sub("#", one) for one in hosts} else None


def _short(host: str) -> str:
    return host.partition(".")[0].lower()


def _at(match: Match, host: str) -> Match:
    place = match.cite.place
    if place.host is not None:
        return match
    return replace(match, cite=replace(match.cite, place=replace(place, host=host)))


def _on_nodes(matches: Sequence[Match]) -> list[Match]:
    """What Kubernetes says of a pod below the line of its node, up to the next one's."""
    out, node = [], None
    for match in sorted(matches, key=lambda one: one.cite.line):
        if match.signature.id == POD_NODE:
            node = match.groups.get("node")
        elif node is not None and match.signature.origin == "kubernetes":
            match = _at(match, node)
        out.append(match)
    return out


def _of_this_container(matches: Sequence[Match]) -> list[Match]:
    """What ended the container before one that runs now is told, and ended nothing that was
    read: the log of a pod is that of its present container."""
    at: dict[str, int] = {}
    earlier: list[Match] = []
    for match in matches:
        name, line = match.signature.id, match.cite.line
        if name in (RUNNING, BEFORE):
            at[name] = line
        said = line - at.get(BEFORE, -NEXT_LINES)
        runs = at.get(BEFORE, 0) - at.get(RUNNING, -NEXT_LINES)
        if "oom-kill" in match.signature.tags and 0 < said < NEXT_LINES and 0 < runs <= NEXT_LINES:
            earlier.append(match)
    told = {id(match) for match in earlier}
    return [_told(match) if id(match) in told else match for match in matches]


def _told(match: Match) -> Match:
    """No cause any more, but still what it says: nothing is ruled out for want of such a line."""
    return replace(match, signature=replace(match.signature, role="marker"))
