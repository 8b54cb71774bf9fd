"""
Where the bytes of a log come from: the file itself, or what an archive of it unpacks to.

Archives are told by their first bytes, never by their name.  They are unpacked piece by piece
into memory, beyond 256 MiB into a temporary file that has no name, and never without an end:
a cap on the size and on the ratio stops a bomb.  A damaged or truncated archive gives what could
be unpacked, and a `Gap`.
"""

from __future__ import annotations

import codecs
import errno
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator
from io import FileIO
from typing import Protocol

from flatline.model import Gap

MIB = 1 << 20
ARCHIVE_CAP_BYTES = 4 << 30
MEMORY_BYTES = 256 * MIB
RATIO_FROM_BYTES = 512 * MIB
RATIO_LIMIT = 1500
"""Logs of training runs shrink 5 to 60-fold, one line repeated without end some 1,000-fold (the
most gzip can do is 1,032); a bomb for zstd or xz exceeds 10,000."""
PIECE_BYTES = MIB
BINARY_AFTER_BYTES = 64 << 10

MARKLESS_FROM_BYTES = 32
"""Shorter than this, zeros between letters may be chance."""
ENCODING_BYTES = 4096

BYTE_ORDER_MARKS = (
    codecs.BOM_UTF8,
    codecs.BOM_UTF16_LE,
    codecs.BOM_UTF16_BE,
    codecs.BOM_UTF32_BE,
)  # UTF-32's little-endian mark begins with UTF-16's


class Store(Protocol):
    """Bytes that can be read at any offset."""

    size: int

    def read(self, offset: int, size: int) -> bytes:
        """At most `size` bytes; fewer only where there are no more. Raises `OSError`."""

    def close(self) -> None: ...


class FileStore:
    """The first `size` bytes of an open file, which it closes, at the latest when it is dropped:
    whoever cites lines keeps many files open for as long as the facts live."""

    def __init__(self, fd: int, size: int) -> None:
        self.size = size
        self._fd = fd

    def read(self, offset: int, size: int) -> bytes:
        data = os.pread(self._fd, size, offset)
        while data and len(data) < size:
            more = os.pread(self._fd, size - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    __del__ = close


class MemoryStore:
    """Bytes that are held in memory."""

    def __init__(self, data: bytearray) -> None:
        self.size = len(data)
        self._data = memoryview(data)

    def read(self, offset: int, size: int) -> bytes:
        return bytes(self._data[offset : offset + size])

    def close(self) -> None:
        self._data.release()


class Spool:
    """Takes bytes in order; small amounts stay in memory."""

    def __init__(self) -> None:
        self.size = 0
        self._memory = bytearray()
        self._file: FileIO | None = None

    def write(self, data: bytes) -> None:
        """Raises `OSError` where the temporary folder is full; `size` counts what was kept."""
        if self._file is None and self.size + len(data) > MEMORY_BYTES:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
            memory, self._memory, self.size = self._memory, bytearray(), 0
            self._append(self._file, memory)
        if self._file is None:
            self._memory += data
            self.size += len(data)
        else:
            self._append(self._file, data)

    def _append(self, file: FileIO, data: bytes | bytearray) -> None:
        rest = memoryview(data)
        while rest:
            written = file.write(rest)
            self.size += written
            rest = rest[written:]

    def store(self) -> Store:
        if self._file is None:
            return MemoryStore(self._memory)
        with self._file as file:
            return FileStore(os.dup(file.fileno()), self.size)


class _Machine(Protocol):
    """What the decompressors of the standard library have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def needs_input(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gzip:
    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


class _Zstandard:
    """Has no bound on what one call returns, so it is fed little: a block of 128 KiB needs at
    least 4 bytes of input, which makes 32 MiB at most."""

    needs_input = True

    def __init__(self) -> None:
        import zstandard  # only where a file is packed so

        self._inner = zstandard.ZstdDecompressor().decompressobj()

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._inner.decompress(data) if data else b""


def _xz() -> _Machine:
    import lzma  # only where a file is packed so

    return lzma.LZMADecompressor(memlimit=MEMORY_BYTES)


def _bzip2() -> _Machine:
    import bz2  # only where a file is packed so

    return bz2.BZ2Decompressor()


_CONTROL = bytes([*range(0x00, 0x08), *range(0x0E, 0x1B), *range(0x1C, 0x20), 0x7F])
_BINARY_MAGIC = (b"PK\x03\x04", b"\x7fELF", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def is_text(head: bytes) -> bool:
    """
    Whether the first bytes of a file, unpacked, are text of some encoding.

    Telltale are control characters that no log prints: more than 3 % of them is binary (packed
    or encrypted bytes hold 10 %, logs of every framework tried hold none).  NULs alone may
    reach 10 %, for a log that was cut under its writer begins with a hole of them.
    An empty file is text, an archive that was not unpacked is not.
    """
    if not head or head.startswith(BYTE_ORDER_MARKS):
        return True
    if head.startswith(_BINARY_MAGIC) or packing(head) is not None:
        return False
    if b"\0" in head[:ENCODING_BYTES] and encoding(head[:ENCODING_BYTES]) is not None:
        return True
    nuls = head.count(0) if b"\0" in head else 0
    control = len(head) - len(head.translate(None, _CONTROL)) - nuls
    return nuls * 10 <= len(head) and control * 100 <= 3 * len(head)


_PACKERS: tuple[tuple[re.Pattern[bytes], str, Callable[[], _Machine], int], ...] = (
    (re.compile(rb"\x1f\x8b\x08"), "gzip", _Gzip, 64 << 10),
    (re.compile(rb"\xfd7zXZ\0"), "xz", _xz, 64 << 10),
    (re.compile(rb"\x28\xb5\x2f\xfd"), "zstd", _Zstandard, 1 << 10),
    (re.compile(rb"BZh[1-9]1AY&"), "bzip2", _bzip2, 64 << 10),
)


class _Damaged(Exception):
    """The archive ends too early, or is not one from here on."""


def packing(head: bytes) -> str | None:
    """The name of the format a file that begins so is packed in; None where it is not."""
    return next((name for magic, name, _, _ in _PACKERS if magic.match(head)), None)


class _Unpacker:
    """Unpacks one archive in order: one packed stream, or several one after the other."""

    def __init__(self, raw: Store, head: bytes) -> None:
        found = next(found for found in _PACKERS if found[0].match(head))
        _, self._name, self._new, self._feed = found
        self._raw = raw
        self.consumed = 0

    def pieces(self) -> Iterator[bytes]:
        """What it holds, about 1 MiB at a time. Raises `_Damaged`, `OSError`."""
        machine, data = self._new(), b""
        while True:
            ended = False
            if machine.eof:
                data = self._following(machine.unused_data)
                if not data:
                    return
                machine = self._new()
            elif machine.needs_input:
                data = self._take(self._feed)
                ended = not data
            made = _decompress(machine, data)
            data = b""
            if made:
                yield made
            elif ended and not machine.eof:
                raise _Damaged("it ends in the middle of its packed data")

    def _take(self, size: int) -> bytes:
        data = self._raw.read(self.consumed, size)
        self.consumed += len(data)
        return data

    def _following(self, rest: bytes) -> bytes:
        """The beginning of the next stream, past padding; empty where there is none."""
        while not (rest := rest.lstrip(b"\0")):
            rest = self._take(self._feed)
            if not rest:
                return b""
        if len(rest) < 8:
            rest += self._take(8)
        if packing(rest) != self._name:
            raise _Damaged(f"what follows its {self._name} data is something else")
        return rest


def _decompress(machine: _Machine, data: bytes) -> bytes:
    try:
        return machine.decompress(data, PIECE_BYTES)
    except _library_errors() as fault:
        raise _Damaged(f"it is damaged: {fault}") from fault


def _library_errors() -> tuple[type[Exception], ...]:
    """The errors of decompressors that are only imported where they are needed."""
    import lzma  # only where a file is damaged

    import zstandard

    return (lzma.LZMAError, zstandard.ZstdError, zlib.error, OSError, EOFError, ValueError)


def unpack(raw: Store, head: bytes, source: str, gaps: list[Gap], limit: int = 0) -> Store:
    """
    What `raw`, which begins with `head`, unpacks to: all of it, or about `limit` bytes.

    Damage, bombs and a full temporary folder end it early, with a gap.
    """
    spool, unpacker = Spool(), _Unpacker(raw, head)
    try:
        for piece in unpacker.pieces():
            spool.write(piece)
            reason = _too_much(spool.size, unpacker.consumed)
            if spool.size == len(piece) and not is_text(piece[:BINARY_AFTER_BYTES]):
                reason = "it does not hold text"
            if reason is not None:
                gaps.append(_gap(source, spool.size, reason))
                break
            if limit and spool.size >= limit:
                break
    except _Damaged as fault:
        gaps.append(_gap(source, spool.size, str(fault)))
    except OSError as fault:
        gaps.append(_gap(source, spool.size, os.strerror(fault.errno or errno.EIO)))
    return spool.store()


def _too_much(size: int, consumed: int) -> str | None:
    if size >= ARCHIVE_CAP_BYTES:
        return f"no more than {ARCHIVE_CAP_BYTES >> 30} GiB are unpacked"
    if size >= RATIO_FROM_BYTES and size > RATIO_LIMIT * consumed:
        return f"it unpacks to more than {RATIO_LIMIT} times its size, as no log does"
    return None


def _gap(source: str, size: int, reason: str) -> Gap:
    return Gap(f"{source} beyond its first {size} unpacked bytes", reason, source)


def encoding(head: bytes) -> str | None:
    """
    The encoding of a file that begins so, where it is not UTF-8.

    A byte-order mark announces it; without one, UTF-16 is told by its zeros: every other byte of
    Latin text is one, and none of those between.
    """
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    start = head[: len(head) // 2 * 2]
    if len(start) < MARKLESS_FROM_BYTES or head.startswith(codecs.BOM_UTF8):
        return None
    zeros = start[::2].count(0), start[1::2].count(0)
    for here, there, name in ((0, 1, "utf-16-be"), (1, 0, "utf-16-le")):
        if zeros[here] * 20 >= len(start) // 2 * 19 and not zeros[there]:
            text = start.decode(name, "replace")
            return name if is_text(text.encode()) else None
    return None


def transcode(raw: Store, name: str, source: str, gaps: list[Gap]) -> Store:
    """`raw` in UTF-8. What is not valid in its encoding is replaced."""
    decoder = codecs.getincrementaldecoder(name)("replace")
    spool = Spool()
    offset = 0
    try:
        while data := raw.read(offset, PIECE_BYTES):
            if spool.size >= ARCHIVE_CAP_BYTES:
                reason = f"no more than {ARCHIVE_CAP_BYTES >> 30} GiB are put into UTF-8"
                gaps.append(_gap(source, spool.size, reason))
                break
            offset += len(data)
            spool.write(decoder.decode(data).encode("utf-8", "replace"))
        spool.write(decoder.decode(b"", True).encode("utf-8", "replace"))
    except OSError as fault:
        gaps.append(_gap(source, spool.size, os.strerror(fault.errno or errno.EIO)))
    return spool.store()
