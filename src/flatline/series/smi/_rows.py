"""What the forms share: a row, a number with its unit, a date, and documents behind dates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

HEAD_LINES = 2000
LINE_CHARS = 400
"""No line of these forms is longer; more of one is not looked at."""
FACTORS: Mapping[str, float] = {
    "": 1.0, "W": 1.0, "mW": 1e-3, "kW": 1e3, "%": 0.01, "C": 1.0, "c": 1.0, "°C": 1.0,
    "MHz": 1e6, "Mhz": 1e6, "GHz": 1e9, "B": 1.0, "KiB": 1024.0, "MiB": 1048576.0,
    "GiB": 1073741824.0, "MB": 1048576.0, "GB": 1073741824.0, "errs": 1.0,
}  # fmt: skip
"""To base units.  The tools' MB and GB are powers of 1024: NVML and amdsmi count bytes and shift
(`192.0 GB` is 196592 MB on a card of 192 GiB)."""
_VALUE = re.compile(
    r"\(?(-?\d{1,18}(?:\.\d{1,9})?)\s?(%|°?[Cc]|[mk]?W|[MG][Hh]z|[KMG]i?B|B|errs)?\)?"
)
_DATES = (
    re.compile(
        r"(?:[A-Z][a-z]{2},? )?(?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) (?P<time>\d\d:\d\d:\d\d)"
        r"(?: (?P<half>[AP]M))?(?: (?P<zone>[A-Z]{2,5}|[-+]\d{2,4}))? (?P<year>\d{4})"
    ),
    re.compile(
        r"(?:[A-Z][a-z]{2},? )?(?P<day>\d{1,2}) (?P<month>[A-Z][a-z]{2}) (?P<year>\d{4})"
        r" (?P<time>\d\d:\d\d:\d\d)(?: (?P<half>[AP]M))?(?: (?P<zone>[A-Z]{2,5}|[-+]\d{4}))?"
    ),
)
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|[-+]\d\d:?\d\d))?")
_EPOCH = re.compile(r"1\d{9}(?:\.\d{1,9})?")
_FRAMES = re.compile(r"[-=#*\s]{0,40}")
At = tuple[float | None, bool]
"""Seconds since 1970, and whether the zone was said."""
UNKNOWN: At = (None, False)


@dataclass(frozen=True, slots=True)
class Row:
    """What one GPU, or one process on it, showed at one time: `at` in seconds since 1970, None
    where it is not said; `zoned` where that is no local time of an unknown zone."""

    at: float | None
    zoned: bool
    labels: Mapping[str, str]
    values: Mapping[str, float]


def number(said: str, unit: str = "") -> float | None:
    """A value in base units, its own unit before the column's; None for N/A and what is none."""
    found = _VALUE.fullmatch(said.strip())
    if found is None:
        return None
    factor = FACTORS.get(found[2] or unit)
    return None if factor is None else float(found[1]) * factor


def whole(at: datetime) -> float:
    """The instant in whole milliseconds, as every time of a series is."""
    return round(at.timestamp() * 1000) / 1000.0


def local(said: str, form: str) -> At:
    """A time without a zone."""
    try:
        at = datetime.strptime(" ".join(said.split()), form).replace(tzinfo=UTC)
    except ValueError:
        return UNKNOWN
    return whole(at), False


def epoch(said: str) -> At:
    """Seconds since 1970, as amd-smi and `date +%s` print them."""
    said = said.strip()
    return (round(float(said), 3), True) if _EPOCH.fullmatch(said) else UNKNOWN


def date(line: str) -> At | None:
    """The instant a line says that says nothing else; None where it is no such line."""
    if _EPOCH.fullmatch(line.rstrip()):  # never indented: a list in JSON may hold such numbers
        return epoch(line)
    line = _FRAMES.sub("", line[:120], count=1) if line[:1] in "-=#* \t" else line[:120]
    line = line.rstrip("-=#* \t\r")
    if not line or len(line) > 60 or not (line[0].isdigit() or line[0].isupper()):
        return None
    try:
        if _ISO.fullmatch(line):
            return _iso(line)
        found = next((m for form in _DATES if (m := form.fullmatch(line))), None)
        return None if found is None else _spoken(found)
    except ValueError:
        return None


def _iso(line: str) -> At:
    text = re.sub(r"([.,]\d{1,6})\d*", r"\1", line).replace(",", ".").replace(" Z", "Z")
    at = datetime.fromisoformat(re.sub(r" ([-+])", r"\1", text))
    return whole(at if at.tzinfo else at.replace(tzinfo=UTC)), at.tzinfo is not None


def _spoken(found: re.Match[str]) -> At:
    """As `date` prints it; of the zones' names only those of UTC mean one thing."""
    said, half, zone = found["time"], found["half"], found["zone"] or ""
    month = _MONTHS.index(found["month"]) + 1
    at = datetime.fromisoformat(f"{found['year']}-{month:02}-{int(found['day']):02}T{said}")
    if half:
        at = at.replace(hour=at.hour % 12 + (12 if half == "PM" else 0))
    if re.fullmatch(r"[-+]\d{4}", zone):
        at = at.replace(tzinfo=datetime.strptime(zone, "%z").tzinfo)
    return whole(at if at.tzinfo else at.replace(tzinfo=UTC)), bool(at.tzinfo) or zone in (
        "UTC", "GMT",
    )  # fmt: skip


def documents(text: str) -> Iterator[tuple[At, str]]:
    """The text in pieces, each with the date that stands on a line of its own before it."""
    at, piece = UNKNOWN, list[str]()
    for line in text.split("\n"):
        found = date(line)
        if found is None:
            piece.append(line)
            continue
        yield at, "\n".join(piece)
        at, piece = found, []
    yield at, "\n".join(piece)


def only(head: bytes, line: re.Pattern[str]) -> bool:
    """Whether every line of a file's beginning matches, is a date, or is empty; the last of
    several may be cut."""
    lines = head.decode("utf-8", "replace").split("\n")
    if len(lines) > 1:
        lines.pop()
    return all(
        not text.strip() or line.match(text) or date(text) is not None
        for text in lines[:HEAD_LINES]
    )


def undated(head: bytes) -> bytes:
    """A file's beginning without the dates that stand before all else."""
    for _ in range(8):
        line, newline, rest = head.partition(b"\n")
        if not newline or date(line[:200].decode("utf-8", "replace")) is None:
            break
        head = rest.lstrip()
    return head


@lru_cache(maxsize=4)  # every form asks for the same
def begins(head: bytes) -> tuple[str, ...]:
    """The first lines that are no dates and not empty, of a text."""
    found: list[str] = []
    for line in head[:8192].split(b"\n", 40):
        text = line.decode("utf-8", "replace")
        if text.strip() and date(text) is None:
            found.append(text)
        if len(found) == 4:
            break
    return tuple(found)
