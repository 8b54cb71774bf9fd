"""
One function an endpoint of Prometheus's HTTP API, version 1.

What a dead run cannot have (targets that are scraped, rules, alerts, exemplars) is answered
truly, with an empty list, since Grafana asks for it; everything else is not found.  Shapes and
error types are those of `web/api/v1/api.go` and of
https://prometheus.io/docs/prometheus/latest/querying/api/.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from flatline import __version__
from flatline.redact import mask
from flatline.series.promql.tree import render
from flatline.serve.asked import STATUS, Form, Refused, wrong
from flatline.serve.held import Asking, Held

PREFIX = "/api/v1/"
RELEASES = {2: "2.42.0", 3: "3.0.0"}
"""The releases of Prometheus whose answers are given; clients choose by it what they ask."""
TRUNCATED = "results truncated due to limit"
_LABEL_VALUES = re.compile(r"label/([^/]{1,600})/values")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class Call:
    """One request: `within_s` is the longest that any may take."""

    held: Held
    form: Form
    within_s: float

    def asking(self) -> Asking:
        """How the request wants its query answered. Raises Refused."""
        within_s = min(self.within_s, self.form.duration("timeout", self.within_s))
        lookback_s = self.form.text("lookback_delta")
        return Asking(within_s, self.form.duration("lookback_delta") if lookback_s else None)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    document: dict[str, Any]


def answer(held: Held, path: str, method: str, form: Form, within_s: float) -> Answer:
    """The answer to a request for a path below `/api/v1/`."""
    try:
        endpoint, argument = _endpoint(path, method)
        data, said = endpoint(Call(held, form, within_s), *argument)
    except Refused as fault:
        return refusal(fault.kind, str(fault))
    document: dict[str, Any] = {"status": "success", "data": data}
    return Answer(200, document | ({"warnings": said} if said else {}))


def refusal(kind: str, message: str) -> Answer:
    """An error as the API tells it, with secrets masked: what was asked stands in it."""
    document = {"status": "error", "errorType": kind, "error": mask(message)}
    return Answer(STATUS[kind], document)


Said = tuple[Any, Sequence[str]]
"""The data of an answer, and warnings."""
Endpoint = Callable[..., Said]


def _endpoint(path: str, method: str) -> tuple[Endpoint, tuple[str, ...]]:
    name = path.removeprefix(PREFIX)
    values = _LABEL_VALUES.fullmatch(name)
    if values is not None:
        known: tuple[Endpoint, bool] | None = (_label_values, False)
    else:
        known = _ENDPOINTS.get(name)
    if known is None:
        raise Refused(
            "not_found", f"{path[:200]} is not answered here: this serves what a run left"
        )
    if method == "POST" and not known[1]:
        raise Refused("method_not_allowed", f"{path[:200]} is asked with GET")
    return known[0], ((unquote(values[1]),) if values else ())


# --- numbers ------------------------------------------------------------------------------------


def _query(call: Call) -> Said:
    at = call.form.instant("time", call.held.end)
    if not abs(at) < inf:
        raise wrong("time", call.form.text("time"), "is no time a query can have")
    found = call.held.at(call.form.text("query"), at, call.asking())
    return _limited(found, call)


def _query_range(call: Call) -> Said:
    form = call.form
    first, last, step_s = form.instant("start"), form.instant("end"), form.duration("step")
    found = call.held.over(form.text("query"), first, last, step_s, call.asking())
    return _limited(found, call)


def _limited(found: dict[str, Any], call: Call) -> Said:
    """An answer with as many series as are wanted."""
    limit, warnings = call.form.limit(), call.held.warnings
    if limit and found["resultType"] in ("vector", "matrix") and len(found["result"]) > limit:
        return found | {"result": found["result"][:limit]}, [*warnings, TRUNCATED]
    return found, warnings


def _format_query(call: Call) -> Said:
    return render(call.held.parsed(call.form.text("query"))[0]), ()


def _query_exemplars(call: Call) -> Said:
    call.held.parsed(call.form.text("query"))
    return [], ()


# --- what there is ------------------------------------------------------------------------------


def _series(call: Call) -> Said:
    if not call.form.texts("match[]"):
        raise Refused("bad_data", "no match[] parameter provided")
    return _some([dict(labels) for labels in _selected(call)], call)


def _labels(call: Call) -> Said:
    return _some(sorted({name for labels in _selected(call) for name, _ in labels}), call)


def _label_values(call: Call, name: str) -> Said:
    if not name or (call.held.settings.compat == 2 and not _LABEL.fullmatch(name)):
        raise Refused("bad_data", f"{name[:200]!r} is no name of a label")
    found = {value for labels in _selected(call) for key, value in labels if key == name}
    return _some(sorted(found), call)


def _selected(call: Call) -> Sequence[tuple[tuple[str, str], ...]]:
    form = call.form
    first, last = form.instant("start", -inf), form.instant("end", inf)
    if last < first:
        raise wrong("end", form.text("end"), "lies before the start")
    return call.held.series(form.texts("match[]"), first, last, call.within_s)


def _some(found: list[Any], call: Call) -> Said:
    limit = call.form.limit()
    return (found[:limit], [TRUNCATED]) if limit and len(found) > limit else (found, ())


def _metadata(call: Call) -> Said:
    metric, known = call.form.text("metric"), call.held.metadata
    names = [metric] if metric else list(known)
    limit = call.form.limit() or len(names)
    return {name: [known[name]] for name in names[:limit] if name in known}, ()


# --- the server itself --------------------------------------------------------------------------


def _buildinfo(call: Call) -> Said:
    compat = call.held.settings.compat
    return {
        "version": RELEASES[compat],
        "revision": f"flatline {__version__}",
        "branch": "",
        "buildUser": "",
        "buildDate": "",
        "goVersion": "",
    }, ()


def _empty(data: Any) -> Endpoint:
    """An endpoint for what a run that is over has none of."""

    def endpoint(call: Call) -> Said:
        return data, ()

    return endpoint


_ENDPOINTS: Mapping[str, tuple[Endpoint, bool]] = MappingProxyType(
    {
        "query": (_query, True),
        "query_range": (_query_range, True),
        "query_exemplars": (_query_exemplars, True),
        "format_query": (_format_query, True),
        "series": (_series, True),
        "labels": (_labels, True),
        "metadata": (_metadata, False),
        "status/buildinfo": (_buildinfo, False),
        "rules": (_empty({"groups": []}), False),
        "alerts": (_empty({"alerts": []}), False),
        "alertmanagers": (
            _empty({"activeAlertmanagers": [], "droppedAlertmanagers": []}),
            False,
        ),
        "targets": (
            _empty({"activeTargets": [], "droppedTargets": [], "droppedTargetCounts": {}}),
            False,
        ),
        "targets/metadata": (_empty([]), False),
    }
)
"""Each endpoint, and whether its fields may come in a body."""
