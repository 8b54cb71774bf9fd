"""
How fast a database folder is read: samples a second of processor time, beside a plain copy.

    python bench/tsdb.py [--folder DATA] [--chunks 65536]
    python bench/tsdb.py --make DATA [--gpus 192] [--metrics 40] [--hours 2.9] [--at-once 1]

Without a folder the one the tests keep is taken; its chunks are repeated until there are enough.
The second form has a Prometheus write such a folder, by remote write, a record for a host and so
many scrapes, and nothing in blocks yet.
Three figures: chunks in lockstep, records of the log in lockstep, and a whole selection with
index, checksums and merge.  Each stands beside copying as many samples (16 bytes each) in memory.
"""

from __future__ import annotations

import argparse
import sys
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


def make(folder: Path, gpus: int, metrics: int, hours: float, at_once: int) -> int:
    """A folder as a server that was killed within its first block leaves it."""
    import http.client

    import cramjam

    here = Path(__file__).parent
    sys.path[:0] = [str(here), str(here.parent / "tests" / "series")]
    import against_prometheus as witness

    import promql

    data = promql.series(gpus, metrics, hours)
    size = data.times.size // len(data.labels)
    plain = np.zeros((data.times.size, 18), np.uint8)  # a prometheus.Sample each
    plain[:, [0, 1, 2, 11]] = 0x12, 16, 0x09, 0x10
    plain[:, 3:11] = data.values.view(np.uint8).reshape(-1, 8)
    at = np.round(data.times * 1000).astype(np.uint64)
    for byte in range(6):
        plain[:, 12 + byte] = (at >> np.uint64(7 * byte)) & np.uint64(127) | (128 * (byte < 5))
    hosts: dict[str, list[int]] = {}
    heads = []
    for row, labels in enumerate(data.labels):
        hosts.setdefault(dict(labels)["host"], []).append(row)
        heads.append(b"".join(witness._field(1, witness._field(1, k.encode())
                              + witness._field(2, v.encode())) for k, v in labels))  # fmt: skip
    options = ("--web.enable-remote-write-receiver", "--storage.tsdb.min-block-duration=24h",
               "--storage.tsdb.max-block-duration=24h")  # fmt: skip
    with witness.serving(*options, folder=folder) as url:
        line = http.client.HTTPConnection(url.removeprefix("http://"))
        for begin in range(0, size, at_once):
            for rows in hosts.values():
                end = min(begin + at_once, size)
                message = b"".join(
                    witness._field(
                        1, heads[r] + plain[r * size + begin : r * size + end].tobytes()
                    )
                    for r in rows
                )
                body = bytes(cramjam.snappy.compress_raw(message))
                line.request("POST", "/api/v1/write", body, {"Content-Encoding": "snappy"})
                line.getresponse().read()
    return data.times.size


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    reader.add_argument("--make", type=Path)
    reader.add_argument("--gpus", type=int, default=192)
    reader.add_argument("--metrics", type=int, default=40)
    reader.add_argument("--hours", type=float, default=2.9)
    reader.add_argument("--at-once", type=int, default=1)
    reader.add_argument("--folder", type=Path, default=FOLDER)
    reader.add_argument("--chunks", type=int, default=65_536)
    asked = reader.parse_args()
    if asked.make is not None:
        made = make(asked.make, asked.gpus, asked.metrics, asked.hours, asked.at_once)
        print(f"{made:,} samples in {asked.make}")
        return
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
