"""
`amd-smi metric --json` and `amd-smi monitor --json`: a list of GPUs, or `{"gpu_data": [...]}`, one
after another.

With `--watch` each GPU has `timestamp`, seconds since 1970; else a date may stand on a line
before the document.  Shapes: ROCm 6.0 to 7.2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from flatline.series.smi._amd import METRIC, MONITOR, flat, values_of
from flatline.series.smi._rows import UNKNOWN, Row, documents, epoch, undated

TOOL = "amd-smi"
_FIRST = re.compile(
    rb"(?:\[\s*)?\{\s*(?:\"gpu_data\"\s*:\s*\[\s*\{\s*)?"
    rb"(?:\"timestamp\"\s*:\s*\d+\s*,\s*)?\"gpu\"\s*:\s*\d+\s*,\s*"
    rb"\"(?:usage|power|clock|temperature|mem_usage|power_usage|ecc|pcie|hotspot_temperature)\""
)


def recognise(head: bytes) -> bool:
    return _FIRST.match(undated(head)) is not None


def read(text: str) -> Iterator[Row]:
    for at, document in documents(text):
        for gpu in _gpus(document):
            fields = dict(flat(gpu))
            own = epoch(str(fields.get("timestamp", "")))
            monitor = "power_usage" in fields or "hotspot_temperature" in fields
            when, zoned = own if own != UNKNOWN else at
            index = fields.get("gpu")
            if isinstance(index, int):
                values = values_of(fields, MONITOR if monitor else METRIC)
                yield Row(when, zoned, {"gpu": str(index)}, values)


def _gpus(text: str) -> Iterator[dict[str, Any]]:
    """Every GPU of the documents in a text; one that is cut off ends it."""
    decoder, at = json.JSONDecoder(), 0
    while found := re.compile(r"[\[{]").search(text, at):
        try:
            value, at = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            return
        if isinstance(value, dict):
            value = value.get("gpu_data", [value])
        for gpu in value if isinstance(value, list) else ():
            if isinstance(gpu, dict):
                yield gpu
