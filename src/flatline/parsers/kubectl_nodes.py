"""
`kubectl get nodes`: which nodes were not ready when it was asked, and their addresses.

STATUS holds `Ready`, `NotReady` or `Unknown`, and `SchedulingDisabled` of a node that was
cordoned.  Nothing says since when: a node that is not ready may have been lost after the run, or
weeks before.  `-o wide` adds INTERNAL-IP, OS-IMAGE and others, of which values hold spaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flatline.model import NodeEvent, Place, RecordCite, Records, Scalar
from flatline.parsers._rows import Row, decoded, mentions, shown, top, under_header
from flatline.parsers._rows import resolved as found_at
from flatline.parsers._slurm import named_once

FORMAT = "kubectl-nodes"
_APART = re.compile(r" {2,}|\t+")
_NEEDED = ("NAME", "STATUS", "ROLES", "AGE", "VERSION")
_PROMPT = re.compile(r"[^|]{0,120}[$#>%] ?kubectl [^|]{1,200}|# .{1,200}")
_STATES = {
    "NotReady": "NOT_RESPONDING",
    "Unknown": "NOT_RESPONDING",
    "SchedulingDisabled": "DRAIN",
}
"""In Slurm's words, as `Records` has them."""
_ADDRESSES = ("INTERNAL-IP", "EXTERNAL-IP")
_NONE = ("", "<none>", "<unknown>")


def _columns(line: str) -> list[str] | None:
    names = _APART.split(line.strip())
    return names if tuple(names[: len(_NEEDED)]) == _NEEDED else None


def _rows(data: bytes) -> Iterator[Row]:
    """Rows under their header. Raises `FormatError` where the first line is none."""
    return under_header(shown(decoded(data), _PROMPT), _columns, _APART, len(_NEEDED))


def _event(row: Row, source: str) -> NodeEvent | None:
    said = row["STATUS"].split(",")
    states = tuple(_STATES[word] for word in said if word in _STATES)
    if not states:
        return None
    host, text = row["NAME"], f"NAME={row['NAME']} STATUS={row['STATUS']}"
    cite = RecordCite(source, row.pointer("STATUS"), row["STATUS"], text, Place(host=host))
    return NodeEvent(host, states, None, cite, scheduler="kubernetes")


def parse(data: bytes, source: str) -> Records:
    """Raises `FormatError` without its header."""
    rows = list(_rows(data))
    names = [(row[column], row["NAME"]) for row in rows for column in _ADDRESSES]
    return Records(
        node_events=tuple(filter(None, (_event(row, source) for row in rows))),
        addresses=named_once(pair for pair in names if pair[0] not in _NONE),
    )


def recognise(name: str, head: bytes) -> bool:
    """Whether the first line, or the one after the command, is that header."""
    if not mentions(head, "ROLES"):
        return False
    lines = top(head, _PROMPT)
    return bool(lines) and _columns(lines[0]) is not None


def resolve(data: bytes, pointer: str) -> Scalar:
    """The value at `row 2, STATUS`; rows count from 1, headers left out."""
    return found_at(data, pointer, _rows)
