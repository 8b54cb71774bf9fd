"""
How fast a database folder is read: samples a second of processor time, beside a plain copy.

    python bench/tsdb.py [--folder DATA] [--chunks 65536]

Without a folder the one the tests keep is taken; its chunks are repeated until there are enough.
Three figures: chunks in lockstep, records of the log in lockstep, and a whole selection with
index, checksums and merge.  Each stands beside copying as many samples (16 bytes each) in memory.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from flatline.series.tsdb import wal
from flatline.series.tsdb.database import Database
from flatline.series.tsdb.head import Head
from flatline.series.tsdb.pieces import Damage, Selection
from flatline.series.tsdb.xor import decode

FOLDER = Path(__file__).parent.parent / "tests" / "fixtures" / "tsdb" / "db"
EVER = (-(1 << 60), 1 << 60)


class Raw(Selection):
    """Keeps chunks as they are."""

    def __init__(self) -> None:
        super().__init__(EVER, Damage())
        self.raw: list[bytes] = []

    def chunk(
        self,
        row: int,
        encoding: int,
        data: bytes,
        where: str,
        deleted: tuple[tuple[int, int], ...] = (),
    ) -> bool:
        self.raw.append(data)
        return True


def fastest(work: Callable[[], int], repeat: int = 5) -> tuple[float, int]:
    """Seconds of processor time of the fastest run, and the samples it gave."""
    best, size = float("inf"), 0
    for _ in range(repeat):
        begin = time.process_time()
        size = work()
        best = min(best, time.process_time() - begin)
    return best, size


def told(name: str, work: Callable[[], int]) -> None:
    took, size = fastest(work)
    source = np.zeros((2, size))
    copied, _ = fastest(lambda: source.copy().size)
    print(f"{name:32s} {size / took / 1e6:7.1f} M samples/s  {took / copied:5.0f} x a copy")


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    reader.add_argument("--folder", type=Path, default=FOLDER)
    reader.add_argument("--chunks", type=int, default=65_536)
    asked = reader.parse_args()
    raw = Raw()
    head = Head(asked.folder, Damage())
    head.select((), raw)
    store = Database(asked.folder, "db")
    for block in store._blocks:
        block.select((), raw)
    chunks = (raw.raw * (asked.chunks // max(1, len(raw.raw)) + 1))[: asked.chunks]
    told("chunks, decoded in lockstep", lambda: decode(chunks).times.size)
    records = [record for record in head._records(Damage()) if record[0] == wal.SAMPLES]
    repeated = (records * (4096 // max(1, len(records)) + 1))[:16_384]
    told("records of the log, in lockstep", lambda: wal.samples_of(repeated)[0].size)
    told("a whole folder, from opening on",
         lambda: Database(asked.folder, "db").select((), -1e15, 1e15).times.size)  # fmt: skip


if __name__ == "__main__":
    main()
