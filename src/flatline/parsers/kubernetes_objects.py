"""
Objects as `kubectl get -o yaml` or `-o json` prints them, read for what stands in which line.

Of YAML only what kubectl itself writes is known: block mappings and lists, a key and at most one
scalar a line, and blocks of text.  JSON is read alike, as it puts one key in a line as well.  No
anchor, tag or flow is followed, so nothing grows beyond the lines that are there.  A manifest
that was only written to be applied has no status, and is none of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from flatline.errors import FormatError
from flatline.model import Pod, RecordCite, Records, Scalar
from flatline.parsers._pods import GPUS, job_by, moment
from flatline.parsers._rows import decoded
from flatline.parsers._slurm import named_once

FORMAT = "kubernetes-objects"
IN_LINES = True
MOST_DEEP, LINE_CHARS = 64, 2_000
MOST_BYTES, MOST_LINES = 16 << 20, 250_000
"""A pod with its status has some two hundred lines."""
_KEYED = re.compile(
    r"(?P<items>(?:- ){0,8})\"?(?P<key>[A-Za-z_][\w./-]{0,252})\"?:(?: (?P<value>.*))?$"
)
_ITEMS = ("-", "{", "- {")
_TEXT = re.compile(r"[|>][+-]?\d?$")
_SCALAR = re.compile(r"[\"']?(.*?)[\"']?,?$")
_KIND = rb"(?:Pod|Event|JobSet|\w{0,20}Job)"
_IS = re.compile(rb"\s*+(?:---\s*+)?\{?\s*+\"?apiVersion\"?: ")
_OF_KIND = re.compile(rb"^[ -]{0,12}\"?kind\"?: \"?(%b)\"?,?\s*$" % _KIND, re.MULTILINE)
_STATUS = re.compile(rb"^ {0,12}\"?status\"?:(?: \{)?\s*$", re.MULTILINE)
_POINTER = re.compile(r"line (\d{1,9})")
_LABELS = ("metadata", "labels")


@dataclass(frozen=True, slots=True)
class Entry:
    """
    A line with a key: `path` are the keys above it and its own, of one object (its number among
    those of the file); an item of a list is a number that no other item has.  The lines below,
    up to the next entry, are part of its value.
    """

    line: int
    object: int
    path: tuple[str | int, ...]
    value: str


def entries(lines: Iterable[str]) -> Iterator[Entry]:
    """The lines with keys of YAML or JSON as kubectl prints it, first to last."""
    above: list[tuple[int, str | int]] = []
    items = documents = 0
    text_from: int | None = None
    for number, whole in enumerate(lines, 1):
        line = whole[:LINE_CHARS].strip()
        at = len(whole) - len(whole.lstrip(" "))
        if not line or (text_from is not None and at > text_from):
            continue
        text_from = None
        if line == "---":
            above, documents = [], documents + 1
            continue
        if line in _ITEMS:
            items += 1
            _leave(above, at, item=True)
            above.append((at, items))
            continue
        found = _KEYED.match(line)
        if found is None:
            continue
        for _ in range(len(found["items"]) // 2):
            items += 1
            _leave(above, at, item=True)
            above.append((at, items))
            at += 2
        _leave(above, at, item=False)
        value = found["value"] or ""
        path = (*(key for _, key in above), found["key"])
        yield _entry(number, documents, path, value)
        if _TEXT.fullmatch(value):
            text_from = at
        elif value in ("", "{", "[") and len(above) < MOST_DEEP:
            above.append((at, found["key"]))


def _entry(number: int, document: int, path: tuple[str | int, ...], value: str) -> Entry:
    """An object of its own where it is one of a list of them."""
    if path and isinstance(path[0], int):  # the braces around all of JSON
        path = path[1:]
    of = -document
    if len(path) > 2 and path[0] == "items" and isinstance(path[1], int):
        of, path = path[1], path[2:]
    said = _SCALAR.match(value)
    return Entry(number, of, path, said[1] if said else value)


def _leave(above: list[tuple[int, str | int]], at: int, *, item: bool) -> None:
    """Takes what ends at this indentation; a list stands as far in as its own key."""
    while above and (
        above[-1][0] > at or (above[-1][0] == at and (not item or isinstance(above[-1][1], int)))
    ):
        above.pop()


Told = dict[tuple[str | int, ...], Entry]
"""By the keys above it."""


@dataclass(slots=True)
class _Object:
    fields: Told = field(default_factory=dict)
    containers: dict[int, Told] = field(default_factory=dict)
    """Of the specification, by the numbers of their items."""
    statuses: dict[int, Told] = field(default_factory=dict)

    def put(self, entry: Entry) -> None:
        match entry.path:
            case ("spec", "containers", int(n), *keys):
                self.containers.setdefault(n, {}).setdefault(tuple(keys), entry)
            case ("status", "containerStatuses", int(n), *keys):
                self.statuses.setdefault(n, {}).setdefault(tuple(keys), entry)
            case path:
                self.fields.setdefault(path, entry)

    def says(self, *keys: str) -> str:
        return _value(self.fields, *keys)

    def gpus(self) -> tuple[str, int] | None:
        """The container that asks for them, and how many."""
        for told in self.containers.values():
            asked = [_value(told, "resources", "limits", key) for key in GPUS]
            if count := next(filter(str.isdecimal, asked), ""):
                return _value(told, "name"), int(count)
        return None


def _value(told: Told, *keys: str) -> str:
    return told[keys].value if keys in told else ""


def parse(data: bytes, source: str) -> Records:
    """Pods, and nodes by their names and addresses. Raises `FormatError` for other data."""
    if too_many(data):
        raise FormatError(f"{len(data)} bytes of objects are more than is read")
    if not recognise(source, data):
        raise FormatError("no object of Kubernetes with a status")
    objects: dict[int, _Object] = {}
    for entry in entries(decoded(data).split("\n")):
        if entry.value and entry.path[0] in ("kind", "metadata", "spec", "status"):
            objects.setdefault(entry.object, _Object()).put(entry)
    told = list(objects.values())
    pods = [one for one in told if one.says("kind") == "Pod" and one.says("status", "phase")]
    known = [
        (named, node)
        for one in told
        if (node := one.says("spec", "nodeName"))
        for named in (one.says("metadata", "name"), one.says("status", "podIP"))
        if named
    ]
    return Records(addresses=named_once(known), pods=tuple(_pod(one, source) for one in pods))


def _pod(told: _Object, source: str) -> Pod:
    name, asked = told.says("metadata", "name"), told.gpus()
    statuses = list(told.statuses.values())
    of_asked = [one for one in statuses if asked and _value(one, "name") == asked[0]]
    main = next(iter(of_asked or statuses), {})
    said = main.get(("state", "terminated", "reason"), told.fields["status", "phase"])
    labels = {str(keys[2]): one.value for keys, one in told.fields.items()
              if keys[:2] == _LABELS and keys[2:]}  # fmt: skip
    code = _value(main, "state", "terminated", "exitCode")
    began = (
        _value(main, "state", "terminated", "startedAt")
        or _value(main, "state", "running", "startedAt")
        or told.says("status", "startTime")
    )
    return Pod(
        name=name,
        status=said.value,
        cite=RecordCite(source, f"line {said.line}", said.value, f"Pod {name}: {said.value}"),
        node=told.says("spec", "nodeName") or None,
        job=job_by(labels),
        started_at=moment(began),
        ended_at=moment(_value(main, "state", "terminated", "finishedAt")),
        exit_code=int(code) if code.isdecimal() else None,
        gpus=asked[1] if asked else None,
    )


def too_many(data: bytes) -> bool:
    """Whether it is more than is read."""
    return len(data) > MOST_BYTES or data.count(b"\n") > MOST_LINES


def recognise(name: str, head: bytes) -> bool:
    """Whether it begins as an object with a status, or an event."""
    if not _IS.match(head):
        return False
    kinds = {found[1] for found in _OF_KIND.finditer(head)}
    return b"Event" in kinds or (bool(kinds) and _STATUS.search(head) is not None)


def resolve(data: bytes, pointer: str) -> Scalar:
    """The value in `line 12`."""
    found = _POINTER.fullmatch(pointer)
    for entry in entries(decoded(data).split("\n")) if found else ():
        if entry.line == int(found[1]) if found else False:
            return entry.value
    raise FormatError(f"no such value: {pointer!r}")
