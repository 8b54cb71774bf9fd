"""
Columnar libraries side by side: import, bytes a sample, and the time to read one selector.

    pip install numpy pyarrow polars duckdb fastparquet pandas arro3-core arro3-io
    python bench/columns.py

2,048 series of 480 samples that move by a step now and then, as the store keeps them (folded
differences, int32), in parts of 262,144; read is one part, to NumPy.  Libraries that are not
installed are left out.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SERIES, SAMPLES, PART = 2048, 480, 1 << 18
IMPORTS = {
    "arro3": "arro3.core, arro3.io",
    "pyarrow": "pyarrow.parquet",
    "polars": "polars",
    "duckdb": "duckdb",
    "fastparquet": "fastparquet",
}


def numbers() -> Any:
    moves = np.random.default_rng(1).choice([-1, 0, 1], (SERIES, SAMPLES), p=[0.05, 0.9, 0.05])
    moves[:, 0] = 0
    return ((moves << 1) ^ (moves >> 63)).astype(np.int32).ravel()


def fastest(work: Callable[[], Any], repeat: int = 7) -> float:
    best = float("inf")
    for _ in range(repeat):
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
    return best


def import_ms(modules: str) -> float:
    """What an import takes beyond NumPy's."""
    program = (
        "import time, numpy; begin = time.perf_counter()\n"
        f"import {modules}\nprint(time.perf_counter() - begin)"
    )
    command = [sys.executable, "-c", program]
    return 1000 * min(
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        for _ in range(7)
    )


def arro3(column: Any, path: Path) -> Callable[[], Any]:
    from arro3.core import Array, DataType, Field, RecordBatch, Schema
    from arro3.io import read_parquet, write_parquet

    schema = Schema([Field("d", DataType.int32(), nullable=False)])
    batch = RecordBatch.from_arrays([Array.from_numpy(column[:PART])], schema=schema)
    write_parquet(
        batch, path, compression="zstd(6)", dictionary_enabled=False, encoding="byte_stream_split",
        data_page_row_count_limit=PART, data_page_size_limit=8 * PART,
    )  # fmt: skip
    return lambda: [np.asarray(b.column("d")) for b in read_parquet(path, batch_size=PART)]


def pyarrow(column: Any, path: Path) -> Callable[[], Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(
        pa.table({"d": column}), path, compression="zstd", compression_level=6,
        use_dictionary=False, column_encoding={"d": "BYTE_STREAM_SPLIT"}, row_group_size=PART,
    )  # fmt: skip
    return lambda: pq.ParquetFile(path).read_row_group(1).column(0).to_numpy()


def polars(column: Any, path: Path) -> Callable[[], Any]:
    import polars as pl

    frame = pl.DataFrame({"d": column})
    frame.write_parquet(path, compression="zstd", compression_level=6, row_group_size=PART)
    return lambda: pl.scan_parquet(path).slice(PART, PART).collect()["d"].to_numpy()


def duckdb(column: Any, path: Path) -> Callable[[], Any]:
    import duckdb as db

    connection = db.connect()
    connection.register("given", {"d": column})
    connection.execute(
        f"copy (select d from given) to '{path}' (format parquet, compression zstd,"
        f" compression_level 6, parquet_version v2, row_group_size {PART})"
    )
    asked = (
        f"select d from read_parquet('{path}', file_row_number=true)"
        f" where file_row_number >= {PART} and file_row_number < {2 * PART}"
    )
    return lambda: connection.execute(asked).fetchnumpy()["d"]


def fastparquet(column: Any, path: Path) -> Callable[[], Any]:
    import fastparquet as fp
    import pandas as pd

    fp.write(str(path), pd.DataFrame({"d": column}), compression="ZSTD", row_group_offsets=PART)
    return lambda: fp.ParquetFile(str(path))[1].to_pandas()["d"].to_numpy()


def main() -> None:
    column = numbers()
    makers = {m.__name__: m for m in (arro3, pyarrow, polars, duckdb, fastparquet)}
    with tempfile.TemporaryDirectory() as folder:
        for name, maker in makers.items():
            if importlib.util.find_spec(name) is None:
                continue
            path = Path(folder) / f"{name}.parquet"
            read = maker(column, path)
            held = PART if name == "arro3" else column.size
            print(
                f"{name:12s} import {import_ms(IMPORTS[name]):6.1f} ms"
                f"  {path.stat().st_size / held:6.3f} bytes/sample"
                f"  one part read in {1000 * fastest(read):6.2f} ms"
            )


if __name__ == "__main__":
    main()
