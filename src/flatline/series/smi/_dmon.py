"""Lines under a header of names and one of units, as dmon and pmon print them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from flatline.series.smi._rows import UNKNOWN, At, local


def table(text: str) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """Cells by column, and units by column, of each line; the last of a line's cells takes what
    is left of it."""
    names: list[str] = []
    units: dict[str, str] = {}
    for line in text.split("\n"):
        if line.startswith("#"):
            words = _split(line[1:])
            if "gpu" in words:
                names, units = words, {}
            elif len(words) == len(names):
                units = dict(zip(names, words, strict=True))
            continue
        cells = _split(line, len(names))
        if names and len(cells) == len(names):
            yield dict(zip(names, cells, strict=True)), units


def _split(line: str, most: int = 0) -> list[str]:
    return re.split(r"[,\s]+", line.strip(), maxsplit=max(0, most - 1)) if line.strip() else []


def instant(cells: Mapping[str, str]) -> At:
    """The time a line of dmon or pmon says, where it says all of it."""
    day, hour = cells.get("Date", ""), cells.get("Time", "")
    if not day or not hour:
        return UNKNOWN
    return local(f"{day.replace('/', '')} {hour}", "%Y%m%d %H:%M:%S")
