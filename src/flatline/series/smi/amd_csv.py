"""
`amd-smi metric --csv` and `amd-smi monitor --csv`: a header, a line a GPU, lists in quotes.

With `--watch` the first column is `timestamp`, seconds since 1970.  `mem` is the temperature of
the memory in the one and its share of time in the other.  Columns: ROCm 6.0 to 7.2.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from flatline.series.smi._amd import METRIC, MONITOR, values_of
from flatline.series.smi._rows import UNKNOWN, Row, begins, documents, epoch, only

TOOL = "amd-smi"
_KNOWN = {"gfx_activity", "socket_power", "power_usage", "hotspot", "gfx_0_clk", "used_vram"}
_LINE = re.compile(r"(?:timestamp,)?gpu,|(?:\d{10},)?\d{1,4},")
_SHORT = {
    **{path.rpartition("/")[2]: path for path, _, _ in METRIC if not path.startswith("clock/")},
    **{path.split("/", 1)[1].replace("/", "_"): path for path, _, _ in METRIC
       if path.startswith("clock/")},
}  # fmt: skip
"""Columns have the last part of a field's path; those of clocks the last two."""


def recognise(head: bytes) -> bool:
    first = begins(head)
    header = first[0].strip().split(",") if first else []
    return "gpu" in header[:2] and bool(_KNOWN & set(header)) and only(head, _LINE)


def read(text: str) -> Iterator[Row]:
    header: list[str] = []
    for at, document in documents(text):
        for cells in csv.reader(document.splitlines()):
            if "gpu" in cells[:2]:
                header = [cell.strip() for cell in cells]
            elif len(cells) == len(header):
                row = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
                own = epoch(row.get("timestamp", ""))
                when, zoned = own if own != UNKNOWN else at
                if row["gpu"].isdecimal() and row.get("xcp", "0") in ("0", "N/A"):
                    yield Row(when, zoned, {"gpu": row["gpu"]}, _values(row))


def _values(row: dict[str, str]) -> dict[str, float]:
    if "power_usage" in row or "hotspot_temperature" in row:
        return values_of(row, MONITOR)
    return values_of({_SHORT.get(name, name): cell for name, cell in row.items()}, METRIC)
