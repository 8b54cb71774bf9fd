"""
`sacctmgr show event -P`: when nodes were down, drained or not responding, and why.

These are closed intervals (`TimeEnd`, or Unknown while one lasts), so unlike a snapshot of a
node they still tell of a failure after the node came back.  Rows without a node name speak of
the whole cluster and are left out.  Times carry no zone and are read as UTC (`ZONE_ASSUMED`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flatline.model import NodeEvent, Place, RecordCite, Records, Scalar
from flatline.parsers._rows import Row, Shape, beginning, decoded, header, mentions, resolved, rows
from flatline.parsers._slurm import given, hosts, latest, node_states, read_time

FORMAT = "sacctmgr-events"
ZONE_ASSUMED = True
_TIME = re.compile(r"[\w.:+-]{0,40}")
SHAPE = Shape(
    columns={
        "cluster": "Cluster",
        "clusternodes": "ClusterNodes",
        "cpus": "CPUs",
        "duration": "Duration",
        "end": "TimeEnd",
        "event": "Event",
        "eventraw": "EventRaw",
        "nodecount": "NodeCount",
        "nodename": "NodeName",
        "reason": "Reason",
        "start": "TimeStart",
        "state": "State",
        "stateraw": "StateRaw",
        "timeend": "TimeEnd",
        "timestart": "TimeStart",
        "tres": "TRES",
        "user": "User",
    },
    needs=frozenset({"NodeName"}),
    looks={
        "TimeStart": _TIME,
        "TimeEnd": _TIME,
        "NodeName": re.compile(r"\S*"),
        "State": re.compile(r"[A-Z_]*[*~#!%$@^+\-A-Z_]*"),
    },
    free=frozenset({"Reason", "ClusterNodes"}),
)


def _read(data: bytes) -> Iterator[Row]:
    return rows(decoded(data), SHAPE)


def _events(row: Row, source: str) -> Iterator[NodeEvent]:
    state = row["State"].strip()
    reason = given(row["Reason"])
    at, until = read_time(row["TimeStart"]), read_time(row["TimeEnd"])
    for host in hosts(row["NodeName"]):
        column = "State" if state else "NodeName"
        shown = [f"{c}={row[c].strip()}" for c in ("State", "TimeStart", "TimeEnd") if row[c]]
        text = " ".join((f"NodeName={host}", *shown)) + (f" Reason={reason}" if reason else "")
        cite = RecordCite(source, row.pointer(column), row[column], text, Place(host=host), at)
        yield NodeEvent(host, node_states(state), reason, cite, at=at, until=until)


def parse(data: bytes, source: str) -> Records:
    """Raises `FormatError` without a header that names NodeName; no event at all is a fact."""
    found = list(_read(data))
    events = tuple(event for row in found for event in _events(row, source))
    times = [read_time(row[column]) for row in found for column in ("TimeStart", "TimeEnd")]
    return Records(node_events=events, now=latest(times))


def recognise(name: str, head: bytes) -> bool:
    """Whether one of the first lines is a header of sacctmgr's events."""
    if not mentions(head, *SHAPE.needs):
        return False
    lines = beginning(head)
    return any(
        found is not None and {"NodeName", "State"} <= set(found.columns)
        for found in (header(line, SHAPE) for line in lines)
    )


def resolve(data: bytes, pointer: str) -> Scalar:
    """The value at `row 4, State`; rows count from 1, headers left out."""
    return resolved(data, pointer, _read)
