"""
`rocm-smi ... --json`: an object of cards, one document after another.

The tool prints no time: only a date on a line before a document gives it one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from flatline.series.smi._rocm import card
from flatline.series.smi._rows import Row, documents, undated

TOOL = "rocm-smi"
_FIRST = re.compile(rb"\{\s*\"card\d{1,3}\"\s*:\s*\{")
_CARD = re.compile(r"card\d{1,3}")


def recognise(head: bytes) -> bool:
    return _FIRST.match(undated(head)) is not None


def read(text: str) -> Iterator[Row]:
    decoder = json.JSONDecoder()
    for (at, zoned), document in documents(text):
        where = 0
        while (where := document.find("{", where)) >= 0:
            try:
                value, where = decoder.raw_decode(document, where)
            except (ValueError, RecursionError):
                break  # cut off
            for name, fields in value.items() if isinstance(value, dict) else ():
                if isinstance(fields, dict) and _CARD.fullmatch(name):
                    yield Row(at, zoned, *card(name, fields))
