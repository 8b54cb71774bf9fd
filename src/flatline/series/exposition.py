"""
Prometheus text and OpenMetrics files with timestamps, as `promtool`, recorders and `curl` leave
them.

One reader for both: they differ in the unit of a timestamp (milliseconds, seconds), in exemplars
(skipped) and in the closing `# EOF`.  The whole file decides the unit: seconds where most of its
timestamps would lie before 1973 as milliseconds.  Those of the other magnitude are left out, and
so is a last line that breaks off within its timestamp.  A line that is no sample is counted and
told in a gap with its number; a file that has more of those than samples is refused.
"""

from __future__ import annotations

import gzip
import re
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from flatline.errors import FormatError
from flatline.model import Gap
from flatline.redact import mask_value
from flatline.series.storage import NAME, Labels, SeriesBuilder, labels_of

CHUNK_BYTES = 1 << 20
LINE_BYTES = 1 << 16
FILE_BYTES = 1 << 31
MAX_LABELS = 256
"""Bounds of a file: past them it is refused, or the line skipped, rather than memory filled."""
GZIP = b"\x1f\x8b"
MAX_SERIES = 250_000
OTHER_SERIES = 20_000
"""Series kept of all files: 25 metrics of 10,000 GPUs.  A series takes 1.5 KiB and 30 us, so that
a million of them took 1.9 GB and 41 s.  Those of metrics that nothing will ask for make room for
the others well before."""
LATEST_S = 253_402_300_799.0
"""The end of the year 9999, beyond which no instant can be told."""
MS_SINCE_1973 = 1e11

_STRING = r'"(?:[^"\\]++|\\.)*+"'
_SERIES = (
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*+)?+[ \t]*+"
    rf'(?P<labels>\{{(?:[^"}}]++|{_STRING})*+\}})?+'
)
_SAMPLE = re.compile(
    rf"(?P<key>{_SERIES})[ \t]*+(?P<value>[-+.0-9a-zA-Z]++)"
    r"(?:[ \t]++(?P<time>[-+.0-9eE]++))?+[ \t]*+(?:\#.*)?"
)
_LABEL = re.compile(
    r'[ \t]*+(?:"(?P<quoted>(?:[^"\\]++|\\.)*+)"|(?P<bare>[a-zA-Z_:][a-zA-Z0-9_:]*+))[ \t]*+'
    r'(?:=[ \t]*+"(?P<value>(?:[^"\\]++|\\.)*+)")?+[ \t]*+(?P<next>,|$)'
)
_ESCAPE = re.compile(r'\\([\\"n])')


@dataclass(frozen=True, slots=True)
class Exposition:
    """What reading one file came to; its series went into the builder."""

    samples: int
    untimed: int
    malformed: int
    gaps: tuple[Gap, ...]


@dataclass(slots=True)
class _Reading:
    """One file half read."""

    rows: dict[str, int] = field(default_factory=dict)
    labels: list[Labels] = field(default_factory=list)
    times: list[array[float]] = field(default_factory=list)
    values: list[array[float]] = field(default_factory=list)
    samples: int = 0
    untimed: int = 0
    malformed: int = 0
    first_malformed: tuple[int, str] | None = None
    digits: int = 0
    """Characters of the last timestamp read."""
    known: frozenset[str] = frozenset()
    held: int = 0
    """Metrics that can be asked for, and series held of other files."""
    left_out: int = 0

    def line(self, number: int, line: str, *, ended: bool = True) -> None:
        """One line; what is wrong with it is counted, never raised."""
        key, _, rest = line.rpartition(" ")
        key, _, value = key.rpartition(" ")
        row = self.rows.get(key)
        if row is None and not self._room(line):
            self.left_out += 1
            return
        time: str | None = rest
        try:
            if row is None:
                row, value, time = self._parsed(line)
            self._sample(row, value, time, ended)
        except (FormatError, ValueError) as fault:
            self.malformed += 1
            if self.first_malformed is None:
                self.first_malformed = (number, str(fault))

    def _room(self, line: str) -> bool:
        """Whether a series that may be new is kept."""
        held = self.held + len(self.labels)
        if held < OTHER_SERIES:
            return True
        name = line.partition("{")[0].partition(" ")[0]
        return name in self.known and held < MAX_SERIES

    def _parsed(self, line: str) -> tuple[int, str, str | None]:
        """Series, value and time of a line whose series may be new."""
        found = _SAMPLE.fullmatch(line)
        if found is None:
            raise FormatError("it is no sample")
        key = found["key"].rstrip(" \t")
        row = self.rows.get(key)
        if row is None:
            labels = _labels(found["name"], found["labels"])
            row = self.rows[key] = len(self.labels)
            self.labels.append(labels)
            self.times.append(array("d"))
            self.values.append(array("d"))
        return row, found["value"], found["time"]

    def _sample(self, row: int, value: str, time: str | None, ended: bool) -> None:
        if not ended and len(time or "") < self.digits:
            raise FormatError("the file breaks off within it")
        if "_" in value or (time is not None and "_" in time):
            raise FormatError("a number has an underscore")
        number = float(value)
        at = 0.0 if time is None else float(time)
        if not 0 <= at <= LATEST_S * 1000:
            raise FormatError(f"no instant is {time}")
        self.samples += 1
        if time is None:
            self.untimed += 1
            return
        self.digits = len(time)
        self.times[row].append(at)
        self.values[row].append(number)


def read(
    path: Path, source: str, builder: SeriesBuilder, known: frozenset[str] = frozenset()
) -> Exposition:
    """
    The samples of a file into `builder`; where it holds too many series, those of `known` metrics
    and the first of the others.

    Raises FormatError where it is no such file, or is too large; an OSError passes.
    """
    if path.stat().st_size > FILE_BYTES:
        raise FormatError(f"it is larger than the {FILE_BYTES} bytes that are read")
    reading = _Reading(known=known, held=len(builder))
    for number, line, ended in _lines(path):
        if line is None:
            reading.malformed += 1
            reading.first_malformed = reading.first_malformed or (number, "it is no text")
        elif line and not line.startswith("#"):
            reading.line(number, line, ended=ended)
    good = reading.samples
    if not good or reading.malformed > good:
        where, why = reading.first_malformed or (1, "there is none")
        raise FormatError(f"it holds {good} samples; line {where}: {why}")
    lost = _pour(reading, builder)
    return Exposition(good, reading.untimed, reading.malformed, _gaps(reading, source, lost))


def _lines(path: Path) -> Iterator[tuple[int, str | None, bool]]:
    """Numbered lines without their ends, None for one that is no UTF-8 or too long; and whether
    the line had an end."""
    number = 0
    rest = b""
    skipping = False
    with _opened(path) as file:
        for chunk in _chunks(file):
            *lines, rest = (rest + chunk).split(b"\n")
            for raw in lines:
                number += 1
                yield number, None if skipping else _text(raw), True
                skipping = False
            if len(rest) > LINE_BYTES:
                skipping, rest = True, b""
    if rest or skipping:
        yield number + 1, None if skipping else _text(rest), False


def _opened(path: Path) -> BinaryIO:
    """The file, unpacked while it is read where it begins as gzip does."""
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
    return cast(BinaryIO, gzip.open(path, "rb")) if packed else path.open("rb")


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    """The file in parts; where an archive breaks off, a line that is no text ends it.
    Raises FormatError where it unpacks to more than is read."""
    size = 0
    try:
        while chunk := file.read(CHUNK_BYTES):
            size += len(chunk)
            if size > FILE_BYTES:
                raise FormatError(f"it unpacks to more than the {FILE_BYTES} bytes that are read")
            yield chunk
    except (EOFError, zlib.error, gzip.BadGzipFile):
        yield b"\n\0\n"


def _text(raw: bytes) -> str | None:
    if len(raw) > LINE_BYTES or b"\0" in raw:
        return None
    try:
        return raw.decode("utf-8").strip(" \t\r\ufeff")
    except UnicodeDecodeError:
        return None


def _labels(name: str | None, block: str | None) -> Labels:
    """Labels of `name{block}`; the name may stand in the block, bare and quoted."""
    pairs: dict[str, str] = {} if name is None else {NAME: name}
    inside = "" if block is None else block[1:-1].strip(" \t")
    at = 0
    while at < len(inside):
        found = _LABEL.match(inside, at)
        if found is None:
            raise FormatError("its labels cannot be read")
        at = found.end()
        label = found["bare"] if found["quoted"] is None else _unescaped(found["quoted"])
        value = found["value"]
        if value is None:
            if found["quoted"] is None or pairs:
                raise FormatError(f"the label {label} has no value")
            label, value = NAME, found["quoted"]
        if label in pairs:
            raise FormatError(f"the label {label} stands twice")
        pairs[label] = _shown(label, _unescaped(value))
    if not pairs.get(NAME):
        raise FormatError("it names no metric")
    if len(pairs) > MAX_LABELS:
        raise FormatError(f"it has more than {MAX_LABELS} labels")
    return labels_of(pairs)


@lru_cache(maxsize=1 << 14)
def _shown(label: str, value: str) -> str:
    """A label's value with secrets masked: values are shown, and asked for, as they are kept."""
    return mask_value(label, value)


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda found: "\n" if found[1] == "n" else found[1], text)


def _pour(reading: _Reading, builder: SeriesBuilder) -> int:
    """The file's samples in seconds into the builder; how many times were of another unit."""
    raw = [np.frombuffer(times, dtype=np.float64) for times in reading.times]
    early = sum(int(np.count_nonzero(times < MS_SINCE_1973)) for times in raw)
    seconds = early * 2 > sum(times.size for times in raw)
    lost = 0
    for labels, times, column in zip(reading.labels, raw, reading.values, strict=True):
        told = (times < MS_SINCE_1973) == seconds
        lost += int(np.count_nonzero(~told))
        if told.any():
            values = np.frombuffer(column, dtype=np.float64)[told]
            milliseconds = np.rint(times[told] * (1000 if seconds else 1))
            builder.extend(builder.row(labels), milliseconds / 1000.0, values)
    return lost


def _gaps(reading: _Reading, source: str, lost: int) -> tuple[Gap, ...]:
    gaps = []
    if reading.first_malformed is not None:
        number, why = reading.first_malformed
        gaps.append(
            Gap(
                "every sample of the metrics",
                f"{_count(reading.malformed, 'line')} left out; the first is {number}: {why}",
                source,
            )
        )
    if reading.left_out:
        gaps.append(
            Gap(
                "every series of the metrics",
                f"{_count(reading.left_out, 'sample')} left out: of metrics that are asked for"
                f" {MAX_SERIES} series are kept, of others {OTHER_SERIES}",
                source,
            )
        )
    if reading.untimed:
        gaps.append(
            Gap(
                "metrics over time",
                f"{_count(reading.untimed, 'sample')} without a timestamp: nothing says when"
                " they were taken",
                source,
            )
        )
    if lost:
        gaps.append(
            Gap(
                "metrics over time",
                f"{_count(lost, 'sample')} left out: their timestamps are of another unit than"
                " the others'",
                source,
            )
        )
    return tuple(gaps)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
