"""
`rocm-smi` as it is: the table of concise information, once or in a loop.

The tool prints no time: only a date on a line before a table gives it one.  Cells are read from
the end of the line, which the versions share.  The share of VRAM in use has no total beside it
and is left.  Source: outputs of ROCm 2.9 to 7.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flatline.series.smi._rows import Row, begins, documents, number, only

TOOL = "rocm-smi"
_LINE = re.compile(
    r"\s*=|GPU\s+Temp|Device\s+Node|\S{0,6}\s+\(DID|\d{1,3}\s+\S|WARNING: |Exception caught"
)
_FIRST = re.compile(r"=+\s*ROCm System Management Interface")
_TEMPERATURE = re.compile(r"\d+(?:\.\d+)?°?[Cc]")
_CLOCK = re.compile(r"\d+Mhz|None")
_METRICS = (
    ("power", "amdsmi_power_watts"),
    ("limit", "amdsmi_power_limit_watts"),
    ("temp", "amdsmi_temperature_celsius"),
    ("sclk", "amdsmi_gfx_clock_hertz"),
    ("mclk", "amdsmi_memory_clock_hertz"),
    ("busy", "amdsmi_utilization_ratio"),
)


def recognise(head: bytes) -> bool:
    first = begins(head)
    return any(_FIRST.match(line.strip()) for line in first[:3]) and only(head, _LINE)


def read(text: str) -> Iterator[Row]:
    for (at, zoned), document in documents(text):
        for line in document.split("\n"):
            cells = _cells(line[:400].split())
            read_ = {metric: number(cells[name]) for name, metric in _METRICS if name in cells}
            values = {metric: value for metric, value in read_.items() if value is not None}
            if "gpu" in cells:
                yield Row(at, zoned, {"gpu": cells["gpu"]}, values)


def _cells(words: list[str]) -> dict[str, str]:
    """A card's line: index first, then what the versions put there, the temperature, the power
    behind it, two clocks, and at the end the limit, the share of memory and that of time."""
    warm = [at for at, word in enumerate(words) if _TEMPERATURE.fullmatch(word)]
    clocks = [word for word in words if _CLOCK.fullmatch(word)]
    if not warm or len(clocks) < 2 or len(words) < warm[0] + 7 or not words[0].isdecimal():
        return {}
    return {"gpu": words[0], "temp": words[warm[0]], "power": words[warm[0] + 1],
            "sclk": clocks[0], "mclk": clocks[1], "limit": words[-3],
            "busy": words[-1]}  # fmt: skip
