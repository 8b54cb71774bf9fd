"""
What stands in an object of Kubernetes, told apart by where it stands.

Only a status and an event say what happened: what the specification of a pod quotes, nobody
printed.  Of a pod its node, its containers and how they fare are known by their keys.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from flatline.collect.events import LogEvents
from flatline.collect.pods import dated, evicted_for_something, told
from flatline.logs.places import OWNER
from flatline.model import Crash, Match
from flatline.parsers._pods import moment
from flatline.parsers.kubernetes_objects import Entry, entries
from flatline.redact import mask

_OF_A_NODE = ("nvidia.com/", "amd.com/")
_SAYS = ("message", "note", "reason")
_UNPLACED = "PodScheduled"
"""The condition that tells by being false why a pod runs nowhere."""


@dataclass(slots=True)
class _Status:
    """Of one container; `state` is the present one."""

    name: str = ""
    state: str = ""
    ended: dict[str, datetime] = field(default_factory=dict)
    """When, by the state that tells of it."""


@dataclass(slots=True)
class _Object:
    kind: str = ""
    name: str = ""
    of: str = ""
    """What an event is about, as kind/name."""
    node: str = ""
    phase: str = ""
    gpus: set[int] = field(default_factory=set)
    """Items of the specification's containers that ask for any."""
    names: dict[int, str] = field(default_factory=dict)
    statuses: dict[int, _Status] = field(default_factory=dict)
    conditions: dict[int, dict[str, str]] = field(default_factory=dict)

    def read(self, entry: Entry) -> None:
        match entry.path:
            case ("kind",):
                self.kind = entry.value
            case ("metadata", "name"):
                self.name = entry.value
            case ("involvedObject" | "regarding", "kind" | "name" as key):
                kind, _, name = self.of.partition("/")
                self.of = f"{entry.value}/{name}" if key == "kind" else f"{kind}/{entry.value}"
            case ("spec", *rest):
                self._specified(rest, entry.value)
            case ("status", *rest):
                self._told(rest, entry.value)

    def _specified(self, path: Sequence[str | int], value: str) -> None:
        match path:
            case ("nodeName",):
                self.node = value
            case ("containers", int(n), "name"):
                self.names[n] = value
            case ("containers", int(n), "resources", _, str(what)):
                if what.startswith(_OF_A_NODE) and value not in ("", "0"):
                    self.gpus.add(n)

    def _told(self, path: Sequence[str | int], value: str) -> None:
        match path:
            case ("phase",):
                self.phase = value
            case ("containerStatuses", int(n), "name"):
                self._status(n).name = value
            case ("containerStatuses", int(n), "state", str(state)):
                self._status(n).state = state
            case ("containerStatuses", int(n), str(state), "terminated", "finishedAt"):
                if (at := moment(value)) is not None:
                    self._status(n).ended[state] = at
            case ("conditions", int(n), "type" | "status" as key):
                self.conditions.setdefault(n, {})[key] = value

    def _status(self, n: int) -> _Status:
        return self.statuses.setdefault(n, _Status())

    def ended(self, path: Sequence[str | int]) -> datetime | None:
        """When the container ended, where what stands there tells of its end."""
        match path:
            case ("status", "containerStatuses", int(n), str(state), "terminated", _):
                return self._status(n).ended.get(state)
        return None

    @property
    def pod(self) -> str:
        if self.kind == "Pod":
            return self.name
        kind, _, name = self.of.partition("/")
        return name if self.kind == "Event" and kind == "Pod" else ""

    def says(self, path: Sequence[str | int]) -> bool:
        """Whether what stands there was said of what happened."""
        match path:
            case ("status", "conditions", int(n), *_):
                known = self.conditions.get(n, {})
                return known.get("status") == "True" or known.get("type") == _UNPLACED
            case ("status", *_):
                return True
        return self.kind == "Event" and path[0] in _SAYS

    def bygone(self, path: Sequence[str | int], previous: bool) -> bool:
        """Whether it ended nothing that was read."""
        if self.phase == "Succeeded":
            return True
        if len(path) < 4 or path[:2] != ("status", "containerStatuses"):
            return self.phase == "Running" and path[:2] == ("status", "conditions")
        one = self.statuses.get(path[2]) if isinstance(path[2], int) else None
        if one is None:
            return False
        asking = {self.names.get(n, "") for n in self.gpus}
        if asking and one.name not in asking:
            return True
        return path[3] == "lastState" and one.state == "running" and not previous


_At = Callable[[int], tuple[_Object, Entry] | None]


def of_objects(events: LogEvents, lines: Sequence[str], *, previous: bool = False) -> None:
    """Leaves of what was read of a file of objects what they say of a run's end, on the nodes of
    their pods; a pod is named where the file holds those of several."""
    found = list(entries(lines))
    objects: dict[int, _Object] = {}
    for entry in found:
        objects.setdefault(entry.object, _Object()).read(entry)
    starts = [entry.line for entry in found]

    def at(line: int) -> tuple[_Object, Entry] | None:
        n = bisect_right(starts, line) - 1
        return (objects[found[n].object], found[n]) if n >= 0 else None

    pods = {OWNER.sub("", one.pod) for one in objects.values() if one.pod}
    listed = len(pods) > 1 or any(one.kind == "Event" for one in objects.values())
    kept = evicted_for_something(events.matches, lambda a, b: _object(at, a) is _object(at, b))
    events.matches = list(_kept(kept, at, listed, previous))
    events.crashes = [one for one in events.crashes if _said(at, one)]
    events.exits, events.markers, events.tracks = [], [], {}


def _object(at: _At, line: int) -> _Object | None:
    where = at(line)
    return where[0] if where is not None else None


def _said(at: _At, crash: Crash) -> bool:
    where = at(crash.cite.line)
    return where is not None and where[0].says(where[1].path)


def _kept(matches: Sequence[Match], at: _At, listed: bool, previous: bool) -> Iterator[Match]:
    for match in matches:
        where = at(match.cite.line)
        if where is None or not where[0].says(where[1].path):
            continue
        one, entry = where
        if one.node and match.cite.place.host is None:
            place = replace(match.cite.place, host=mask(one.node))
            match = replace(match, cite=replace(match.cite, place=place))
        if listed and one.pod:
            match = replace(match, groups={**match.groups, "pod": mask(one.pod)})
        match = told(match) if one.bygone(entry.path, previous) else match
        yield dated(match, one.ended(entry.path))
