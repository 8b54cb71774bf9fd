"""How many newlines stand before any place of a block, at the price of counting them once."""

from __future__ import annotations

import sys
import threading
from itertools import accumulate

KIB_BITS = 10
KIB = 1 << KIB_BITS
WORD_BYTES = 8
_local = threading.local()
"""Of each thread an array to compare into: new memory for every block takes longer than that."""


class Newlines:
    """
    Those of `data`: `passed` is how many stand before each whole KiB of it.

    NumPy counts at seven times the speed and takes 0.1 s to import, which small logs need not
    pay: it is used where it is there, or where the file is `large`.
    """

    __slots__ = ("data", "passed")

    def __init__(self, data: bytes, large: bool) -> None:
        self.data = data
        self.passed = _many(data) if large or "numpy" in sys.modules else _few(data)

    def before(self, place: int) -> int:
        """How many stand before a place that is no further than the end."""
        kib = place >> KIB_BITS
        return self.passed[kib] + self.data.count(b"\n", kib << KIB_BITS, place)


def _few(data: bytes) -> list[int]:
    starts = range(0, len(data) - KIB + 1, KIB)
    return list(accumulate((data.count(b"\n", at, at + KIB) for at in starts), initial=0))


def _many(data: bytes) -> list[int]:
    """Eight bytes are added at once: each of the 128 words of a KiB adds 0 or 1 to a byte."""
    import numpy as np

    size = len(data) >> KIB_BITS << KIB_BITS
    if not size:
        return [0]
    scratch = getattr(_local, "scratch", None)
    if scratch is None or len(scratch) < size:
        scratch = _local.scratch = np.empty(size, np.bool_)
    newline = np.equal(np.frombuffer(data, np.uint8, size), 0x0A, out=scratch[:size])
    words = newline.view(np.uint64)
    sums = np.add.reduceat(words, np.arange(0, len(words), KIB // WORD_BYTES)).view(np.uint8)
    counts = np.add.reduceat(sums, np.arange(0, len(sums), WORD_BYTES), dtype=np.int64)
    return [0, *counts.cumsum().tolist()]
