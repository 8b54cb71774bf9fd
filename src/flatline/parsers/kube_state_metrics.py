"""
kube-state-metrics as text: which pods ran where, in what phase, and which nodes were not ready.

Read from a file of its samples alone, with or without their times: a scrape, or a dump of the
time of a run.  Of each pod the last sample counts.  A pod of which no phase was kept has no
status: an ended one stays listed until its job is deleted.

`kube_pod_info` gives the node, the address and what created the pod; `kube_pod_status_phase`, the
reasons of `kube_pod_container_status_terminated_reason`, `_waiting_reason` and
`kube_pod_status_reason` the status, as `kubectl get pods` puts them together; start and completion
bear Unix times.  Restarted containers say so by `_last_terminated_reason`, which is of the one
before and no status.

`kube_node_status_condition` of Ready: a node whose status is unknown was not heard of for the
controller's grace period (40 or 50 s), so it does not respond; one that says itself that it is
not ready still does.

Source: kubernetes/kube-state-metrics docs/metrics/workload/pod-metrics.md,
docs/metrics/cluster/node-metrics.md (v2); kubernetes pkg/printers (printPod).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from flatline.errors import FormatError
from flatline.model import NodeEvent, Place, Pod, RecordCite, Records, Scalar
from flatline.parsers._rows import decoded
from flatline.parsers._slurm import named_once

FORMAT = "kube-state-metrics"
_SAMPLE = re.compile(
    r"(kube_[a-z_]{1,80})\{((?:[^\"}]|\"(?:[^\"\\]|\\.)*\"){0,4000})\} ([0-9.eE+-]{1,24})"
    r"(?: (\d{9,13})(?:\.\d+)?)?\s*$"
)
_LABEL = re.compile(r'([a-z_]{1,60})="((?:[^"\\]|\\.){0,400})"')
_POINTER = re.compile(r"line (\d{1,9})")
_HEAD_LINES = 200
STALE_MS = 300_000
"""A pod that is no longer told of was deleted: Prometheus looks back so far."""
INFO = "kube_pod_info"
_REASONS = (
    "kube_pod_container_status_terminated_reason",
    "kube_pod_container_status_waiting_reason",
    "kube_pod_status_reason",
)
DONE = "Completed"
PHASE = "kube_pod_status_phase"
_TIMES = ("kube_pod_start_time", "kube_pod_completion_time")
CONDITION = "kube_node_status_condition"
METRICS = (INFO, PHASE, *_REASONS, *_TIMES)
"""What is read of a pod."""
CREATED = frozenset(("Job", "PyTorchJob", "MPIJob", "TFJob", "RayCluster", "JobSet"))
"""What is of a run by its own name; a ReplicaSet or a node is not."""
CLUSTER = "RayCluster"
"""It is there until somebody takes it down, or the RayJob that made it is."""


def recognise(name: str, head: bytes) -> bool:
    """Whether every sample of its beginning is one of these."""
    if b"kube_" not in head:
        return False
    lines = head.split(b"\n", _HEAD_LINES)[:_HEAD_LINES]
    told = [line for line in lines[:-1] or lines if line.strip() and line[:1] != b"#"]
    return bool(told) and all(line.startswith(b"kube_") for line in told)


@dataclass(slots=True)
class _Seen:
    """What was told of one pod last."""

    name: str
    node: str | None = None
    address: str | None = None
    job: str | None = None
    outlives: bool = False
    line: int = 0
    at: int = 0
    phase: tuple[int, str, int] = (-1, "", 0)
    """When it was so last, which, and in which line."""
    reason: tuple[int, bool, str, int] = (-1, False, "", 0)
    """The same of its containers; one that is done tells less than one that failed or waits."""
    times: dict[str, float] = field(default_factory=dict)
    ended: dict[str, tuple[int, float]] = field(default_factory=dict)


@dataclass(slots=True)
class _Node:
    """Samples of its condition: when, in which line, and its state; "" is ready."""

    told: list[tuple[int, int, str]] = field(default_factory=list)

    def events(self, host: str, latest: int, source: str) -> Iterator[NodeEvent]:
        """From the first sample of a state to the first of another, or to where they end."""
        began: tuple[int, int, str] | None = None
        before = 0
        for one in sorted(self.told):
            if began is not None and (one[2] != began[2] or one[0] > before + STALE_MS):
                yield _event(host, began, min(one[0], before + STALE_MS), source)
                began = None
            if began is None and one[2]:
                began = one
            before = one[0]
        if began is not None:
            yield _event(host, began, before if before < latest - STALE_MS else None, source)


def parse(data: bytes, source: str) -> Records:
    """Raises `FormatError` where it holds no sample of a pod or a node."""
    pods: dict[tuple[str, str], _Seen] = {}
    nodes: dict[str, _Node] = {}
    latest = 0
    told = False
    for line, metric, labels, value, at in _samples(decoded(data)):
        told, latest = True, max(latest, at)
        if (pod := labels.get("pod")) is not None:
            seen = pods.setdefault((labels.get("namespace", ""), pod), _Seen(pod))
            _take(seen, line, metric, labels, value, at)
        elif metric == CONDITION and labels.get("condition") == "Ready" and "node" in labels:
            state = _state(labels.get("status", ""), value)
            if state is not None:
                nodes.setdefault(labels["node"], _Node()).told.append((at, line, state))
    if not told:
        raise FormatError("no sample of kube-state-metrics")
    shown = [one for one in pods.values() if one.line and one.at >= latest - STALE_MS]
    names = [(key, one.node) for one in shown for key in (one.name, one.address)]
    return Records(
        pods=tuple(_pod(one, source) for one in shown if one.phase[1]),
        node_events=tuple(e for host, one in nodes.items()
                          for e in one.events(host, latest, source)),
        addresses=named_once((key, node) for key, node in names if key and node),
        now=_moment(latest / 1000),
    )  # fmt: skip


def _samples(text: str) -> Iterator[tuple[int, str, Mapping[str, str], float, int]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.startswith("kube_pod_") and not line.startswith("kube_node_"):
            continue
        found = _SAMPLE.match(line)
        if found is None:
            continue
        stamp = found[4] or "0"
        at = int(stamp) * (1 if len(stamp) > 11 else 1000)
        try:
            value = float(found[3])
        except ValueError:
            continue
        yield number, found[1], dict(_LABEL.findall(found[2])), value, at


def _take(
    seen: _Seen, line: int, metric: str, labels: Mapping[str, str], value: float, at: int
) -> None:
    if metric == INFO:
        seen.node = labels.get("node") or seen.node
        seen.address = labels.get("pod_ip") or seen.address
        if labels.get("created_by_kind") in CREATED:
            seen.job = labels.get("created_by_name") or seen.job
        seen.outlives |= labels.get("created_by_kind") == CLUSTER
        seen.line, seen.at = line, max(seen.at, at)
    elif metric == PHASE and value == 1:
        seen.phase = max(seen.phase, (at, labels.get("phase", ""), line))
    elif metric in _REASONS and value == 1:
        why = labels.get("reason", "")
        seen.reason = max(seen.reason, (at, why != DONE, why, line))
    elif metric in _TIMES:
        seen.times[metric] = value


def _state(status: str, value: float) -> str | None:
    """Each moment has three samples, of which one is 1; that of `true` tells nothing by being 0
    that the others do not."""
    if value != 1:
        return None
    return {"true": "", "false": "NOT_READY", "unknown": "NOT_RESPONDING"}.get(status)


def _event(host: str, began: tuple[int, int, str], until: int | None, source: str) -> NodeEvent:
    at, line, state = began
    text = f"node={host} Ready={'unknown' if state == 'NOT_RESPONDING' else 'false'}"
    return NodeEvent(
        host,
        (state,),
        None,
        RecordCite(source, f"line {line}", "1", text, Place(host=host), _moment(at / 1000)),
        _moment(at / 1000),
        None if until is None else _moment(until / 1000),
        "kubernetes",
    )


def _pod(seen: _Seen, source: str) -> Pod:
    at, phase, line = seen.phase
    told_at, _, reason, told_in = seen.reason
    # phase Running is also that of a pod whose container failed and is started again and again
    goes_on = phase == "Running" and reason == DONE
    status, line = (reason, told_in) if reason and told_at >= at and not goes_on else (phase, line)
    started, ended = (_moment(seen.times.get(name)) for name in _TIMES)
    return Pod(
        seen.name,
        status,
        RecordCite(source, f"line {line}", "1", f"pod={seen.name} {status} node={seen.node}",
                   Place(host=seen.node)),
        node=seen.node,
        job=seen.job,
        started_at=started,
        ended_at=ended,
        outlives=seen.outlives,
    )  # fmt: skip


def _moment(seconds: float | None) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds and 1e9 < seconds < 4e9 else None


def resolve(data: bytes, pointer: str) -> Scalar:
    """The value of the sample at `line 12`."""
    found = _POINTER.fullmatch(pointer)
    lines = decoded(data).split("\n")
    if found is None or not 0 < int(found[1]) <= len(lines):
        raise FormatError(f"{pointer!r} is no place in this record")
    sample = _SAMPLE.match(lines[int(found[1]) - 1])
    if sample is None:
        raise FormatError(f"{pointer!r} is no sample")
    return sample[3]
