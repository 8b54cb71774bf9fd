"""
A log file as bytes on disk become physical lines, whatever it is packed in.

A line is what ends at a newline, counted from 1, and nothing else: a carriage return begins a
new *segment* of the same line (progress bars draw over themselves).  Files are read with plain
reads, never mapped, so one that is cut while it is read gives a `Gap` and not a SIGBUS; one that
grows is read up to the size it had when it was opened.  Memory stays bounded: a block at a time,
a line index with one entry for every 64 KiB, and what an archive unpacks to goes to an unnamed
temporary file beyond 256 MiB.
"""

from __future__ import annotations

import codecs
import errno
import os
import re
import stat
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from flatline.errors import SourceRefused, SourceUnreachable
from flatline.logs.event_files import is_event_file, rendered
from flatline.logs.newlines import Newlines
from flatline.logs.unpacking import (
    ENCODING_BYTES,
    FileStore,
    Store,
    encoding,
    is_text,
    packing,
    transcode,
    unpack,
)
from flatline.model import Gap

__all__ = [
    "BLANKS",
    "Block",
    "TextFile",
    "clean",
    "is_text",
    "open_text",
    "plain",
    "read_head",
    "segments",
]

MIB = 1 << 20
BLOCK_BYTES = 4 * MIB
LINE_BYTES = MIB
"""A line is cut here, so that one line without end cannot fill the memory."""
INDEX_BYTES = 64 << 10
LINE_END_BYTES = 4 << 10
"""Read at once where only the end of a line is looked for."""
SAMPLE_BYTES = 64 << 10
SAMPLE_HEAD, SAMPLE_REST, SAMPLE_TAIL = 150, 200, 100
"""Lines of a sample: what labels and stamps a file has shows in hundreds as in thousands, and to
look at thousands took half the time of reading a log of 1 MB.  The head tells how a run was
started, the tail what it died of, and each may be labelled in its own way."""
PLAIN_CAP_BYTES = 64 << 30
"""Beyond what any one run's log was ever seen to reach; a bar against runaway files."""
HEAD_BYTES = 64 << 10
BLANKS = " \t\r\n\x0b\x0c"
NUMPY_FROM_BYTES = 16 * MIB
"""Where going without NumPy (a quarter of the speed in counting newlines, and in looking for
lines that hit) costs more than importing it, which takes 0.1 s."""

_ESCAPE = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor, erase
    rb"|\][^\x07\x1b\r\n]*(?:\x07|\x1b\\)?"  # OSC: titles, hyperlinks
    rb"|[PX^_][^\x1b\r\n]*(?:\x1b\\)?"  # DCS, SOS, PM, APC
    rb"|[ -/]*[0-~])?"
)


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive bytes of a file; the first of them belong to line `first_line`."""

    first_line: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Span:
    """A block that was not copied: it is `data[:end]`; what follows belongs to the next one."""

    first_line: int
    data: bytes
    end: int
    newlines: Newlines


def plain(data: bytes) -> bytes:
    """`data` without terminal escapes and backspaces. Newlines and carriage returns stay."""
    if b"\x1b" in data:
        data = _ESCAPE.sub(b"", data)
    if b"\x08" in data:
        data = data.replace(b"\x08", b"")
    return data


def clean(text: bytes) -> str:
    """
    A line or segment as a reader sees it: UTF-8 with replacement, no terminal escapes, no
    backspaces, no carriage return or blanks at its end.  Leading blanks stay.
    """
    return plain(text).decode("utf-8", "replace").rstrip(BLANKS)


def segments(raw: bytes) -> list[bytes]:
    """What a physical line drew over itself, split at carriage returns; those that end the line
    (CRLF) begin no segment."""
    return raw.rstrip(b"\r\n").split(b"\r")


def open_text(path: Path, source: str) -> TextFile:
    """
    Open a log, unpacked and in UTF-8 whatever it is on disk.

    Raises `SourceRefused` where it may not be read or is no regular file, `SourceUnreachable`
    where it is not there.
    """
    try:
        fd = _open(path)
    except PermissionError as fault:
        raise SourceRefused(f"{source}: no permission to read it") from fault
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or str(fault)
        if isinstance(fault, OSError) and fault.errno == errno.EINVAL:
            raise SourceRefused(f"{source}: {reason}") from fault
        raise SourceUnreachable(f"{source}: {reason}") from fault
    gaps: list[Gap] = []
    store: Store = FileStore(fd, os.fstat(fd).st_size)
    try:
        store = _as_utf8(_unpacked(store, source, gaps), source, gaps)
    except OSError as fault:
        store.close()
        raise SourceUnreachable(f"{source}: {fault.strerror}") from fault
    return TextFile(path, source, store, gaps)


def read_head(path: Path, size: int) -> bytes:
    """
    About the first `size` bytes of a file, unpacked: enough to tell what it is.

    What does not unpack is given as it is, which `is_text` then refuses. Raises `OSError`.
    """
    raw = FileStore(fd := _open(path), os.fstat(fd).st_size)
    try:
        head = raw.read(0, size)
        if not packing(head):
            return head
        inside = unpack(raw, head, str(path), [], limit=size)
        try:
            return inside.read(0, size) or head
        finally:
            inside.close()
    finally:
        raw.close()


def _open(path: Path) -> int:
    """Without following a pipe's or device's wish to wait. Raises `OSError`, `ValueError`."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is no regular file")
    return fd


def _unpacked(raw: Store, source: str, gaps: list[Gap]) -> Store:
    head = raw.read(0, 16)
    if is_event_file(head):
        try:
            return rendered(raw, source, gaps)
        finally:
            raw.close()
    if packing(head) is None:
        if raw.size > PLAIN_CAP_BYTES:
            gaps.append(
                Gap(
                    f"{source} beyond its first {PLAIN_CAP_BYTES >> 30} GiB",
                    f"it has {raw.size} bytes, more than is read",
                    source,
                )
            )
            raw.size = PLAIN_CAP_BYTES
        return raw
    try:
        return unpack(raw, head, source, gaps)
    finally:
        raw.close()


def _as_utf8(raw: Store, source: str, gaps: list[Gap]) -> Store:
    name = encoding(raw.read(0, ENCODING_BYTES))
    if name is None:
        return raw
    try:
        return transcode(raw, name, source, gaps)
    finally:
        raw.close()


class TextFile:
    """
    A log file open for reading; a context manager made by `open_text`.

    `size` counts bytes after unpacking and transcoding; `line_count` is the number of lines read
    by `blocks` so far, of the whole file once it ran to the end.  `gaps` says what of the file
    was not read, each once, however often it is read.
    """

    def __init__(self, path: Path, source: str, store: Store, gaps: list[Gap]) -> None:
        self.path = path
        self.source = source
        self.gaps = gaps
        self.line_count = 0
        self._store = store
        marked = store.read(0, 3) == codecs.BOM_UTF8
        self._base = 3 if marked else 0
        self.size = store.size - self._base
        self._told: set[str] = set()
        self._index_lines = array("q", [1])
        self._index_offsets = array("q", [0])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._store.close()

    @property
    def head(self) -> bytes:
        """The first 64 KiB, for `is_text` and the recognition of formats."""
        return self._read(0, HEAD_BYTES)

    def blocks(self, size: int = BLOCK_BYTES) -> Iterator[Block]:
        """
        The whole file in order, in blocks of about `size` bytes that end at a newline.

        A line longer than 1 MiB is delivered in pieces of the same line number where it does
        not fit: cut at a carriage return where it has one, else anywhere, which leaves a gap.
        """
        for span in self.spans(size):
            whole = span.end == len(span.data)
            yield Block(span.first_line, span.data if whole else span.data[: span.end])

    def spans(self, size: int) -> Iterator[Span]:
        """What `blocks` gives, without copying it."""
        large = self.size >= NUMPY_FROM_BYTES
        offset, line = 0, 1
        self.line_count = 0
        while True:
            data, end = self._next(offset, size, line)
            if not end:
                return
            newlines = Newlines(data, large)
            below = self._note_lines(offset, line, end, newlines.before)
            yield Span(line, data, end, newlines)
            line = below
            offset += end
            self.line_count = line - (data[end - 1] == 0x0A)

    def window(self, line: int, count: int) -> list[tuple[int, bytes]]:
        """
        The physical lines `line` to `line + count - 1`, as far as there are such, without their
        newline.  Of a line longer than 1 MiB only the first MiB is given.
        """
        if line < 1:
            count, line = count + line - 1, 1
        found: list[tuple[int, bytes]] = []
        if count < 1:
            return found
        offset, at = self._seek(line)
        while True:
            data, end = self._next(offset, INDEX_BYTES, at)
            if not end:
                return found
            offset += end
            pieces = data[:end].split(b"\n", line + count - at)
            rest = pieces.pop()
            for number, piece in enumerate(pieces[max(line - at, 0) :], max(line, at)):
                _add(found, number, piece)
            at += len(pieces)
            if at >= line + count:
                return found
            if rest and at >= line:
                _add(found, at, rest)

    def line(self, n: int) -> str | None:
        """Physical line `n`, cleaned, its carriage returns kept; None where there is none."""
        got = self.window(n, 1) if n >= 1 else []
        return clean(got[0][1]) if got else None

    def sample(self, size: int = SAMPLE_BYTES) -> list[bytes]:
        """Physical lines from the head, the middle and the tail, from `size` bytes of each, or
        of small files; beyond the first hundreds every so many."""
        if self.size <= 3 * size:
            parts = [self._read(0, self.size)]
        else:
            middle, tail = (self.size - size) // 2, self.size - size
            parts = [self._read(0, size).rpartition(b"\n")[0]]
            parts.append(self._read(middle, size).partition(b"\n")[2].rpartition(b"\n")[0])
            parts.append(self._read(tail, size).partition(b"\n")[2])
        lines: list[bytes] = []
        for part in parts:
            lines += part.split(b"\n")
        lines = _thinned(lines)
        if any(b"\r" in part for part in parts):
            lines = [segment for line in lines for segment in segments(line)]
        return _thinned(lines)

    def _next(self, offset: int, size: int, line: int) -> tuple[bytes, int]:
        """Bytes from `offset` on, and how many of them up to the last newline within `size`, or
        to where a line is cut."""
        data = self._read(offset, size)
        end = data.rfind(b"\n") + 1
        while not end and len(data) < LINE_BYTES:
            more = self._read(offset + len(data), max(size, LINE_BYTES // 4))
            if not more:
                return data, len(data)
            found = more.find(b"\n") + 1
            end = found and len(data) + found
            data += more
        if offset + len(data) >= self.size:
            return data, len(data)
        if end:
            return data, end
        end = data.rfind(b"\r") + 1
        if not end:
            self._gap(
                "long line",
                f"line {line} of {self.source} in one piece",
                "a line longer than 1 MiB is read in pieces; a match across a cut is missed",
            )
        return data, end or len(data)

    def _note_lines(self, offset: int, line: int, end: int, passed: Callable[[int], int]) -> int:
        """Indexes `end` bytes that begin at `offset` in `line`; the line that follows them.
        `passed` counts the newlines before a place of them."""
        for start in range(0, end, INDEX_BYTES):
            stop = min(start + INDEX_BYTES, end)
            if offset + stop >= self._index_offsets[-1] + INDEX_BYTES:
                self._index_offsets.append(offset + stop)
                self._index_lines.append(line + passed(stop))
        return line + passed(end)

    def _seek(self, line: int) -> tuple[int, int]:
        """
        (offset, number) of the start of a line at or shortly before `line`.

        Reads on where the index ends; at the end of the file where there is no such line.
        """
        while self._index_lines[-1] < line:
            offset = self._index_offsets[-1]
            data = self._read(offset, INDEX_BYTES)
            if len(data) < INDEX_BYTES:
                break
            passed = partial(data.count, b"\n", 0)
            self._note_lines(offset, self._index_lines[-1], len(data), passed)
        # An entry points anywhere into its line, so the one before the line that is wanted.
        place = max(0, bisect_left(self._index_lines, line) - 1)
        offset, number = self._index_offsets[place], self._index_lines[place]
        if offset == 0 or self._read(offset - 1, 1) == b"\n":
            return offset, number
        while data := self._read(offset, LINE_END_BYTES):
            end = data.find(b"\n") + 1
            if end:
                return offset + end, number + 1
            offset += len(data)
        return offset, number

    def _read(self, offset: int, size: int) -> bytes:
        size = min(size, self.size - offset)
        if size <= 0:
            return b""
        try:
            data = self._store.read(self._base + offset, size)
        except OSError as fault:
            self._gap(
                "unreadable",
                f"{self.source} from byte {offset} on",
                f"it cannot be read further: {os.strerror(fault.errno or errno.EIO)}",
            )
            self.size = offset
            return b""
        if len(data) < size:
            self._gap(
                "shrank",
                f"{self.source} from byte {offset + len(data)} on",
                f"it shrank while it was read: it had {self.size} bytes when it was opened",
            )
            self.size = offset + len(data)
        return data

    def _gap(self, key: str, need: str, reason: str) -> None:
        if key not in self._told:
            self._told.add(key)
            self.gaps.append(Gap(need, reason, self.source))


def _thinned(lines: list[bytes]) -> list[bytes]:
    """The first and last of the lines, and every so many of the others."""
    rest = lines[SAMPLE_HEAD:-SAMPLE_TAIL]
    every = -(-len(rest) // SAMPLE_REST)
    return lines[:SAMPLE_HEAD] + rest[::every] + lines[-SAMPLE_TAIL:] if every > 1 else lines


def _add(found: list[tuple[int, bytes]], number: int, piece: bytes) -> None:
    """Adds a line, or what follows of the line that was added last."""
    if not found or found[-1][0] != number:
        found.append((number, piece[:LINE_BYTES]))
    elif len(found[-1][1]) < LINE_BYTES:
        found[-1] = (number, (found[-1][1] + piece)[:LINE_BYTES])


def sample_lines(file: TextFile) -> list[str]:
    """A file's sample, cleaned all at once: no escape reaches over a line's end."""
    lines = plain(b"\n".join(file.sample())).decode("utf-8", "replace").split("\n")
    return [line.rstrip(BLANKS) for line in lines]
