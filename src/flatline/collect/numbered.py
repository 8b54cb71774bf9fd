"""
Which process wrote each log of a series, where its own first lines say so.

Names like `train.05.log` hold a number that may be anything.  Where every log of such a series
says at its beginning that it is process 5 of 8, each another one, the number is the process's; so
it is where each says "rank=5", and all from 0 on are there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from flatline.collect.files import Found
from flatline.errors import SourceError
from flatline.facts import LOG
from flatline.logs.places import NamePlace
from flatline.logs.reading import read_head

LEAST, MOST, HEAD_BYTES = 2, 4096, 4096
"""Logs of a series that are looked at, and how far into each."""
_DIGITS = re.compile(r"\d+")
_SAYS = re.compile(
    rb"\b(?P<what>process|proc|task|rank|worker|slot|member|replica|trainer)(?:[ _](?:id|index))?"
    rb"[ =:]{1,2}(?P<n>\d{1,6})"
    rb"(?: ?(?:/|of) ?(?P<of>\d{1,6})\b|(?![\w.]| ?/))|(?<![\w./-])r(?P<r>\d{1,6})(?![\w.-])",
    re.IGNORECASE,
)


def numbered(files: Sequence[Found], names: Mapping[str, NamePlace]) -> dict[str, NamePlace]:
    """The places of logs whose names say none; nothing of a series of which one says nothing, or
    two say the same."""
    series: dict[str, list[Found]] = defaultdict(list)
    for file in files:
        if file.kind == LOG and names[file.source] == NamePlace() and _DIGITS.search(file.source):
            series[_DIGITS.sub("#", file.source)].append(file)
    placed: dict[str, NamePlace] = {}
    for logs in series.values():
        if LEAST <= len(logs) <= MOST:
            placed |= _together(logs)
    return placed


def _together(logs: Sequence[Found]) -> dict[str, NamePlace]:
    said: dict[str, tuple[bytes, int, int]] = {}
    for file in logs:
        told = _said(file)
        if told is None or str(told[1]) not in _numbers(file.source):
            return {}
        said[file.source] = told
    kinds, counts = {(what, of) for what, _, of in said.values()}, {n for _, n, _ in said.values()}
    all_there = counts == {*range(len(said))} or 0 not in {of for _, of in kinds}
    if len(kinds) != 1 or len(counts) < len(said) or not all_there:
        return {}
    return {
        source: NamePlace(rank=n) if what == b"rank" else NamePlace(task=n)
        for source, (what, n, _) in said.items()
    }


def _numbers(source: str) -> set[str]:
    """Without the noughts before them, as they are counted."""
    return {str(int(digits)) for digits in _DIGITS.findall(source)}


def _said(file: Found) -> tuple[bytes, int, int] | None:
    """What it is, its number, and of how many, 0 where it does not say that."""
    try:
        found = _SAYS.search(read_head(file.path, HEAD_BYTES))
    except (OSError, SourceError):  # told of where it is read
        return None
    if found is None:
        return None
    if found["r"] is not None:
        return b"rank", int(found["r"]), 0
    number, of = int(found["n"]), int(found["of"] or 0)
    return (found["what"].lower(), number, of) if not of or number < of else None
