"""How far a piece of work is: one line that is drawn over, on a terminal."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from typing import TextIO

PATIENCE_S = 2.0
"""Work that takes less needs no progress bar."""
REDRAW_S = 0.1


class Progress:
    """
    One line that is drawn over, on a terminal, once the work has taken `PATIENCE_S`.

    Called with (stage, done, in all) from any thread, in bytes where no unit is named; silent
    where the stream is no terminal.
    """

    def __init__(
        self, stream: TextIO, clock: Callable[[], float] = time.monotonic, unit: str = ""
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._unit = unit
        self._began = clock()
        self._drawn_at = 0.0
        self._width = 0
        self._lock = threading.Lock()
        self._shown = stream.isatty()

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = self._clock()
        with self._lock:
            if not self._shown or now - self._began < PATIENCE_S:
                return
            if now - self._drawn_at < REDRAW_S and (total <= 0 or done < total):
                return
            self._drawn_at = now
            columns = shutil.get_terminal_size((80, 24)).columns
            line = progress_line(stage, done, total, self._unit)[: columns - 1]
            self._put("\r" + line.ljust(self._width))
            self._width = len(line)

    def clear(self) -> None:
        """Leave the line as if nothing had been there."""
        with self._lock:
            if self._width:
                self._put("\r" + " " * self._width + "\r")
            self._shown = False

    def _put(self, drawn: str) -> None:
        try:
            self._stream.write(drawn)
            self._stream.flush()
        except OSError:
            self._shown = False


def progress_line(stage: str, done: int, total: int, unit: str = "") -> str:
    """`reading logs  [#####.....]  50%  1.2 of 2.4 GiB`; without a total, what was done."""
    if unit and total > 0:
        bar = ("#" * round(min(max(done / total, 0.0), 1.0) * 20)).ljust(20, ".")
        return f"{stage}  [{bar}] {done / total:4.0%}  {done:,} of {total:,} {unit}"
    size, unit = (1 << 30, "GiB") if max(done, total) >= 1 << 30 else (1 << 20, "MiB")
    if total <= 0:
        return f"{stage}  {done / size:.1f} {unit}"
    part = min(max(done / total, 0.0), 1.0)
    bar = ("#" * round(part * 20)).ljust(20, ".")
    return f"{stage}  [{bar}] {part:4.0%}  {done / size:.1f} of {total / size:.1f} {unit}"
