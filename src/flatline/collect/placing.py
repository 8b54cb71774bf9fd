"""
The host of lines that name none.

A kernel log is told by its name to be a host's where that is what hosts are called; any other name
counts where records, the log or the metrics know a host by it, or by that name with other digits;
that of its folder where it is a known host's.
What `kubectl describe` says of a pod is `collect.pods`'s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from flatline.collect.events import LogEvents
from flatline.collect.files import holds_objects
from flatline.collect.objects import of_objects
from flatline.collect.pods import of_pods
from flatline.facts import KERNEL, LOG
from flatline.logs.places import beside_kernel_word
from flatline.model import Match
from flatline.parsers.kubernetes_objects import MOST_BYTES, too_many
from flatline.tracks import BASELINE

if TYPE_CHECKING:
    from flatline.collect.files import Found
    from flatline.collect.setting import Setting

_OF_A_DAEMON = re.compile(r"mmfs\.log(?:\.|$)")
"""GPFS's own, which names its host nowhere but in a name that `mmfs.log.latest` links to."""
_DIGITS = re.compile(r"\d+")
_LABEL = re.compile(
    r"\s{0,4}(?:\[(?P<host>(?=[\w.-]*\d)[A-Za-z][\w.-]{0,80})(?::\d{1,3})?\]:?"
    r"|(?P<bare>(?=[\w.-]*\d)[A-Za-z][\w.-]{0,80}) ?\|) "
)


def placed(
    logs: Sequence[tuple[Found, Setting, LogEvents]],
    nodes: Mapping[str, str],
    known: Callable[[], Iterable[str]],
) -> None:
    """Puts the host into the matches that have none; `known` names those the run's data speak of,
    and is asked only where the name of a kernel log may be one; `nodes` are those of pods."""
    previous = any("previous" in file.path.name.lower() for file, _, _ in logs)
    for file, setting, events in logs:
        if holds_objects(file):
            of_objects(events, _lines(file), previous=previous)
        else:
            events.matches = of_pods(events.matches, nodes, previous=previous)
        if file.kind == LOG and setting.name.host is None:
            host = _of_its_pod(file.path.stem, nodes)
            if host is not None:
                events.matches = [_at(match, host) for match in events.matches]
            events.matches = [_labelled(match, known) for match in events.matches]
        daemons = _OF_A_DAEMON.match(file.path.name) is not None
        if (file.kind == KERNEL or daemons) and setting.name.host is None:
            source = PurePosixPath(file.source.removeprefix(BASELINE))
            told, folder = beside_kernel_word(str(source)), source.parent.name
            host = _as_known(told, known()) if told else _as_measured(folder, known)
            if host is not None:
                events.matches = [_at(match, host) for match in events.matches]


def _labelled(match: Match, known: Callable[[], Iterable[str]]) -> Match:
    """On the host of the run that a site's own label before the line names, as `[gpu07:3] `."""
    label = _LABEL.match(match.cite.text) if match.cite.place.host is None else None
    if label is None:
        return match
    hosts = {_short(host): host for host in known()}
    host = hosts.get(_short(label["host"] or label["bare"]))
    return match if host is None else _at(match, host)


def _of_its_pod(stem: str, nodes: Mapping[str, str]) -> str | None:
    """The node of the one pod that a log is named after, in full or by what stands behind the name
    of the job (`worker-6` of `trainer-worker-6`)."""
    if not any(map(str.isdigit, stem)):
        return None
    named = [name for name in nodes if name == stem or name.endswith(f"-{stem}")]
    return nodes[named[0]] if len(named) == 1 else None


def _lines(file: Found) -> list[str]:
    """None of a file that is gone by now or too large: what it said is not known then."""
    try:
        data = b"" if file.path.stat().st_size > MOST_BYTES else file.path.read_bytes()
    except OSError:
        return []
    return [] if too_many(data) else data.decode("utf-8", "replace").split("\n")


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


def _as_measured(folder: str, known: Callable[[], Iterable[str]]) -> str | None:
    """The known host whose very name the folder bears in which the log is: any other name may be
    of whatever was collected."""
    hosts = {_short(host): host for host in known()} if folder else {}
    return hosts.get(_short(folder))


def _short(host: str) -> str:
    return host.partition(".")[0].lower()


def _at(match: Match, host: str) -> Match:
    place, told = match.cite.place, match.groups
    if place.host is not None:
        return match
    if any(n is not None and told.get(key) == str(n)
           for key, n in (("task", place.task), ("rank", place.rank))):  # fmt: skip
        return match  # it tells of one that may be on another host
    return replace(match, cite=replace(match.cite, place=replace(place, host=host)))
