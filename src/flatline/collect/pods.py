"""
What Kubernetes says of a pod, told apart by when it was: of its present container, of the one
before, of one that holds no GPU, or of a start that went well in the end.

`kubectl describe` names a pod, its node, its containers with their states, its conditions and its
events, in this order; in a piece of an object (whole ones are `collect.objects`'s) a container's
`lastState` stands before its `state`.  What did not end the run is kept for what it says and is
no cause any more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from flatline.model import Match
from flatline.parsers._pods import described_time

ORIGIN = "kubernetes"
OF_A_CONTAINER = (
    "kubernetes-oom-killed",
    "kubernetes-image",
    "kubernetes-start-failed",
    "kubernetes-exit-killed",
    "kubernetes-exit-crashed",
    "kubernetes-exit-aborted",
    "kubernetes-exit-bus",
)
"""What may be the reason of a container's state, or its exit status."""
_REASON = re.compile(r"\s*\"?(?:[Rr]eason|Exit Code|exitCode|[Ss]ignal)\"?:")

BESIDE = 3
"""Lines between what a pod was evicted for and the word that it was."""
_STARTED, _FAILING = (re.compile(rf"\b{said} container (\S{{1,64}})")
                      for said in ("Started", "restarting failed"))  # fmt: skip
_ROW = re.compile(r"(?:\S+ {2,})?(?P<pod>\S+) {2,}\d{1,3}/\d{1,3} ")
"""Of `kubectl get pods`, with its namespace or without."""
_EVENT = re.compile(r"(?:\S+ +){0,2}(?:Normal|Warning) +\w+ +pods?/(?P<pod>[\w.-]{1,253}) ")
"""Of `kubectl get events`, with a namespace or without."""


@dataclass(slots=True)
class _Container:
    """What is told of its present state, and of the one before."""

    first: bool = False
    """Whether it only prepares the others."""
    state: str = ""
    gpus: bool = False
    ended_well: bool = False
    ended: dict[int, datetime] = field(default_factory=dict)
    """When, by the matches that say how."""
    now: list[Match] = field(default_factory=list)
    before: list[Match] = field(default_factory=list)


@dataclass(slots=True)
class _Pod:
    """One that is described; `events` are what is told of it as a whole."""

    containers: list[_Container] = field(default_factory=list)
    events: list[Match] = field(default_factory=list)
    ready: bool = False
    started: set[str] = field(default_factory=set)
    """Containers by their names."""

    def bygone(self, previous: bool) -> Iterator[Match]:
        """What ended nothing that was read."""
        main = [one for one in self.containers if not one.first]
        beside = [one for one in main if not one.gpus] if any(c.gpus for c in main) else []
        main = [one for one in main if one not in beside]
        for one in main:
            yield from one.before if one.state == "running" and not previous else ()
        for one in beside:
            yield from (*one.now, *one.before)
        runs = self.ready and all(one.state == "running" for one in main)
        well = any(one.ended_well for one in main)
        failing = {name for event in self.events for name in _FAILING.findall(event.cite.text)}
        ran = self.started - failing or any(one.state in ("running", "terminated") for one in main)
        for event in self.events:
            if (main and (runs or well)) or (ran and "launch" in event.signature.tags):
                yield event


def of_pods(
    matches: Sequence[Match], nodes: Mapping[str, str], *, previous: bool = False
) -> list[Match]:
    """The matches of one file, those of pods on their nodes and in their time; `nodes` are those
    of pods that were listed, `previous` whether the log is that of the container before."""
    if not any(m.signature.origin == ORIGIN or _EVENT.match(m.cite.text) for m in matches):
        return list(matches)
    placed, described = _on_nodes(evicted_for_something(matches, _near), nodes), _Description()
    for match in placed:
        if match.signature.origin == ORIGIN:
            described.read(match)
    over = {id(match) for pod in described.pods for match in pod.bygone(previous)}
    ended = {key: at for pod in described.pods for one in pod.containers
             for key, at in one.ended.items()}  # fmt: skip
    return [
        dated(told(match) if id(match) in over else match, ended.get(id(match)))
        for match in placed
    ]


def _on_nodes(matches: Sequence[Match], nodes: Mapping[str, str]) -> list[Match]:
    """What Kubernetes says of a pod below the line of its node, up to the next one's, or in the
    row of a list that names it; what anything says of one in the row of an event."""
    out, node = [], None
    for match in sorted(matches, key=lambda one: one.cite.line):
        host = None
        if match.signature.id == "kubernetes-pod-node":
            node = match.groups.get("node")
        elif match.signature.origin == ORIGIN and match.cite.place.host is None:
            row = _ROW.match(match.cite.text)
            host = node if row is None else nodes.get(row["pod"])
        if match.cite.place.host is None and (event := _EVENT.match(match.cite.text)):
            host = nodes.get(event["pod"])
        if host:
            place = replace(match.cite.place, host=host)
            match = replace(match, cite=replace(match.cite, place=place))
        out.append(match)
    return out


class _Description:
    """Reads the lines of one file in their order."""

    def __init__(self) -> None:
        self.pods = [_Pod()]
        self.first = self.before = False
        self.object_line = 0

    def read(self, match: Match) -> None:
        pod = self.pods[-1]
        reads = {
            "kubernetes-pod-node": self._pod,
            "kubernetes-section": self._section,
            "kubernetes-container": self._container,
            "kubernetes-state": self._state,
            "kubernetes-last-state": self._last_state,
        }.get(match.signature.id)
        if reads is not None:
            reads(match)
        elif match.signature.id == "kubernetes-gpus" and pod.containers:
            pod.containers[-1].gpus = True
        elif match.signature.id == "kubernetes-finished" and pod.containers:
            self._finished(pod.containers[-1], described_time(match.groups.get("at") or ""))
        elif match.signature.id == "kubernetes-completed" and pod.containers:
            pod.containers[-1].ended_well |= not self.before
        elif match.signature.id == "kubernetes-ready":
            pod.ready = True
        elif match.signature.id == "kubernetes-started":
            pod.started.update(_STARTED.findall(match.cite.text))
        elif match.signature.role == "root":
            self._root(match)

    def _pod(self, match: Match) -> None:
        self.pods.append(_Pod())
        self.first = self.before = False

    def _section(self, match: Match) -> None:
        self.first = match.cite.text.lstrip().lower().lstrip('"').startswith("init")

    def _container(self, match: Match) -> None:
        self.pods[-1].containers.append(_Container(self.first))
        self.before = False

    def _state(self, match: Match) -> None:
        if self.before and match.cite.line == self.object_line + 1:
            return  # what the one before ended as
        containers = self.pods[-1].containers
        if not containers or containers[-1].state:
            self._container(match)
        containers[-1].state = match.cite.text.lower().strip(' ":{').rpartition(" ")[2]
        self.before = False

    def _finished(self, one: _Container, at: datetime | None) -> None:
        if at is not None:
            one.ended |= {id(said): at for said in (one.before if self.before else one.now)}

    def _last_state(self, match: Match) -> None:
        if "lastState" in match.cite.text:
            self._container(match)
            self.object_line = match.cite.line
        self.before = True

    def _root(self, match: Match) -> None:
        pod = self.pods[-1]
        own = match.signature.id in OF_A_CONTAINER and _REASON.match(match.cite.text)
        if own and pod.containers:
            one = pod.containers[-1]
            (one.before if self.before else one.now).append(match)
        else:
            pod.events.append(match)


def evicted_for_something(
    matches: Sequence[Match], beside: Callable[[int, int], bool]
) -> list[Match]:
    """Without the bare word that a pod was evicted, where it is said for what: `beside` tells
    whether two lines are of the same eviction."""
    why = [
        match.cite.line
        for match in matches
        if match.signature.id in ("kubernetes-evicted-memory", "kubernetes-evicted-disk")
    ]
    return [
        match
        for match in matches
        if match.signature.id != "kubernetes-pod-evicted"
        or not any(beside(match.cite.line, line) for line in why)
    ]


def _near(line: int, other: int) -> bool:
    return abs(line - other) <= BESIDE


def dated(match: Match, ended: datetime | None) -> Match:
    """At the time that the kubelet gives for the end which it tells of."""
    if ended is None:
        return match
    return replace(match, cite=replace(match.cite, at=ended, at_assumed=False))


def told(match: Match) -> Match:
    """No cause any more, but still what it says: nothing is ruled out for want of such a line."""
    tags = tuple(tag for tag in match.signature.tags if tag != "node-failure")
    return replace(match, signature=replace(match.signature, role="marker", tags=tags))
