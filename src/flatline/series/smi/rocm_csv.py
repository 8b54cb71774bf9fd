"""
`rocm-smi ... --csv`: tables one after another, each with its header, a line a card.

The tool prints no time: only a date on a line before them gives them one.  Several tables behind
one date are of one time.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from flatline.series.smi._rocm import card
from flatline.series.smi._rows import Row, begins, documents, only

TOOL = "rocm-smi"
_LINE = re.compile(r"device,|card\d{1,3},|system,|WARNING: ")
_KNOWN = re.compile(r"device,.*(?:GPU use|Temperature|Package Power|VRAM|clock speed)")


def recognise(head: bytes) -> bool:
    first = [line for line in begins(head) if not line.startswith("WARNING")]
    return bool(first) and _KNOWN.match(first[0]) is not None and only(head, _LINE)


def read(text: str) -> Iterator[Row]:
    for (at, zoned), document in documents(text):
        header: list[str] = []
        cards: dict[str, dict[str, object]] = {}
        for cells in csv.reader(document.splitlines()):
            if cells[:1] == ["device"]:
                header = cells
            elif len(cells) == len(header) and cells[0].startswith("card"):
                own = cards.setdefault(cells[0], {})
                own |= dict(zip(header[1:], cells[1:], strict=True))
        for name, fields in cards.items():
            yield Row(at, zoned, *card(name, fields))
