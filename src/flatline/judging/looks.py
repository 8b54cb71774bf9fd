"""
Single dated looks at the GPUs, as `nvidia-smi` and `gpustat` print them: in a file of their own,
cut to a few rows, or pasted into a log; and what `ls -l` beside one says of when a file was last
written.

Their times are local and state no zone, like those of most logs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from flatline.facts import LOG, METRICS, SCHEDULER, Facts, FileRead
from flatline.model import LogCite
from flatline.series.smi import date, nvidia_table

MOST_FILES, MOST_BYTES, MOST_LINES = 32, 1 << 16, 400
"""A look is a page; of a longer log its end is read, where one that was pasted stands."""
ONE_SITTING_S = 600.0
"""A listing in another file is of the same clock where it says a time so near."""
_GPUSTAT = re.compile(
    r"\[(?P<gpu>\d{1,4})\] (?P<name>.{1,80}?) *\|"
    r" *(?P<celsius>\d{1,3}) ?['°]C, *(?:\d{1,3} ?%, *)?"
    r"(?P<busy>\d{1,3}) ?%(?:, *(?P<power>\d{1,4}) ?/ ?(?P<limit>\d{1,4}) ?W)? *\|"
    r" *(?P<used>\d{1,7}) ?/ ?\d{1,7} ?MB"
)
_GPUSTAT_HEAD = re.compile(
    r"\S+ +([A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} [\d:]{8} \d{4})(?: +\S+)?$"
)
_LISTED = re.compile(
    r"[-rwxsSt]{10}[.+@]? +\d{1,6} +\S+ +\S+ +\d{1,18} +(?:(?P<full>\d{4}-\d\d-\d\d \d\d:\d\d)"
    r"(?::\d\d(?:\.\d+)?)?(?: [+-]\d{4})?|(?P<short>[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d))"
    r" +(?P<name>\S.*)$"
)


@dataclass(frozen=True, slots=True)
class Card:
    """What one GPU showed; None where its column says nothing."""

    gpu: str
    busy: float
    used_bytes: float
    power_w: float | None
    limit_w: float | None
    celsius: float | None
    cite: LogCite


@dataclass(frozen=True, slots=True)
class Look:
    """The cards of one moment, in POSIX seconds of a local clock; `line` is its first."""

    at: float
    source: str
    line: int
    cards: tuple[Card, ...]


@dataclass(frozen=True, slots=True)
class Listed:
    """A file by its name, and until when (local, the minute's end) it was written."""

    name: str
    until: float
    cite: LogCite


def looks(facts: Facts) -> tuple[Look, ...]:
    """All that are dated, in the order of their times."""
    return facts.memo("looks at the GPUs", _looks)


def _looks(facts: Facts) -> tuple[Look, ...]:
    found: list[Look] = []
    for read, first, texts in _pages(facts):
        at, line, cards = None, first, list[Card]()
        for offset, text in enumerate(texts):
            said = _dated(text)
            if said is not None:
                found += [Look(at, read.source, line, tuple(cards))] if at and cards else []
                at, line, cards = said, first + offset, []
            card = _card(read, first + offset, texts[offset : offset + 2])
            cards += [card] if card is not None else []
        found += [Look(at, read.source, line, tuple(cards))] if at and cards else []
    return tuple(sorted(found, key=lambda one: one.at))


def _pages(facts: Facts) -> Iterator[tuple[FileRead, int, tuple[str, ...]]]:
    """Of each small file, or a log's end, its lines and the number of the first."""
    kept = [read for read in facts.files
            if read.kind in (LOG, METRICS) or (read.kind == SCHEDULER and read.lines)]  # fmt: skip
    for read in kept[:MOST_FILES]:
        if read.kind == METRICS and not 0 < read.size <= MOST_BYTES:
            continue
        first = max(1, read.lines - MOST_LINES + 2)
        yield read, first, facts.lines(read.source, first, MOST_LINES, 400)


def _dated(text: str) -> float | None:
    head = _GPUSTAT_HEAD.match(text.rstrip())
    said = date(head[1] if head else text)
    return None if said is None else said[0]


def _card(read: FileRead, line: int, texts: Sequence[str]) -> Card | None:
    """The GPU whose row, or first of two rows, begins these lines."""
    if texts[0].startswith("[") and (row := _GPUSTAT.match(texts[0])):
        power, limit = (float(row[key]) if row[key] else None for key in ("power", "limit"))
        cite = LogCite(read.source, line, texts[0], read.place)
        return Card(row["gpu"], float(row["busy"]) / 100, float(row["used"]) * (1 << 20),
                    power, limit, float(row["celsius"]), cite)  # fmt: skip
    if not texts[0].startswith("|") or len(texts) < 2:
        return None
    for one in nvidia_table.read("\n".join(texts)):
        value = one.values.get
        busy, used = value("smi_utilization_ratio"), value("smi_memory_used_bytes")
        if busy is not None and used is not None:
            cite = LogCite(read.source, line + 1, texts[1], read.place)
            return Card(one.labels["gpu"], busy, used, value("smi_power_watts"),
                        value("smi_power_limit_watts"), value("smi_temperature_celsius"),
                        cite)  # fmt: skip
    return None


def listed(facts: Facts, look: Look) -> tuple[Listed, ...]:
    """Files that `ls -l` showed beside a look, or in a file that says about the same time."""
    found: list[Listed] = []
    for read, first, texts in _pages(facts):
        times = [at for text in texts if (at := _dated(text)) is not None]
        near = any(abs(at - look.at) <= ONE_SITTING_S for at in times)
        if read.source != look.source and not near:
            continue
        for line, text in enumerate(texts, first):
            row = _LISTED.match(text.rstrip())
            until = None if row is None else _until(row, look.at)
            if row is not None and until is not None:
                cite = LogCite(read.source, line, text, read.place)
                found.append(Listed(row["name"].strip("'\""), until, cite))
    return tuple(found)


def _until(row: re.Match[str], looked: float) -> float | None:
    """The end of the minute a row shows; one without a year is of the last half year (`ls`)."""
    now = datetime.fromtimestamp(looked, UTC)
    try:
        if row["full"]:
            at = datetime.fromisoformat(f"{row['full']}+00:00")
        else:
            said = " ".join(row["short"].split())
            at = datetime.strptime(f"{now.year} {said} +0000", "%Y %b %d %H:%M %z")
            at = at.replace(year=now.year - 1) if at > now else at
    except ValueError:
        return None
    return (at + timedelta(minutes=1)).timestamp() if at <= now else None
