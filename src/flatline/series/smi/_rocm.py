"""
What rocm-smi's `--json` and `--csv` share: the fields of a card by their names.

Source: outputs of ROCm 4.3 to 6.1 (`rocm_smi.py`), which name fields with their unit.
"""

from __future__ import annotations

from collections.abc import Mapping

from flatline.series.smi._rows import number

_FIELDS: tuple[tuple[str, str, str], ...] = (
    ("average graphics package power (w)", "W", "amdsmi_power_watts"),
    ("current socket graphics package power (w)", "W", "amdsmi_power_watts"),
    ("max graphics package power (w)", "W", "amdsmi_power_limit_watts"),
    ("gpu use (%)", "%", "amdsmi_utilization_ratio"),
    ("temperature (sensor edge) (c)", "C", "amdsmi_temperature_celsius"),
    ("temperature (sensor junction) (c)", "C", "amdsmi_temperature_celsius"),
    ("temperature (sensor memory) (c)", "C", "amdsmi_memory_temperature_celsius"),
    ("sclk clock speed:", "", "amdsmi_gfx_clock_hertz"),
    ("mclk clock speed:", "", "amdsmi_memory_clock_hertz"),
    ("vram total used memory (b)", "B", "amdsmi_memory_used_bytes"),
    ("vram total memory (b)", "B", "amdsmi_memory_total_bytes"),
    ("pcie replay count", "", "amdsmi_pcie_replay_total"),
)


def card(name: str, fields: Mapping[str, object]) -> tuple[dict[str, str], dict[str, float]]:
    """Labels and values of `card0`; clocks carry their own unit, and without one are none."""
    said = {str(key).lower(): str(value) for key, value in fields.items()}
    values: dict[str, float] = {}
    for field, unit, metric in _FIELDS:
        text = said.get(field, "")
        if "clock" in field and "hz" not in text.lower():
            continue
        value = number(text, unit)
        if value is not None:
            values.setdefault(metric, value)
    labels = {"gpu": name.removeprefix("card"), "device": said.get("pci bus", ""),
              "model": said.get("card series") or said.get("device name", "")}  # fmt: skip
    return labels, values
