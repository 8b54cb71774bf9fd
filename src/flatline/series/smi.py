"""
What `nvidia-smi` printed into a file, as samples.

`--query-gpu=... --format=csv`, with or without units, once or in a loop; and `-q -x` (XML), once
or one document after another.  Values go by one name whatever the form and the driver called them
(`smi_power_watts{gpu="0",uuid="GPU-..."}`), in base units; `vocab/nvidia_smi.toml` reads them.

Only what carries a time becomes a sample: a table without a `timestamp` column is a gap.  The
program prints local time without a zone; it is read as UTC, and a gap says so.

Source: `nvidia-smi --help-query-gpu` and the XML of drivers 450 to 590.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from flatline.errors import FormatError
from flatline.model import Gap
from flatline.series.storage import NAME, SeriesBuilder, labels_of, seconds

FILE_BYTES = 256 << 20
MAX_COLUMNS = 512
_WATTS, _RATIO = "smi_power_watts", "smi_utilization_ratio"
_COLUMNS: Mapping[str, str] = {
    "power.draw.average": _WATTS,
    "power.draw": _WATTS,
    "power.limit": "smi_power_limit_watts",
    "enforced.power.limit": "smi_power_limit_watts",
    "utilization.gpu": _RATIO,
    "temperature.gpu": "smi_temperature_celsius",
    "temperature.memory": "smi_memory_temperature_celsius",
    "clocks.sm": "smi_sm_clock_hertz",
    "clocks.current.sm": "smi_sm_clock_hertz",
    "clocks.max.sm": "smi_sm_clock_max_hertz",
    "clocks.mem": "smi_memory_clock_hertz",
    "clocks.current.memory": "smi_memory_clock_hertz",
    "clocks_throttle_reasons.active": "smi_clock_event_reasons",
    "clocks_event_reasons.active": "smi_clock_event_reasons",
    "memory.used": "smi_memory_used_bytes",
    "memory.total": "smi_memory_total_bytes",
    "ecc.errors.corrected.volatile.total": "smi_ecc_corrected_total",
    "ecc.errors.uncorrected.volatile.total": "smi_ecc_uncorrectable_total",
    "remapped_rows.uncorrectable": "smi_row_remap_uncorrectable_total",
}
_PATHS: tuple[tuple[str, str], ...] = (
    ("gpu_power_readings/average_power_draw", _WATTS),
    ("gpu_power_readings/power_draw", _WATTS),
    ("power_readings/power_draw", _WATTS),
    ("gpu_power_readings/current_power_limit", "smi_power_limit_watts"),
    ("power_readings/enforced_power_limit", "smi_power_limit_watts"),
    ("utilization/gpu_util", _RATIO),
    ("temperature/gpu_temp", "smi_temperature_celsius"),
    ("temperature/memory_temp", "smi_memory_temperature_celsius"),
    ("clocks/sm_clock", "smi_sm_clock_hertz"),
    ("max_clocks/sm_clock", "smi_sm_clock_max_hertz"),
    ("clocks/mem_clock", "smi_memory_clock_hertz"),
    ("fb_memory_usage/used", "smi_memory_used_bytes"),
    ("fb_memory_usage/total", "smi_memory_total_bytes"),
    ("remapped_rows/remapped_row_unc", "smi_row_remap_uncorrectable_total"),
)
_FACTORS = {"%": 0.01, "MiB": 1048576.0, "MHz": 1e6, "W": 1.0, "C": 1.0, "": 1.0}
_VALUE = re.compile(r"(-?\d{1,18}(?:\.\d{1,9})?)\s?(%|MiB|MHz|W|C)?|(0x[0-9a-fA-F]{1,16})")
_HEADER = re.compile(r"\s*([a-z_]+(?:\.[a-z_]+)*)(?:\s\[([%A-Za-z]+)\])?\s*")
_DOCUMENT = re.compile(r"<nvidia_smi_log>.*?</nvidia_smi_log>", re.DOTALL)


def _columns(cells: list[str]) -> list[tuple[str, str]]:
    """(field, unit) of a header's cells; nothing where they are no header."""
    found = [_HEADER.fullmatch(cell) for cell in cells[:MAX_COLUMNS]]
    named = [(m[1], m[2] or "") if m else ("", "") for m in found]
    return named if len(named) > 1 and sum(bool(name) for name, _ in named) > 1 else []


def read_smi(path: Path, source: str, builder: SeriesBuilder) -> tuple[Gap, ...]:
    """
    One file into the builder; what of it was not read.

    Raises FormatError where it holds no sample, OSError where it cannot be read.
    """
    if path.stat().st_size > FILE_BYTES:
        raise FormatError(f"more than {FILE_BYTES >> 20} MiB of nvidia-smi")
    text = path.read_text("utf-8", "replace")
    rows = _documents(text) if "<nvidia_smi_log>" in text[:1000] else _table(text)
    samples = untimed = 0
    for at, labels, values in rows:
        if at is None:
            untimed += 1
            continue
        for metric, value in values.items():
            builder.add(builder.row(labels_of({NAME: metric, **labels})), at, value)
            samples += 1
    gaps = []
    if untimed:
        gaps.append(Gap("metrics", f"{untimed} rows of nvidia-smi carry no time", source))
    if samples:
        gaps.append(Gap("time zone", "nvidia-smi states none; its times are read as UTC", source))
    elif not untimed:
        raise FormatError("nothing of nvidia-smi in it is known")
    return tuple(gaps)


Read = Iterator[tuple[float | None, dict[str, str], dict[str, float]]]
"""Seconds since 1970, labels and values of one GPU at one time."""


def _table(text: str) -> Read:
    columns: list[tuple[str, str]] = []
    for cells in csv.reader(text.splitlines(), skipinitialspace=True):
        header = _columns(cells)
        if any(name in _COLUMNS for name, _ in header):
            columns = header
            continue
        if len(cells) != len(columns):  # the last line of a file that is still written
            continue
        row = {name: cell.strip() for (name, _), cell in zip(columns, cells, strict=True)}
        values: dict[str, float] = {}
        for (name, unit), cell in zip(columns, cells, strict=True):
            value = _number(cell.strip(), unit) if name in _COLUMNS else None
            if value is not None:
                values.setdefault(_COLUMNS[name], value)
        uuid = row.get("uuid") or row.get("gpu_uuid", "")
        labels = {"gpu": row.get("index") or uuid, "uuid": uuid,
                  "device": row.get("pci.bus_id", ""),
                  "model": row.get("name") or row.get("gpu_name", "")}  # fmt: skip
        yield _instant(row.get("timestamp", ""), "%Y/%m/%d %H:%M:%S.%f"), labels, values


def _documents(text: str) -> Read:
    if "<!ENTITY" in text:
        raise FormatError("an XML document that defines entities is not read")
    for document in _DOCUMENT.finditer(text):
        try:
            root = ElementTree.fromstring(document[0])
        except ElementTree.ParseError:
            continue
        at = _instant(root.findtext("timestamp", ""), "%a %b %d %H:%M:%S %Y")
        for number, gpu in enumerate(root.iter("gpu")):
            values: dict[str, float] = {}
            for path, metric in _PATHS:
                value = _number(gpu.findtext(path, "").strip(), "")
                if value is not None:
                    values.setdefault(metric, value)
            listed = len(root.findall("gpu")) == _count(root)
            uuid = gpu.findtext("uuid", "")
            labels = {"gpu": str(number) if listed else uuid, "uuid": uuid,
                      "device": gpu.get("id", ""),
                      "model": gpu.findtext("product_name", "")}  # fmt: skip
            yield at, labels, values


def _count(root: ElementTree.Element) -> int:
    """How many GPUs the host has: they are listed in the order of their indexes where all are."""
    said = root.findtext("attached_gpus", "").strip()
    return int(said) if said.isdecimal() and len(said) < 5 else -1


def _number(said: str, unit: str) -> float | None:
    """A value in base units; None for N/A and what is none."""
    found = _VALUE.fullmatch(said)
    if found is None:
        return None
    if found[3]:
        return float(int(found[3], 16))
    return float(found[1]) * _FACTORS.get(found[2] or unit, 1.0)


def _instant(said: str, form: str) -> float | None:
    try:
        at = datetime.strptime(" ".join(said.split()), form).replace(tzinfo=UTC)
    except ValueError:
        return None
    return seconds(at.timestamp() * 1000)
