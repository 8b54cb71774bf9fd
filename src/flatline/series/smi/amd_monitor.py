"""
`amd-smi monitor`: a table, a line a GPU.

With `--watch` the first column is `TIMESTAMP`, seconds since 1970.  Units stand in the cells;
`VRAM_USAGE` is used and total, in GB of 1024 MB.  Columns: ROCm 6.0 to 7.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flatline.series.smi._rows import UNKNOWN, Row, begins, documents, epoch, number, only

TOOL = "amd-smi monitor"
_FIRST = re.compile(r"\s*(?:TIMESTAMP\s+)?GPU\s+(?:XCP\s+)?POWER\s")
_LINE = re.compile(
    r"\s*(?:TIMESTAMP\s+)?GPU\s+|\s*(?:\d{10}\s+)?\d{1,4}\s+(?:\d|N/A)|WARNING: |'CTRL' \+ 'C'"
)
_CELL = re.compile(
    r"(N/A|-?\d+(?:\.\d+)?)(?:\s?/\s?(\d+(?:\.\d+)?))?"
    r"(?: ?(W|kW|°?C|MHz|GHz|%|MB/s|Mb/s|MB|GB|V|mV|J)(?=\s|$))?(?=\s|$)"
)
_METRICS = {
    "POWER": "amdsmi_power_watts",
    "GPU_T": "amdsmi_temperature_celsius",
    "GPU_TEMP": "amdsmi_temperature_celsius",
    "MEM_T": "amdsmi_memory_temperature_celsius",
    "MEM_TEMP": "amdsmi_memory_temperature_celsius",
    "GFX_CLK": "amdsmi_gfx_clock_hertz",
    "GFX_CLOCK": "amdsmi_gfx_clock_hertz",
    "MEM_CLOCK": "amdsmi_memory_clock_hertz",
    "GFX%": "amdsmi_utilization_ratio",
    "GFX_UTIL": "amdsmi_utilization_ratio",
    "MEM%": "amdsmi_memory_activity_ratio",
    "MEM_UTIL": "amdsmi_memory_activity_ratio",
    "VRAM_USED": "amdsmi_memory_used_bytes",
    "VRAM_TOTAL": "amdsmi_memory_total_bytes",
    "SINGLE_ECC": "amdsmi_ecc_corrected_total",
    "DOUBLE_ECC": "amdsmi_ecc_uncorrectable_total",
    "PCIE_REPLAY": "amdsmi_pcie_replay_total",
}
_COUNTS = {"SINGLE_ECC", "DOUBLE_ECC", "PCIE_REPLAY"}


def recognise(head: bytes) -> bool:
    first = [line for line in begins(head) if not line.startswith(("WARNING", "'CTRL'"))]
    return bool(first) and _FIRST.match(first[0]) is not None and only(head, _LINE)


def read(text: str) -> Iterator[Row]:
    names: list[str] = []
    for at, document in documents(text):
        for line in document.split("\n"):
            if _FIRST.match(line):
                names = line.split()
                continue
            cells = list(_CELL.finditer(line))
            if not names or len(cells) != len(names):
                continue
            row = dict(zip(names, cells, strict=True))
            own = epoch(row["TIMESTAMP"][1]) if "TIMESTAMP" in row else UNKNOWN
            when, zoned = own if own != UNKNOWN else at
            if "XCP" not in row or row["XCP"][1] in ("0", "N/A"):
                yield Row(when, zoned, {"gpu": row["GPU"][1]}, _values(row))


def _values(row: dict[str, re.Match[str]]) -> dict[str, float]:
    """A cell without a unit is only a count: what unit another is in would be a guess."""
    found: dict[str, float] = {}
    for name, cell in row.items():
        metric, unit = _METRICS.get(name), cell[3] or ""
        value = number(f"{cell[1]} {unit}".strip()) if unit or name in _COUNTS else None
        if metric is not None and value is not None:
            found[metric] = value
        if name == "VRAM_USAGE" and cell[2]:
            used, total = number(f"{cell[1]} {unit}"), number(f"{cell[2]} {unit}")
            if used is not None and total is not None:
                found |= {"amdsmi_memory_used_bytes": used, "amdsmi_memory_total_bytes": total}
    return found
