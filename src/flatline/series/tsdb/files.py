"""
Files of others, opened so that reading leaves no trace where the system allows it.

Access times stay as they are where the file is ours or we may override it (O_NOATIME); a pipe or
device in the place of a file is refused.  Bytes are read by position, never mapped: a file that
is cut while it is mapped kills the reader.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import TracebackType

from google_crc32c import value as crc32c

__all__ = ["ReadOnly", "crc32c", "listed"]

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_NOATIME = getattr(os, "O_NOATIME", 0)


def _open(path: Path, flags: int) -> int:
    try:
        return os.open(path, _FLAGS | _NOATIME | flags)
    except PermissionError:  # only the owner may ask for that
        return os.open(path, _FLAGS | flags)


def listed(folder: Path) -> list[str]:
    """The names in a folder, sorted; none where it is not there. Raises OSError."""
    try:
        opened = _open(folder, os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        return []
    try:
        return sorted(entry.name for entry in os.scandir(opened))
    finally:
        os.close(opened)


class ReadOnly:
    """A regular file by position. Raises OSError."""

    _fd = -1

    def __init__(self, path: Path) -> None:
        self._fd = _open(path, 0)
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise OSError(f"{path.name} is no regular file")
        self.size = status.st_size

    def read(self, at: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only where the file ends."""
        if at < 0 or size <= 0:
            return b""
        data = os.pread(self._fd, min(size, max(0, self.size - at)), at)
        while len(data) < size:
            more = os.pread(self._fd, min(size - len(data), 1 << 30), at + len(data))
            if not more:
                break
            data += more
        return data

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> ReadOnly:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()
