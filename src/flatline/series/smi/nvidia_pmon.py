"""
`nvidia-smi pmon`: a line a process and second; what each of them took of its GPU.

`smi_process_utilization_ratio` and `smi_process_memory_bytes`, by `pid` and `command`.  No family
asks for them: they are there for `query` and `serve`.  Times are as those of `dmon`.
Source: `nvidia-smi pmon -h`, outputs of drivers 384 to 590.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flatline.series.smi._dmon import instant, table
from flatline.series.smi._rows import Row, number, only

TOOL = "nvidia-smi pmon"
_FIRST = re.compile(rb"#\s?(?:Date[,\s]+)?(?:Time[,\s]+)?gpu[,\s]+pid\b")
_LINE = re.compile(
    r"#|[ \t]*(?:\d{8}[, \t]+)?(?:\d\d:\d\d:\d\d[, \t]+)?\d+[, \t]+"
    r"(?:\d+[, \t]+[CGM+]+|-[, \t]+-)[,\s]"
)


def recognise(head: bytes) -> bool:
    return _FIRST.match(head) is not None and only(head, _LINE)


def read(text: str) -> Iterator[Row]:
    for cells, units in table(text):
        if not cells.get("pid", "").isdecimal():
            continue  # a GPU that nobody uses has a line of dashes
        values = {}
        for name, unit, metric in (("sm", "%", "smi_process_utilization_ratio"),
                                   ("fb", "MB", "smi_process_memory_bytes")):  # fmt: skip
            value = number(cells.get(name, ""), unit) if units.get(name) == unit else None
            if value is not None:
                values[metric] = value
        at, zoned = instant(cells)
        labels = {"gpu": cells["gpu"], "pid": cells["pid"], "command": cells.get("command", "")}
        yield Row(at, zoned, labels, values)
