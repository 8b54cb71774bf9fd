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

    kibs = len(data) >> KIB_BITS
    if not kibs:
        return [0]
    held = getattr(_local, "held", None)
    if held is None or len(held[0]) < kibs << KIB_BITS:
        scratch = np.empty(kibs << KIB_BITS, np.bool_)
        words = np.arange(0, kibs * KIB // WORD_BYTES, KIB // WORD_BYTES)
        passed = np.zeros(kibs + 1, np.int64)
        held = _local.held = scratch, words, np.arange(0, kibs * WORD_BYTES, WORD_BYTES), passed
    scratch, words, eights, passed = held
    bytes_ = np.frombuffer(data, np.uint8, kibs << KIB_BITS)
    newline = np.equal(bytes_, 0x0A, out=scratch[: kibs << KIB_BITS])
    sums = np.add.reduceat(newline.view(np.uint64), words[:kibs]).view(np.uint8)
    np.add.reduceat(sums, eights[:kibs], dtype=np.int64).cumsum(out=passed[1 : kibs + 1])
    listed: list[int] = passed[: kibs + 1].tolist()
    return listed
