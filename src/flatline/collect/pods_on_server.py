"""
What kube-state-metrics on a server says of the pods of a run: where they ran and how they fare.

A server holds the pods of a whole cluster, and a log names its own by chance: what its lines or
its file are called after.  With one of them go those of its namespace that the same thing made, or
that bear the same name but for their roles and numbers.

Only the last samples are fetched, from shortly before the last line of the log, or before the last
moment at which a pod still ran if that is later, to when an end is seen.  Where the pods are no
longer told of by then they were deleted, and how they fared at last is unknown: nothing but where
they ran is kept.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from flatline.collect.numbers import Numbers
from flatline.collect.pod_job import stem
from flatline.collect.zone import Logs, when
from flatline.errors import SourceError
from flatline.model import Gap, Job
from flatline.parsers import kube_state_metrics
from flatline.parsers.kube_state_metrics import CREATED, INFO, METRICS, PHASE
from flatline.sources.prometheus import PrometheusServer

NEED = "pods"
BEFORE_S = 300.0
"""Prometheus looks back so far for a sample."""
AFTER_S = 300.0
"""A container that ended is listed so within a scrape, of 15 s to 2 min."""
GONE_S = 150.0
"""Five scrapes of 30 s, the usual interval of kube-state-metrics."""
SILENT_S, LOOKS, STEP_S = 7 * 86_400.0, 1_000, 60.0
"""How long after its last line a run is looked for that may hang, how often, and how closely."""
MOST = 500
"""Names in one question; a run of more pods is told of in part."""
_POD = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Series = tuple[Mapping[str, str], Sequence[tuple[float, str]]]


def pods_asked(
    numbers: Numbers, rows: Sequence[Job], logs: Logs
) -> tuple[tuple[str, bytes], tuple[str, ...]] | None:
    """A record of them as text with what it is called, and the nodes they ran on; None where no
    server was asked for metrics, a scheduler's records tell of the run, or its log names no pod
    that the server knows."""
    first, last = when(rows, logs)
    server = next((r.engine for r in numbers.read if isinstance(r.engine, PrometheusServer)), None)
    if rows or server is None or first is None or last is None:
        return None
    named = sorted(filter(_POD.fullmatch, _heard(logs)))[:MOST]
    if not named:
        return None
    asked = _Asked(server, first.timestamp(), last.timestamp())
    try:
        text = asked.text(named)
    except SourceError as fault:
        numbers.note([Gap(NEED, str(fault), server.source)])
        return None
    if not text:
        return None
    name = f"{server.source}/{kube_state_metrics.FORMAT}"
    nodes = kube_state_metrics.parse(text.encode(), name).addresses.values()
    return (name, text.encode()), tuple(dict.fromkeys(nodes))


def _heard(logs: Logs) -> set[str]:
    """What may be the name of a pod: hosts that lines tell of, and what files are called after."""
    heard = {m.cite.place.host for *_, events in logs for m in events.matches}
    heard |= {part for file, *_ in logs for part in (file.path.stem, *file.path.stem.split("_"))}
    return {name.lower() for name in heard if name}


class _Asked:
    """One server, over the time of one run in Unix seconds."""

    def __init__(self, server: PrometheusServer, first: float, last: float) -> None:
        self._server = server
        self._first, self._begin, self._end = first, last - BEFORE_S, last + AFTER_S

    def text(self, named: Sequence[str]) -> str:
        """Samples of all pods of the run, a line each, sorted; "" where none is known."""
        own = [labels for labels, _ in self._known(_one_of("pod", named))]
        spaces = {labels.get("namespace", "") for labels in own}
        makers = {maker for labels in own if (maker := _maker(labels))}
        stems = {stem(labels.get("pod", "")) for labels in own}
        if len(spaces) != 1 or len(makers or stems) != 1:
            return ""
        space = _one_of("namespace", spaces)
        like = "|".join(f"{_quoted(one)}(-.*)?" for one in sorted(stems))
        ours = [
            labels["pod"]
            for labels, _ in self._known(f'{space},pod=~"{like}"')
            if (_maker(labels) in makers if makers else stem(labels["pod"]) in stems)
        ]
        pods = f"{space},{_one_of('pod', sorted(ours)[:MOST])}"
        self._reach(self._ran_until(pods))
        samples = [*self._last(pods)]
        latest = max((at for _, told in samples for at, _ in told), default=0.0)
        if latest < self._latest() - GONE_S:
            samples = [one for one in samples if one[0].get("__name__") == INFO]
        lines = [line for labels, told in samples for line in _lines(labels, told)]
        return "".join(sorted(lines, key=_when))

    def _reach(self, until: float) -> None:
        """Look at what is told then, where that is later."""
        if until > self._end:
            self._begin, self._end = until - BEFORE_S, until + AFTER_S

    def _ran_until(self, pods: str) -> float:
        """When the last of these pods was told to run, nought where none was since."""
        since = self._end
        self._end = min(since + SILENT_S, max(since, time.time()))
        length = max(1, round(self._end - since))
        step = max(STEP_S, round(length / LOOKS))
        phase = f'{PHASE}{{{pods},phase="Running"}}'
        runs = f"(timestamp({phase}) * ({phase} == 1))"  # of a comparison it is the moment asked
        try:
            told = [*self._data(f"max(max_over_time({runs}[{length}s:{step:.0f}s]))")]
        except SourceError:  # too far for this server: what it tells soon after the log counts
            told = []
        finally:
            self._end = since
        return float(told[0][1][0][1]) if told else 0.0

    def _known(self, pods: str) -> Iterator[Series]:
        """The pods that these labels select, at any time of the run."""
        length = max(1, round(self._end - self._first))
        return self._data(f"last_over_time({INFO}{{{pods}}}[{length}s])")

    def _last(self, pods: str) -> Iterator[Series]:
        length = max(1, round(self._end - self._begin))
        return self._data(f'{{__name__=~"{"|".join(METRICS)}",{pods}}}[{length}s]')

    def _latest(self) -> float:
        """When any pod of the cluster was told of last."""
        told = [*self._data(f"max(timestamp({INFO}))")]
        return float(told[0][1][0][1]) if told else 0.0

    def _data(self, query: str) -> Iterator[Series]:
        form = {"query": [query], "time": [f"{self._end:.3f}"]}
        data = self._server.data("query", form)
        result = data.get("result") if isinstance(data, dict) else None
        for one in result if isinstance(result, list) else ():
            if (series := _series(one)) is not None:
                yield series


def _series(one: Any) -> Series | None:
    """Labels, and samples by time; None where an answer is of another form."""
    try:
        labels = {str(key): str(value) for key, value in one["metric"].items()}
        told = one["values"] if "values" in one else [one["value"]]
        return labels, [(float(at), f"{float(value):.15g}") for at, value in told]
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _maker(labels: Mapping[str, str]) -> str:
    return labels.get("created_by_name", "") if labels.get("created_by_kind") in CREATED else ""


def _lines(labels: Mapping[str, str], told: Iterable[tuple[float, str]]) -> Iterator[str]:
    """As an exposition has them, with their times in milliseconds."""
    name = labels.get("__name__", "")
    told_by = sorted(item for item in labels.items() if item[0] != "__name__")
    shown = ",".join(f'{key}="{value.translate(_ESCAPED)}"' for key, value in told_by)
    for at, value in told:
        yield f"{name}{{{shown}}} {value} {round(at * 1000)}\n"


def _when(line: str) -> tuple[str, str]:
    return line.rpartition(" ")[2], line


def _one_of(label: str, values: Collection[str]) -> str:
    return f'{label}=~"{"|".join(map(_quoted, sorted(values)))}"'


def _quoted(value: str) -> str:
    """Of what RE2 and a PromQL string read as nothing but itself."""
    return re.escape(value).replace("\\", "\\\\").replace('"', r"\"")
