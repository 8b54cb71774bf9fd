"""
`nvidia-smi dmon`: a line a GPU and second, under a header of names and one of units.

With `-o DT` each line has date and time, local and without a zone; with `-o T` it lacks the day,
with `-o D` the hour, and without either both: those are no times.  MB are MiB (NVML counts bytes),
`-` is no value.  `sbecc` and `dbecc` count over the life of the card.  `sm` is the share of time
a kernel ran (NVML's utilization.gpu), not the share of SMs.

Source: `nvidia-smi dmon -h`, outputs of drivers 361 to 590.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from flatline.series.smi._dmon import instant, table
from flatline.series.smi._rows import Row, number, only

TOOL = "nvidia-smi dmon"
_METRICS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "pwr": ("smi_power_watts", ("W",)),
    "gtemp": ("smi_temperature_celsius", ("C",)),
    "mtemp": ("smi_memory_temperature_celsius", ("C",)),
    "sm": ("smi_utilization_ratio", ("%",)),
    "mclk": ("smi_memory_clock_hertz", ("MHz",)),
    "pclk": ("smi_sm_clock_hertz", ("MHz",)),
    "fb": ("smi_memory_used_bytes", ("MB",)),
    "sbecc": ("smi_ecc_corrected_total", ("errs",)),
    "dbecc": ("smi_ecc_uncorrectable_total", ("errs",)),
    "pci": ("smi_pcie_replay_total", ("errs",)),
}
"""Column to metric and the unit it has to have: one in another unit is not read."""
_FIRST = re.compile(rb"#\s?(?:Date[,\s]+)?(?:Time[,\s]+)?gpu[,\s](?![^\n]*\bpid\b)")
_LINE = re.compile(r"#|[ \t]*[-\d][-\d.:/ ,\t]*\r?$")


def recognise(head: bytes) -> bool:
    return _FIRST.match(head) is not None and only(head, _LINE)


def read(text: str) -> Iterator[Row]:
    for cells, units in table(text):
        values: dict[str, float] = {}
        for name, said in cells.items():
            metric, known = _METRICS.get(name, ("", ()))
            unit = units.get(name, "")
            value = number(said, unit) if unit in known else None
            if value is not None:
                values[metric] = value
        at, zoned = instant(cells)
        if cells.get("gpu", "").isdecimal():
            yield Row(at, zoned, {"gpu": cells["gpu"]}, values)
