"""
`kubectl describe pod`: where a pod runs, since when, and how its container ended.

Of its containers the one that asks for GPUs counts, else the first.  A file in which anything else
was printed as well, as by `kubectl logs`, is a log.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from flatline.errors import FormatError
from flatline.model import Pod, RecordCite, Records, Scalar
from flatline.parsers._pods import GPUS, described_time, job_by
from flatline.parsers._rows import decoded
from flatline.parsers._slurm import named_once

FORMAT = "kubectl-describe"
IN_LINES = True
_IS = re.compile(rb"\s*(?:[^\n]{0,120}kubectl [^\n]{1,200}\n)?Name: +\S+ *\r?\nNamespace: ")
_NEEDED = (b"\nNode:", b"\nStatus:", b"\nContainers:")
_ROW = re.compile(rb"[A-Z][A-Za-z -]{0,40}:|[ \t]|\r?$|[^\n]{0,120}[$#] ?kubectl ")
_FIELD = re.compile(r"( *)([^:]{1,120}):(?:\s+(.*))?$")
_POINTER = re.compile(r"line (\d{1,9})")
_CONTAINER, _STATE = 2, 4  # columns


@dataclass(slots=True)
class _Container:
    status: str = ""
    status_line: int = 0
    fields: dict[str, str] = field(default_factory=dict)
    """Of its present state."""
    gpus: int | None = None


@dataclass(slots=True)
class _Described:
    fields: dict[str, tuple[str, int]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    containers: list[_Container] = field(default_factory=list)


def _lines(data: bytes) -> list[str]:
    return decoded(data).split("\n")


def _pods(data: bytes) -> list[_Described]:
    """Each pod that is described."""
    pods: list[_Described] = []
    part = state = ""
    for number, line in enumerate(_lines(data), 1):
        if part == "Labels" and line.startswith(" ") and "=" in line and pods:
            _label(pods[-1], line)
            continue
        found = _FIELD.match(line)
        if found is None:
            continue
        at, key, value = len(found[1]), found[2].strip(), (found[3] or "").strip()
        if not at:
            part, state = key, ""
            _headed(pods, key, value, number)
        elif part == "Containers" and pods:
            state = _contained(pods[-1], (at, key, value, number), state)
    return pods


def _headed(pods: list[_Described], key: str, value: str, number: int) -> None:
    """Reads a line of a pod itself."""
    if key == "Name":
        pods.append(_Described())
    if pods:
        pods[-1].fields.setdefault(key, (value, number))
        if key == "Labels":
            _label(pods[-1], value)


def _label(pod: _Described, text: str) -> None:
    key, _, value = text.strip().partition("=")
    pod.labels.setdefault(key, value)


def _contained(pod: _Described, row: tuple[int, str, str, int], state: str) -> str:
    """Reads a line of a container; in which of its parts the next ones stand."""
    at, key, value, number = row
    if at == _CONTAINER:
        pod.containers.append(_Container())
        return ""
    if not pod.containers:
        return state
    one = pod.containers[-1]
    if at == _STATE:
        if key == "State":
            one.status, one.status_line = value, number
        return key
    if state == "State":
        one.fields.setdefault(key, value)
        if key == "Reason":
            one.status, one.status_line = value, number
    elif state == "Limits" and key in GPUS and value.isdecimal():
        one.gpus = int(value)
    return state


def _pod(told: _Described, source: str) -> Pod:
    main = next((one for one in told.containers if one.gpus), None)
    main = main or next(iter(told.containers), _Container())
    name, line = told.fields["Name"]
    status, said = told.fields.get("Status", ("", line))
    if main.status and main.status not in ("Running", "Waiting", "Terminated"):
        status, said = main.status, main.status_line
    node = told.fields.get("Node", ("", 0))[0].partition("/")[0]
    code = main.fields.get("Exit Code", "")
    return Pod(
        name=name,
        status=status,
        cite=RecordCite(source, f"line {said}", status, f"Name={name} Status={status}"),
        node=node if node and node != "<none>" else None,
        job=job_by(told.labels),
        started_at=described_time(
            main.fields.get("Started") or told.fields.get("Start Time", ("", 0))[0]
        ),
        ended_at=described_time(main.fields.get("Finished", "")),
        exit_code=int(code) if code.isdecimal() else None,
        gpus=main.gpus,
    )


def parse(data: bytes, source: str) -> Records:
    """Pods, and nodes by their names and addresses. Raises `FormatError` for other data."""
    if not recognise(source, data):
        raise FormatError("no description of a pod alone")
    described = _pods(data)
    pods = [_pod(one, source) for one in described]
    known = [
        (key, pod.node)
        for one, pod in zip(described, pods, strict=True)
        for key in (pod.name, one.fields.get("IP", ("", 0))[0])
        if key and pod.node
    ]
    return Records(addresses=named_once(known), pods=tuple(pods))


def recognise(name: str, head: bytes) -> bool:
    """Whether it begins as a description of a pod, and nothing but such stands in it."""
    if not _IS.match(head) or not all(needed in head for needed in _NEEDED):
        return False
    return all(map(_ROW.match, head.rpartition(b"\n")[0].split(b"\n")))


def resolve(data: bytes, pointer: str) -> Scalar:
    """The value in `line 12`."""
    found = _POINTER.fullmatch(pointer)
    lines = _lines(data) if found else []
    at = int(found[1]) if found else 0
    row = _FIELD.match(lines[at - 1]) if 0 < at <= len(lines) else None
    if row is None:
        raise FormatError(f"no such value: {pointer!r}")
    return (row[3] or "").strip()
