"""
`nvidia-smi -q`: one document, or one after another, each with its own time.

Indentation makes the sections.  The time is local and without a zone; `N/A` and `Requested
functionality has been deprecated` are no values.  Errors are those since the driver was loaded
(`Volatile`).  Source: outputs of drivers 450 to 590.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from flatline.series.smi._rows import LINE_CHARS, Row, begins, local, number, only
from flatline.signals import ClockEvent

TOOL = "nvidia-smi -q"
_LINE = re.compile(r"=+NVSMI LOG=+|[A-Z][\w ]{2,40}\s*: |GPU [0-9A-Fa-f:.]+\s*$|\s{4,}\S")
_GPU = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s*")
_FIELD = re.compile(r"( *)([^:]+?)\s*(?:: ?(.*))?")
_PATHS: tuple[tuple[str, str], ...] = (
    ("gpu power readings/average power draw", "smi_power_watts"),
    ("gpu power readings/power draw", "smi_power_watts"),
    ("gpu power readings/instantaneous power draw", "smi_power_watts"),
    ("power readings/power draw", "smi_power_watts"),
    ("gpu power readings/current power limit", "smi_power_limit_watts"),
    ("power readings/enforced power limit", "smi_power_limit_watts"),
    ("utilization/gpu", "smi_utilization_ratio"),
    ("temperature/gpu current temp", "smi_temperature_celsius"),
    ("temperature/memory current temp", "smi_memory_temperature_celsius"),
    ("clocks/sm", "smi_sm_clock_hertz"),
    ("max clocks/sm", "smi_sm_clock_max_hertz"),
    ("clocks/memory", "smi_memory_clock_hertz"),
    ("fb memory usage/used", "smi_memory_used_bytes"),
    ("fb memory usage/total", "smi_memory_total_bytes"),
    ("remapped rows/uncorrectable error", "smi_row_remap_uncorrectable_total"),
    ("pci/replays since reset", "smi_pcie_replay_total"),
)
_FLAGS = (
    ("remapped rows/pending", "smi_row_remap_pending"),
    ("remapped rows/remapping failure occurred", "smi_row_remap_failed"),
)
_REASONS = {
    "idle": ClockEvent.IDLE,
    "applications clocks setting": ClockEvent.APPLICATION_CLOCKS,
    "sw power cap": ClockEvent.SOFTWARE_POWER_CAP,
    "hw slowdown": ClockEvent.HARDWARE_SLOWDOWN,
    "hw slowdown/hw thermal slowdown": ClockEvent.HARDWARE_THERMAL_SLOWDOWN,
    "hw slowdown/hw power brake slowdown": ClockEvent.POWER_BRAKE,
    "sync boost": ClockEvent.SYNC_BOOST,
    "sw thermal slowdown": ClockEvent.SOFTWARE_THERMAL_SLOWDOWN,
    "display clock setting": ClockEvent.DISPLAY_CLOCKS,
}
_SECTIONS = ("clocks event reasons/", "clocks throttle reasons/")
_ECC = "ecc errors/volatile/"


def recognise(head: bytes) -> bool:
    return any("NVSMI LOG" in line for line in begins(head)[:1]) and only(head, _LINE)


def read(text: str) -> Iterator[Row]:
    for document in re.split(r"(?m)^=+NVSMI LOG=+\s*$", text)[1:]:
        said = re.search(r"(?m)^Timestamp\s*: (.*)$", document)
        at, zoned = local(said[1] if said else "", "%a %b %d %H:%M:%S %Y")
        attached = re.search(r"(?m)^Attached GPUs\s*: (\d{1,4})\s*$", document)
        parts = re.split(rf"(?m)^{_GPU.pattern}$", document)
        gpus = list(zip(parts[1::2], parts[2::2], strict=True))
        listed = attached is not None and int(attached[1]) == len(gpus)
        for index, (device, body) in enumerate(gpus):
            fields = _fields(body)
            uuid = fields.get("gpu uuid", "")
            labels = {"gpu": str(index) if listed else uuid or device, "uuid": uuid,
                      "device": device, "model": fields.get("product name", "")}  # fmt: skip
            yield Row(at, zoned, labels, _values(fields))


def _fields(body: str) -> dict[str, str]:
    """Each value by its sections and name, in small letters."""
    found: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in body.split("\n"):
        field = _FIELD.fullmatch(line.rstrip()[:LINE_CHARS])
        if field is None or not field[1]:
            continue
        depth, name = len(field[1]), field[2].lower()
        while above and above[-1][0] >= depth:
            above.pop()
        above.append((depth, name))
        if field[3] is not None:
            found.setdefault("/".join(part for _, part in above), field[3].strip())
    return found


def _values(fields: Mapping[str, str]) -> dict[str, float]:
    values: dict[str, float] = {}
    for path, metric in _PATHS:
        value = number(fields.get(path, ""))
        if value is not None:
            values.setdefault(metric, value)
    for path, metric in _FLAGS:
        if fields.get(path) in ("Yes", "No"):
            values[metric] = float(fields[path] == "Yes")
    for section in _SECTIONS:
        reasons = {bit: fields[section + name] for name, bit in _REASONS.items()
                   if fields.get(section + name) in ("Active", "Not Active")}  # fmt: skip
        if reasons:
            mask = sum(bit.value for bit, said in reasons.items() if said == "Active")
            values["smi_clock_event_reasons"] = float(mask)
    return values | _errors(fields)


def _errors(fields: Mapping[str, str]) -> dict[str, float]:
    """Memory errors of all kinds: newer cards have no total."""
    found: dict[str, float] = {}
    for path, said in fields.items():
        count = number(said) if path.startswith(_ECC) else None
        if count is None:
            continue
        kind = "uncorrectable" if re.search(r"uncorrectable|double bit", path) else "corrected"
        metric = f"smi_ecc_{kind}_total"
        if path.rpartition("/")[2] == "total":  # the sum of its section, as older drivers print
            continue
        found[metric] = found.get(metric, 0.0) + count
    return found
