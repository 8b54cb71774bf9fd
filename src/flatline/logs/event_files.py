"""
TensorBoard's event files as lines of text, so that they are read, cited and verified as logs are.

A line holds the scalars that were written one after the other for one step, with the time of the
first and their tags as they are, but for blanks and control characters:

    2026-11-20T10:15:30.123456Z tfevents step 120: train/loss=1.0756 train/learning_rate=2e-05

Guaranteed: scalars of TensorFlow 1 (`simple_value`) and 2 (a tensor of one number) in the order
they were written, each record checked by its checksums.  A file cut at its end, as a killed run
leaves it, is read up to there; a record that is damaged is left out; both are gaps.  Images,
histograms, texts and graphs are passed over.

Layout: `tensorflow/core/lib/io/record_writer.h`, `event.proto`, `summary.proto`, `tensor.proto`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from flatline.logs.unpacking import Spool, Store
from flatline.model import Gap

PIECE_BYTES = 1 << 20
LARGEST_RECORD = 256 << 20
TAG_CHARS = 120
RENDERED = " tfevents step "
"""Behind the time of each line."""
TAGS_A_LINE = 64
_HEAD = struct.Struct("<QI")
_CHECK = struct.Struct("<I")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS = {1: "f", 2: "d", 3: "i", 9: "q", 14: "bfloat16", 19: "e"}
"""`DataType` of a tensor to how `struct` reads its bytes."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
Field = tuple[int, int, int, bytes]
"""Number, wire type, value of a number, bytes of a string."""


def is_event_file(head: bytes) -> bool:
    """Whether a file begins with a record of events: its length carries a checksum."""
    if len(head) < 13 or head[4:8] != b"\0\0\0\0" or head[12] != 0x09:
        return False
    size, check = _HEAD.unpack_from(head)
    return bool(9 <= size <= LARGEST_RECORD and check == _masked(head[:8]))


def _masked(data: bytes) -> int:
    from google_crc32c import value  # only where a file may be one

    crc: int = value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def rendered(raw: Store, source: str, gaps: list[Gap]) -> Store:
    """The scalars of a file as text; what could not be read of it is a gap."""
    spool = Spool()
    step: int | None = None
    line: list[str] = []
    for number, at, scalars in _events(raw, source, gaps):
        for tag, value in scalars:
            if number != step or len(line) > TAGS_A_LINE:
                _write(spool, line)
                step, line = number, [f"{_time(at)}{RENDERED}{number}:"]
            line.append(f"{tag}={value!r}")
    _write(spool, line)
    return spool.store()


def _write(spool: Spool, line: list[str]) -> None:
    if line:
        spool.write((" ".join(line) + "\n").encode("utf-8", "replace"))


def _time(seconds: float) -> str:
    try:
        at = _EPOCH + timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        return "-"
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _events(
    raw: Store, source: str, gaps: list[Gap]
) -> Iterator[tuple[int, float, list[tuple[str, float]]]]:
    """Step, time and scalars of each event that has any."""
    damaged = 0
    for data in _records(raw, source, gaps):
        try:
            found = _event(data) if data is not None else None
        except (ValueError, IndexError, struct.error):
            found = None
        if found is None:
            damaged += 1
        elif found[2]:
            yield found
    if damaged:
        gaps.append(Gap("training events", f"{damaged} damaged records were left out", source))


def _records(raw: Store, source: str, gaps: list[Gap]) -> Iterator[bytes | None]:
    """The bytes of each record, None for one that is damaged."""
    at = 0
    buffer, begin = b"", 0

    def take(size: int) -> bytes:
        nonlocal buffer, begin
        if at + size > begin + len(buffer):
            buffer, begin = raw.read(at, max(size, PIECE_BYTES)), at
        return buffer[at - begin : at - begin + size]

    while at < raw.size:
        head = take(_HEAD.size)
        if len(head) < _HEAD.size:
            break
        size, check = _HEAD.unpack(head)
        if check != _masked(head[:8]) or size > LARGEST_RECORD:
            gaps.append(
                Gap("training events", f"damaged at byte {at}, not read from there", source)
            )
            return
        whole = take(_HEAD.size + size + _CHECK.size)
        if len(whole) < _HEAD.size + size + _CHECK.size:
            break
        data = whole[_HEAD.size : -_CHECK.size]
        yield data if _CHECK.unpack(whole[-_CHECK.size :])[0] == _masked(data) else None
        at += len(whole)
    if at < raw.size:
        gaps.append(Gap("training events", "cut off within its last record", source))


# --- the messages -------------------------------------------------------------------------------


def _fields(data: bytes) -> Iterator[Field]:
    """The fields of a message. Raises ValueError, IndexError, struct.error where it is none."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield key >> 3, kind, value, b""
            continue
        if kind == _BYTES:
            size, at = _varint(data, at)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {kind}")
        if at + size > len(data):
            raise ValueError("a field reaches past its message")
        yield key >> 3, kind, 0, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    raise ValueError("a number of more than 64 bits")


def _event(data: bytes) -> tuple[int, float, list[tuple[str, float]]]:
    step, at = 0, 0.0
    scalars: list[tuple[str, float]] = []
    for number, kind, value, part in _fields(data):
        if number == 1 and kind == _FIXED64:
            (at,) = struct.unpack("<d", part)
        elif number == 2 and kind == _VARINT:
            step = value - (1 << 64) if value >> 63 else value
        elif number == 5 and kind == _BYTES:
            scalars += [found for n, k, _, one in _fields(part) if n == 1 and k == _BYTES
                        and (found := _scalar(one)) is not None]  # fmt: skip
    return step, at, scalars


def _scalar(data: bytes) -> tuple[str, float] | None:
    """Tag and number of a summary value; None where it is no scalar."""
    tag, value = "", None
    for number, kind, _, part in _fields(data):
        if number == 1 and kind == _BYTES:
            tag = _plain(part)
        elif number == 2 and kind == _FIXED32:
            (value,) = struct.unpack("<f", part)
        elif number == 8 and kind == _BYTES:
            value = _tensor(part)
    if value is None or not tag:
        return None
    return tag, _shortest(value)


def _shortest(value: float) -> float:
    """The number with the fewest digits that was the same when it was stored in four bytes."""
    for digits in (6, 7, 8, 9):
        short = float(f"{value:.{digits}g}")
        try:
            if struct.pack("<f", short) == struct.pack("<f", value):
                return short
        except OverflowError:
            break
    return value


def _plain(tag: bytes) -> str:
    """A tag as one word that cannot be taken for another: what is on a line is data."""
    text = tag[: 4 * TAG_CHARS].decode("utf-8", "replace")[:TAG_CHARS]
    return "".join(c if c.isprintable() and c not in " =" else "_" for c in text)


def _tensor(data: bytes) -> float | None:
    """The number of a tensor that holds one."""
    kind = 0
    found: list[float] = []
    for number, wire, value, part in _fields(data):
        if number == 1 and wire == _VARINT:
            kind = value
        elif number == 4 and wire == _BYTES and kind in _NUMBERS:
            found += _content(_NUMBERS[kind], part)
        elif number in (5, 6) and wire in (_BYTES, _FIXED32, _FIXED64):
            found += _content("f" if number == 5 else "d", part)
        elif number in (7, 10) and wire == _VARINT:
            found.append(float(value - (1 << 64) if value >> 63 else value))
        elif number in (7, 10) and wire == _BYTES:
            first, end = _varint(part, 0)
            found += [float(first - (1 << 64) if first >> 63 else first)] * (end == len(part))
    return found[0] if len(found) == 1 and kind in _NUMBERS else None


def _content(form: str, part: bytes) -> list[float]:
    """One number in its bytes; nothing where there are more."""
    if form == "bfloat16":
        return [struct.unpack("<f", b"\0\0" + part)[0]] if len(part) == 2 else []
    if len(part) != struct.calcsize("<" + form):
        return []
    return [float(struct.unpack("<" + form, part)[0])]
