"""
A dashboard for what a target holds, as Grafana imports it.

Panels ask canonical questions; the vocabulary of each exporter that is there puts them into the
target's own names, so that every query of the dashboard runs here, and wherever the same metrics
lie.  What nothing carries has no panel and stands in the dashboard's description.

Layout: https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from flatline.collect.scalars import SCALAR, STEP
from flatline.errors import QueryRejected
from flatline.model import Gap
from flatline.redact import mask
from flatline.series.matching import Matcher
from flatline.series.promql.parse import parse
from flatline.series.storage import NAME, Store
from flatline.signals import ClockEvent
from flatline.vocab import Exporter, bind, vocabularies
from flatline.vocab.rewrite import rewrite, signals_in

SCHEMA = 39
"""The model's version that Grafana 11 writes; later ones migrate it when it is opened."""
WIDTH, HEIGHT, ROW = 12, 8, 1
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A canonical question, and what its series are called beside their place."""

    query: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """Questions that share an axis; `unit` is Grafana's own identifier."""

    title: str
    unit: str
    asked: tuple[Asked, ...]


def _panel(title: str, unit: str, *queries: str | tuple[str, str]) -> Panel:
    asked = tuple(Asked(q) if isinstance(q, str) else Asked(*q) for q in queries)
    return Panel(title, unit, asked)


def _reason(event: ClockEvent) -> tuple[str, str]:
    """How many GPUs have a reason's bit set."""
    return f"sum(floor(gpu_clock_event_reasons / {event.value}) % 2)", _words(event)


def _words(event: ClockEvent) -> str:
    return str(event.name).lower().replace("_", " ")


_REASONS = (
    ClockEvent.SOFTWARE_POWER_CAP,
    ClockEvent.HARDWARE_SLOWDOWN,
    ClockEvent.SOFTWARE_THERMAL_SLOWDOWN,
    ClockEvent.HARDWARE_THERMAL_SLOWDOWN,
    ClockEvent.POWER_BRAKE,
)
ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    ("Training", (
        _panel("Loss", "short", "training_loss"),
        _panel("Throughput", "short", ("training_tokens_per_second", "tokens/s and device")),
        _panel("Time of a step", "s", "training_step_seconds"),
        _panel("Step", "none", "training_step"),
        _panel("Gradient norm", "short", "training_gradient_norm"),
    )),
    ("GPU", (
        _panel("Power", "watt", "gpu_power_watts", ("gpu_power_limit_watts", "limit")),
        _panel("SM activity", "percentunit", "gpu_sm_active_ratio"),
        _panel("Utilisation (waiting counts as work)", "percentunit", "gpu_utilization_ratio",
               ("gpu_engine_active_ratio", "engine")),
        _panel("SM clock", "hertz", "gpu_sm_clock_hertz", ("gpu_sm_clock_max_hertz", "highest")),
        _panel("Temperature", "celsius", "gpu_temperature_celsius",
               ("gpu_memory_temperature_celsius", "memory")),
        _panel("GPUs with their clock held down, by reason", "none", *map(_reason, _REASONS)),
        _panel("Share of time throttled", "percentunit",
               ("rate(gpu_throttled_power_seconds_total[5m])", "power"),
               ("rate(gpu_throttled_thermal_seconds_total[5m])", "heat")),
        _panel("Device memory in use", "bytes", "gpu_memory_used_bytes"),
    )),
    ("GPU faults", (
        _panel("Last Xid (a state, not an event)", "none", "gpu_xid"),
        _panel("Xids in 5 minutes", "none", "increase(gpu_xid_errors_total[5m])"),
        _panel("Memory errors in 5 minutes", "none",
               ("increase(gpu_ecc_corrected_total[5m])", "corrected"),
               ("increase(gpu_ecc_uncorrectable_total[5m])", "uncorrectable")),
        _panel("Rows remapped", "none", ("gpu_row_remap_uncorrectable_total", "uncorrectable"),
               ("gpu_row_remap_pending", "pending"), ("gpu_row_remap_failed", "failed")),
        _panel("NVLink errors in 5 minutes", "none",
               ("increase(gpu_nvlink_crc_errors_total[5m])", "checksum"),
               ("increase(gpu_nvlink_replay_errors_total[5m])", "replay"),
               ("increase(gpu_nvlink_recovery_errors_total[5m])", "recovery"),
               ("increase(gpu_link_uncorrectable_total[5m])", "uncorrectable")),
        _panel("PCIe errors in 5 minutes", "none",
               ("increase(gpu_pcie_replay_total[5m])", "replay"),
               ("increase(gpu_pcie_fatal_total[5m])", "fatal")),
    )),
    ("Fabric", (
        _panel("RDMA traffic", "Bps", ("rate(rdma_transmit_bytes_total[5m])", "sent"),
               ("rate(rdma_receive_bytes_total[5m])", "received")),
        _panel("RDMA packets lost, a second", "short",
               ("rate(rdma_retransmits_total[5m])", "sent again"),
               ("rate(rdma_ack_timeouts_total[5m])", "no acknowledgement"),
               ("rate(rdma_sequence_errors_total[5m])", "sequence errors"),
               ("rate(rdma_out_of_sequence_total[5m])", "out of sequence")),
        _panel("RDMA link errors in 5 minutes", "none",
               ("increase(rdma_link_downed_total[5m])", "down"),
               ("increase(rdma_link_recoveries_total[5m])", "recovered"),
               ("increase(rdma_symbol_errors_total[5m])", "symbol errors"),
               ("increase(rdma_retries_exceeded_total[5m])", "retries exceeded")),
        _panel("RDMA ports up", "none", "sum by (host) (rdma_port_up)"),
        _panel("Network traffic", "Bps", ("rate(network_transmit_bytes_total[5m])", "sent"),
               ("rate(network_receive_bytes_total[5m])", "received")),
        _panel("TCP segments sent again, a second", "short", "rate(tcp_retransmits_total[5m])"),
    )),
    ("Host", (
        _panel("Run queue", "none", "host_procs_running"),
        _panel("CPU pressure", "percentunit", "rate(host_cpu_pressure_seconds_total[5m])"),
        _panel("Memory pressure", "percentunit", "rate(host_memory_pressure_seconds_total[5m])"),
        _panel("Memory available", "bytes", "host_memory_available_bytes"),
        _panel("Context switches, a second", "short", "rate(host_context_switches_total[5m])"),
        _panel("Processes killed for memory, in 5 minutes", "none",
               "increase(host_oom_kills_total[5m])"),
    )),
    ("Storage", (
        _panel("Tasks in uninterruptible sleep", "none", "host_procs_blocked"),
        _panel("Storage pressure", "percentunit", "rate(host_io_pressure_seconds_total[5m])",
               ("host_io_pressure_ratio", "last seconds")),
        _panel("Memory that waits for storage", "bytes", "host_memory_dirty_bytes"),
    )),
)  # fmt: skip
_TAGS: tuple[tuple[str, str, str], ...] = (
    ("Loss (TensorBoard)", "short", ".*[lL]oss.*"),
    ("Throughput (TensorBoard)", "short", ".*(per_sec|[tT]hroughput|tps|_per_s).*"),
    ("Time of a step (TensorBoard)", "s", ".*(step_time|iteration[-_]time|step_timing).*"),
    ("Gradient norm (TensorBoard)", "short", ".*grad.*norm.*"),
)
"""Title, unit, and the tags that frameworks write such scalars under."""


def dashboard(store: Store, name: str) -> dict[str, Any]:
    """The dashboard's JSON model. Raises SourceError where the store cannot be read."""
    names = store.names()
    exporters = [e for v in vocabularies() if (e := bind(v, names)) is not None]
    panels: list[dict[str, Any]] = []
    absent: list[str] = []
    below = 0
    for title, wanted in ROWS:
        made = []
        for panel in wanted:
            targets = _targets(panel, exporters)
            made += [(panel.title, panel.unit, targets)] if targets else []
            absent += [] if targets else [panel.title]
        made = [*_scalars(store, names), *made] if title == "Training" else made
        if made:
            below = _laid_out(title, made, panels, below)
    return {
        "title": mask(f"Flatline: {name}"),
        "description": _absent(absent),
        "tags": ["flatline"],
        "timezone": "utc",
        "editable": True,
        "schemaVersion": SCHEMA,
        "refresh": "",
        "time": _time(store),
        "templating": {"list": [_VARIABLE]},
        "annotations": {"list": []},
        "panels": panels,
    }


_VARIABLE = {
    "name": "datasource",
    "label": "Data source",
    "type": "datasource",
    "query": "prometheus",
    "current": {},
    "hide": 0,
}


def _targets(panel: Panel, exporters: Sequence[Exporter]) -> list[dict[str, Any]]:
    """What a panel asks of each exporter that carries it; of several the legend says which."""
    found = [
        (exporter, asked, native.text)
        for asked in panel.asked
        for exporter in exporters
        if all(s.name in exporter.carriers for s in signals_in(parse(asked.query)))
        and (native := _native(asked.query, exporter)) is not None
    ]
    several = len({exporter.name for exporter, _, _ in found}) > 1
    return [
        _target(number, query, _legend(exporter, asked, several=several))
        for number, (exporter, asked, query) in enumerate(found)
    ]


def _native(query: str, exporter: Exporter) -> Any:
    try:
        native = rewrite(query, exporter)
    except QueryRejected:
        return None
    return None if isinstance(native, Gap) else native


def _legend(exporter: Exporter, asked: Asked, *, several: bool) -> str:
    labels = {name for signal in signals_in(parse(asked.query)) for name in signal.labels}
    if asked.query.startswith("sum("):
        labels = set()
    elif asked.query.startswith("sum by (host)"):
        labels = {"host"}
    kept = ["{{" + rule.label + "}}" for name, rule in exporter.labels.items() if name in labels]
    words = [*kept, asked.name, f"({exporter.name})" if several else ""]
    return " ".join(word for word in words if word)


def _target(number: int, query: str, legend: str) -> dict[str, Any]:
    return {
        "refId": chr(ord("A") + number % 26) + (str(number // 26) if number >= 26 else ""),
        "datasource": SOURCE,
        "expr": query,
        "legendFormat": legend or "__auto",
        "editorMode": "code",
        "range": True,
    }


def _scalars(store: Store, names: Mapping[str, frozenset[str]]) -> Iterator[tuple[str, str, Any]]:
    """Panels of what TensorBoard's event files hold."""
    if SCALAR not in names:
        return
    for title, unit, tags in _TAGS:
        if store.labels((Matcher(NAME, "=", SCALAR), Matcher("tag", "=~", tags))):
            yield title, unit, [_target(0, f'{SCALAR}{{tag=~"{tags}"}}', "{{run}} {{tag}}")]
    yield "Step (TensorBoard)", "none", [_target(0, STEP, "{{run}}")]


def _laid_out(
    title: str, made: Sequence[tuple[str, str, Any]], panels: list[dict[str, Any]], below: int
) -> int:
    """A row and its panels, two beside each other; where the next row begins."""
    panels.append(
        {
            "id": len(panels) + 1,
            "type": "row",
            "title": title,
            "collapsed": False,
            "panels": [],
            "gridPos": {"x": 0, "y": below, "w": 2 * WIDTH, "h": ROW},
        }
    )
    below += ROW
    for number, (name, unit, targets) in enumerate(made):
        place = {"x": number % 2 * WIDTH, "y": below + number // 2 * HEIGHT}
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "timeseries",
                "title": name,
                "datasource": SOURCE,
                "targets": targets,
                "gridPos": {**place, "w": WIDTH, "h": HEIGHT},
                "fieldConfig": {"defaults": {"unit": unit, "custom": _DRAWN}, "overrides": []},
                "options": {
                    "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
                    "tooltip": {"mode": "multi", "sort": "desc"},
                },
            }
        )
    return below + (len(made) + 1) // 2 * HEIGHT


_DRAWN = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 0, "showPoints": "auto",
          "spanNulls": False}  # fmt: skip


def _absent(titles: Sequence[str]) -> str:
    if not titles:
        return "What the run left behind, as flatline serve answers it."
    return "Nothing that was read measures: " + "; ".join(titles) + "."


def _time(store: Store) -> dict[str, str]:
    """From the first sample to the last, as Grafana spells instants."""
    if store.span is None:
        return {"from": "now-6h", "to": "now"}
    first, last = (datetime.fromtimestamp(at, UTC) for at in store.span)
    return {
        "from": first.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "to": last.strftime("%Y-%m-%dT%H:%M:%S.999Z"),
    }
