"""
What a Parquet file says of itself, looked at before anything of it is unpacked.

The reader makes room for a page as large as the page claims, and a dictionary or a packed text
can grow a thousandfold: a file of a few kilobytes would take gigabytes before a row is counted.
So footer and page headers (Thrift's compact protocol) are walked first: rows, the bytes all pages
unpack to, and that pages are packed as `columnar_files` packs them, which says the same size
again.  Layouts: `parquet.thrift` of apache/parquet-format, RFC 8878 for the frames.
"""

from __future__ import annotations

from typing import Any

from flatline.errors import FormatError

MAX_FOOTER = 1 << 20
"""A table of ours has some 700 bytes of it."""
_PLAIN, _ZSTD = 0, 6
_DATA, _DATA_2 = 0, 3
_DEPTH = 16


def check(data: bytes, name: str, most_rows: int, most_bytes: int, *, texts: bool) -> None:
    """Raises FormatError where the file is not whole, has more rows, unpacks to more bytes, or
    is packed otherwise; `texts` have to stand as they are, one after the other."""
    try:
        footer = int.from_bytes(data[-8:-4], "little")
        if data[:4] != b"PAR1" or data[-4:] != b"PAR1" or not 0 < footer <= MAX_FOOTER:
            raise FormatError(f"{name} is no whole Parquet file")
        meta = _Thrift(data[-8 - footer : -8], 0).struct()
        groups = [group for group in meta.get(4, []) if group[3]]
        if meta[3] > most_rows or sum(group[3] for group in groups) > most_rows:
            raise FormatError(f"{name} has more rows than it should")
        size = 0
        for column in (column[3] for group in groups for column in group[1]):
            if column[4] != _ZSTD or 11 in column:
                raise FormatError(f"{name} is packed in a way that is not read")
            for page in _pages(data, column):
                size += _unpacked(data, name, page, texts=texts)
                if size > most_bytes:
                    raise FormatError(f"{name} unpacks to more than {most_bytes >> 20} MiB")
    except (LookupError, TypeError, ValueError, AttributeError) as fault:
        raise FormatError(f"{name} is no whole Parquet file") from fault


_Page = tuple[dict[int, Any], int]
"""A page's header, and where its data begins."""


def _pages(data: bytes, column: dict[int, Any]) -> list[_Page]:
    at, end = column[9], column[9] + column[7]
    if not 4 <= at <= end <= len(data):
        raise ValueError("a column that lies elsewhere")
    found = []
    while at < end:
        reader = _Thrift(data, at)
        header = reader.struct()
        if not 0 <= header[3] <= end - reader.at:
            raise ValueError("a page that lies elsewhere")
        found.append((header, reader.at))
        at = reader.at + header[3]
    return found


def _unpacked(data: bytes, name: str, page: _Page, *, texts: bool) -> int:
    """The bytes a page unpacks to, by its header and by what it holds."""
    import zstandard

    header, at = page
    about = header[8] if header[1] == _DATA_2 else header[5]
    encoding = about[4] if header[1] == _DATA_2 else about[2]
    if header[1] not in (_DATA, _DATA_2) or (texts and encoding != _PLAIN):
        raise FormatError(f"{name} is packed in a way that is not read")
    levels = about[5] + about[6] if header[1] == _DATA_2 else 0
    size = int(header[2])
    held = data[at + levels : at + header[3]]
    if size > levels and about.get(7, True):
        try:
            told = zstandard.frame_content_size(held)
        except zstandard.ZstdError as fault:
            raise ValueError("no frame") from fault
        if told != size - levels:
            raise ValueError("a page that unpacks to another size than it says")
    return size


class _Thrift:
    """Structs as mappings by field number, lists as lists. Raises LookupError where it is cut
    off, ValueError for what is none."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self.at = at

    def struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > _DEPTH:
            raise ValueError("too deep")
        found: dict[int, Any] = {}
        number = 0
        while kind := self._byte():
            number = number + (kind >> 4) if kind >> 4 else self._integer()
            found[number] = self._value(kind & 15, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        match kind:
            case 1 | 2:
                return kind == 1
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._integer()
            case 7:
                return self._bytes(8)
            case 8:
                return self._bytes(self._varint())
            case 9 | 10:
                return self._list(depth)
            case 12:
                return self.struct(depth + 1)
        raise ValueError("a type that does not occur")

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        size = head >> 4 if head >> 4 < 15 else self._varint()
        if size > len(self._data) - self.at:
            raise ValueError("longer than the file")
        return [self._value(head & 15, depth + 1) for _ in range(size)]

    def _bytes(self, size: int) -> bytes:
        if size > len(self._data) - self.at:
            raise ValueError("longer than the file")
        self.at += size
        return self._data[self.at - size : self.at]

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number without end")

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
