"""
What amd-smi's forms share: the fields of a GPU by their path, as values.

A field is a number, a number with its unit in one text, or `{"value": 140, "unit": "W"}`; `N/A`
is no value.  A number without a unit is in the unit amdsmi itself uses: W, MHz, C, %, MB (of
1024 kB).  The temperature is the edge's where it is measured, else the hotspot's.
Source: `amd-smi metric`, `amd-smi monitor` of ROCm 6.0 to 7.2, `amdsmi_cli/amdsmi_logger.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flatline.series.smi._rows import number

EDGE, HOTSPOT = "amdsmi_temperature_celsius", "hotspot"
METRIC: tuple[tuple[str, str, str], ...] = (
    ("power/socket_power", "W", "amdsmi_power_watts"),
    ("power/current_socket_power", "W", "amdsmi_power_watts"),
    ("power/current_power", "W", "amdsmi_power_watts"),
    ("power/average_socket_power", "W", "amdsmi_power_watts"),
    ("usage/gfx_activity", "%", "amdsmi_utilization_ratio"),
    ("usage/gfx_usage", "%", "amdsmi_utilization_ratio"),
    ("usage/umc_activity", "%", "amdsmi_memory_activity_ratio"),
    ("usage/mem_usage", "%", "amdsmi_memory_activity_ratio"),
    ("temperature/edge", "C", EDGE),
    ("temperature/hotspot", "C", EDGE),
    ("temperature/mem", "C", "amdsmi_memory_temperature_celsius"),
    ("clock/gfx_0/clk", "MHz", "amdsmi_gfx_clock_hertz"),
    ("clock/gfx/clk", "MHz", "amdsmi_gfx_clock_hertz"),
    ("clock/gfx_0/max_clk", "MHz", "amdsmi_gfx_clock_max_hertz"),
    ("clock/gfx/max_clk", "MHz", "amdsmi_gfx_clock_max_hertz"),
    ("clock/mem_0/clk", "MHz", "amdsmi_memory_clock_hertz"),
    ("clock/mem/clk", "MHz", "amdsmi_memory_clock_hertz"),
    ("mem_usage/used_vram", "MB", "amdsmi_memory_used_bytes"),
    ("mem_usage/total_vram", "MB", "amdsmi_memory_total_bytes"),
    ("ecc/total_correctable_count", "", "amdsmi_ecc_corrected_total"),
    ("ecc/total_correctable", "", "amdsmi_ecc_corrected_total"),
    ("ecc/total_uncorrectable_count", "", "amdsmi_ecc_uncorrectable_total"),
    ("ecc/total_uncorrectable", "", "amdsmi_ecc_uncorrectable_total"),
    ("pcie/replay_count", "", "amdsmi_pcie_replay_total"),
)
"""Path, unit where none is said, metric; of several for one metric the first that has a value."""
MONITOR: tuple[tuple[str, str, str], ...] = (
    ("power_usage", "W", "amdsmi_power_watts"),
    ("hotspot_temperature", "C", EDGE),
    ("memory_temperature", "C", "amdsmi_memory_temperature_celsius"),
    ("gfx_clk", "MHz", "amdsmi_gfx_clock_hertz"),
    ("gfx_clock", "MHz", "amdsmi_gfx_clock_hertz"),
    ("mem_clock", "MHz", "amdsmi_memory_clock_hertz"),
    ("gfx", "%", "amdsmi_utilization_ratio"),
    ("gfx_util", "%", "amdsmi_utilization_ratio"),
    ("mem", "%", "amdsmi_memory_activity_ratio"),
    ("mem_util", "%", "amdsmi_memory_activity_ratio"),
    ("vram_used", "MB", "amdsmi_memory_used_bytes"),
    ("vram_total", "MB", "amdsmi_memory_total_bytes"),
    ("single_bit_ecc", "", "amdsmi_ecc_corrected_total"),
    ("double_bit_ecc", "", "amdsmi_ecc_uncorrectable_total"),
    ("pcie_replay", "", "amdsmi_pcie_replay_total"),
)
"""The same for what `amd-smi monitor` calls things: its `mem` is a share of time."""


def values_of(
    fields: Mapping[str, Any], table: tuple[tuple[str, str, str], ...]
) -> dict[str, float]:
    found: dict[str, float] = {}
    for path, unit, metric in table:
        value = _value(fields.get(path), unit)
        if value is not None:
            found.setdefault(metric, value)
    return found


def _value(said: Any, unit: str) -> float | None:
    if isinstance(said, dict):
        own = said.get("unit")
        return _value(said.get("value"), own if isinstance(own, str) and own else unit)
    if isinstance(said, bool) or not isinstance(said, int | float | str):
        return None
    return number(str(said), unit)


def flat(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Every field by its path; what has a value and a unit is one field."""
    for name, inside in value.items():
        path = f"{above}{str(name).lower()}"
        if isinstance(inside, dict) and "value" not in inside and path.count("/") < 8:
            yield from flat(inside, f"{path}/")
        else:
            yield path, inside
