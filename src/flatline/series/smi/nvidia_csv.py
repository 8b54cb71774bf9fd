"""
`nvidia-smi --query-gpu=... --format=csv`, with or without units, once or in a loop.

The program prints local time without a zone.  Source: `nvidia-smi --help-query-gpu` of drivers
450 to 590.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping

from flatline.series.smi._rows import Row, local, number

TOOL = "nvidia-smi"
MAX_COLUMNS = 512
HEAD_LINES = 200
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
    "pcie.link.width.current": "smi_pcie_link_width",
    "pcie.link.width.max": "smi_pcie_link_width_max",
    "pcie.link.gen.current": "smi_pcie_link_generation",
    "pcie.link.gen.gpucurrent": "smi_pcie_link_generation",
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
_HEADER = re.compile(r"\s*([a-z_]+(?:\.[a-z_]+)*)(?:\s\[([%A-Za-z]+)\])?\s*")
_FIRST = re.compile(
    rb"(?:^|, ?)(?:power|temperature|utilization|clocks[a-z_]*|memory)\.[a-z_.]+"
    rb"(?: \[[%A-Za-z]+\])?(?:,|\s*$)"
)


def recognise(head: bytes) -> bool:
    """A header, and at least one line of as many columns behind it."""
    header = head.partition(b"\n")[0]
    if len(header) > HEAD_LINES * 50 or not _FIRST.search(header):
        return False
    lines = head.split(b"\n")
    if len(lines) > 1:
        lines.pop()
    alike = sum(line.count(b",") == header.count(b",") for line in lines[:HEAD_LINES])
    return b"," in header and alike == len(lines[:HEAD_LINES]) > 1


def read(text: str) -> Iterator[Row]:
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
        at, zoned = local(row.get("timestamp", ""), "%Y/%m/%d %H:%M:%S.%f")
        yield Row(at, zoned, labels, values)


def _columns(cells: list[str]) -> list[tuple[str, str]]:
    """(field, unit) of a header's cells; nothing where they are no header."""
    found = [_HEADER.fullmatch(cell) for cell in cells[:MAX_COLUMNS]]
    named = [(m[1], m[2] or "") if m else ("", "") for m in found]
    return named if len(named) > 1 and sum(bool(name) for name, _ in named) > 1 else []


def _number(said: str, unit: str) -> float | None:
    """A value, a mask of bits among them."""
    if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", said):
        return float(int(said, 16))
    return number(said, unit)
