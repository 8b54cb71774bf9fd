"""
`nvidia-smi` as it is: the table, once or in a loop, behind the time it was printed at.

The time is local and without a zone.  Two lines are a GPU; what a column cannot show (`N/A`,
`ERR!`, `[N/A]`) is no value, and a name that is cut (`NVIDIA A100-SXM...`) is left.  The count of
uncorrectable errors is that since the driver was loaded.  Source: outputs of drivers 450 to 590.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flatline.series.smi._rows import LINE_CHARS, Row, begins, documents, number, only

TOOL = "nvidia-smi"
_LINE = re.compile(r"[|+]")
_NAMED = re.compile(
    r"\|\s+(?P<gpu>\d{1,4})\s+(?P<name>\S.*?)\s+(?:On|Off|N/A|ERR!|WDDM|TCC|MCDM)\s*\|"
    r"\s*(?P<device>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s+\S+\s*\|"
    r"\s*(?P<ecc>\S+)\s*\|"
)
_SHOWN = re.compile(
    r"\|\s*\S+\s+(?P<temp>\S+)\s+\S+\s+(?P<power>\S+)\s*/\s*(?P<limit>\S+)\s*\|"
    r"\s*(?P<used>\d+MiB)\s*/\s*(?P<total>\d+MiB)\s*\|\s*(?P<busy>\S+)\s"
)
_METRICS = (
    ("power", "smi_power_watts"),
    ("limit", "smi_power_limit_watts"),
    ("temp", "smi_temperature_celsius"),
    ("used", "smi_memory_used_bytes"),
    ("total", "smi_memory_total_bytes"),
    ("busy", "smi_utilization_ratio"),
)


def recognise(head: bytes) -> bool:
    first = begins(head)
    return any("NVIDIA-SMI" in line for line in first[:3]) and only(head, _LINE)


def read(text: str) -> Iterator[Row]:
    for (at, zoned), document in documents(text):
        named: re.Match[str] | None = None
        for line in document.split("\n"):
            line = line[:LINE_CHARS]
            found = _NAMED.match(line)
            shown = _SHOWN.match(line) if named is not None else None
            if found is not None:
                named = found
            elif shown is not None and named is not None:
                yield Row(at, zoned, _labels(named), _values(named, shown))
                named = None


def _labels(named: re.Match[str]) -> dict[str, str]:
    labels = {"gpu": named["gpu"], "device": named["device"]}
    return labels if named["name"].endswith("...") else {**labels, "model": named["name"]}


def _values(named: re.Match[str], shown: re.Match[str]) -> dict[str, float]:
    read_ = {metric: number(shown[name]) for name, metric in _METRICS}
    read_["smi_ecc_uncorrectable_total"] = number(named["ecc"])
    return {metric: value for metric, value in read_.items() if value is not None}
