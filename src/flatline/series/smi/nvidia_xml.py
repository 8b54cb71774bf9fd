"""
`nvidia-smi -q -x`: one document, or one after another, each with its own time.

The program prints local time without a zone.  Source: the XML of drivers 450 to 590.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from flatline.errors import FormatError
from flatline.series.smi._rows import Row, local, number

TOOL = "nvidia-smi"
_PATHS: tuple[tuple[str, str], ...] = (
    ("gpu_power_readings/average_power_draw", "smi_power_watts"),
    ("gpu_power_readings/power_draw", "smi_power_watts"),
    ("power_readings/power_draw", "smi_power_watts"),
    ("gpu_power_readings/current_power_limit", "smi_power_limit_watts"),
    ("power_readings/enforced_power_limit", "smi_power_limit_watts"),
    ("utilization/gpu_util", "smi_utilization_ratio"),
    ("temperature/gpu_temp", "smi_temperature_celsius"),
    ("temperature/memory_temp", "smi_memory_temperature_celsius"),
    ("clocks/sm_clock", "smi_sm_clock_hertz"),
    ("max_clocks/sm_clock", "smi_sm_clock_max_hertz"),
    ("clocks/mem_clock", "smi_memory_clock_hertz"),
    ("fb_memory_usage/used", "smi_memory_used_bytes"),
    ("fb_memory_usage/total", "smi_memory_total_bytes"),
    ("remapped_rows/remapped_row_unc", "smi_row_remap_uncorrectable_total"),
)
_DOCUMENT = re.compile(r"<nvidia_smi_log>.*?</nvidia_smi_log>", re.DOTALL)
_WHOLE = re.compile(
    rb"(?:<\?xml[^>]*>\s*)?(?:<!DOCTYPE nvidia_smi_log[^>\[]*>\s*)?<nvidia_smi_log>.*?"
    rb"</nvidia_smi_log>\s*",
    re.DOTALL,
)


def recognise(head: bytes) -> bool:
    if not head.startswith((b"<?xml", b"<nvidia_smi_log>")):
        return False
    rest = _WHOLE.sub(b"", head).lstrip()
    return b"<nvidia_smi_log>" in head[:400] and rest[:1] in (b"", b"<")


def read(text: str) -> Iterator[Row]:
    """Raises FormatError for a document that defines entities: they can grow without end."""
    if "<!ENTITY" in text:
        raise FormatError("an XML document that defines entities is not read")
    for document in _DOCUMENT.finditer(text):
        try:
            root = ElementTree.fromstring(document[0])
        except ElementTree.ParseError:
            continue
        at, zoned = local(root.findtext("timestamp", ""), "%a %b %d %H:%M:%S %Y")
        listed = len(root.findall("gpu")) == _count(root)
        for index, gpu in enumerate(root.iter("gpu")):
            values: dict[str, float] = {}
            for path, metric in _PATHS:
                value = number(gpu.findtext(path, ""))
                if value is not None:
                    values.setdefault(metric, value)
            uuid = gpu.findtext("uuid", "")
            labels = {"gpu": str(index) if listed else uuid, "uuid": uuid,
                      "device": gpu.get("id", ""),
                      "model": gpu.findtext("product_name", "")}  # fmt: skip
            yield Row(at, zoned, labels, values)


def _count(root: ElementTree.Element) -> int:
    """How many GPUs the host has: they are listed in the order of their indexes where all are."""
    said = root.findtext("attached_gpus", "").strip()
    return int(said) if said.isdecimal() and len(said) < 5 else -1
