"""
Tables of numbers and texts as Parquet files, one table a file: no more of the format is used.

`arro3` reads and writes them (Rust, memory-safe): a file that is hostile or damaged ends in a
FormatError, and no more rows are taken than were announced.  Columns are int32, int64 or text and
never null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from flatline.errors import FormatError
from flatline.series.columnar_pages import check
from flatline.series.tsdb.files import ReadOnly

Encoding = Literal["byte_stream_split", "delta_binary_packed", "plain"]
Numbers = NDArray[np.int32] | NDArray[np.int64]
LEVEL = 9
"""Of zstd: 12 gains 1 % on the set of `bench/store.py` and takes twice the time to write."""
BATCH = 1 << 18
MAX_ROWS = 1 << 26
"""Of one table: the labels of eight million series."""
MAX_FILE_BYTES = 1 << 31
MAX_TEXT_BYTES = 1 << 28
"""Of all texts: eight million of 32 letters. A text a thousand times over packs to nothing."""
TEXTS = 1 << 10
"""Texts that are unpacked at once."""
PAGES = 1 << 20
"""Bytes that pages of numbers may have beyond their numbers."""


def write_numbers(
    path: Path, columns: Mapping[str, Numbers], encoding: Encoding = "byte_stream_split"
) -> None:
    """Columns of one length, each int32 or int64. Raises OSError."""
    from arro3.core import Array, DataType, Field, RecordBatch, Schema

    kinds = {np.dtype(np.int32): DataType.int32(), np.dtype(np.int64): DataType.int64()}
    schema = Schema(
        [Field(name, kinds[column.dtype], nullable=False) for name, column in columns.items()]
    )
    arrays = [Array.from_numpy(np.ascontiguousarray(column)) for column in columns.values()]
    _write(path, RecordBatch.from_arrays(arrays, schema=schema), encoding)


def write_texts(path: Path, texts: Sequence[str]) -> None:
    """One column `text`. Raises OSError."""
    from arro3.core import Array, DataType, Field, RecordBatch, Schema

    schema = Schema([Field("text", DataType.utf8(), nullable=False)])
    array = Array(list(texts), type=DataType.utf8())
    _write(path, RecordBatch.from_arrays([array], schema=schema), "plain")


def _write(path: Path, batch: Any, encoding: Encoding) -> None:
    from arro3.io import write_parquet

    with path.open("xb") as file:
        write_parquet(
            batch,
            file,
            compression=f"zstd({LEVEL})",
            encoding=encoding,
            dictionary_enabled=False,
            data_page_row_count_limit=BATCH,
            data_page_size_limit=8 * BATCH,
            max_row_group_size=MAX_ROWS,
            max_statistics_size=8,
            writer_version="parquet_2_0",
            created_by="flatline",
        )


def read_numbers(path: Path, names: Sequence[str], limit: int = MAX_ROWS) -> list[Numbers]:
    """The columns of these names. Raises FormatError where the file is not such a table."""
    from arro3.core import DataType

    parts: list[list[Numbers]] = [[] for _ in names]
    for batch in _batches(path, limit, BATCH, PAGES + 8 * limit * len(names)):
        for name, found in zip(names, parts, strict=True):
            if name not in batch.column_names:
                raise FormatError(f"{path.name} has no column {name!r}")
            column = batch.column(name)
            if column.null_count or column.type not in (DataType.int32(), DataType.int64()):
                raise FormatError(f"{path.name}: {name!r} holds no whole numbers")
            found.append(np.asarray(column))
    return [_joined(found) for found in parts]


def read_texts(path: Path, limit: int) -> list[str]:
    """The column `text`. Raises FormatError."""
    from arro3.core import DataType

    found: list[str] = []
    for batch in _batches(path, limit, TEXTS, MAX_TEXT_BYTES, texts=True):
        if "text" not in batch.column_names or batch.column("text").type != DataType.utf8():
            raise FormatError(f"{path.name} holds no texts")
        found += batch.column("text").to_pylist()
    if None in found:
        raise FormatError(f"{path.name}: a text is missing")
    return found


def _joined(parts: list[Numbers]) -> Numbers:
    if not parts:
        return np.empty(0, dtype=np.int64)
    if len(parts) == 1:
        return parts[0]
    joined: Any = np.concatenate(parts)
    return cast(Numbers, joined)


def _batches(
    path: Path, limit: int, at_once: int, most_bytes: int, *, texts: bool = False
) -> list[Any]:
    """The rows of a file, batch by batch; a file with more than `limit`, or that unpacks to more
    than so many bytes, is refused before any of it is unpacked."""
    try:
        return list(_taken(path, limit, at_once, most_bytes, texts=texts))
    except FileNotFoundError as fault:
        raise FormatError(f"{path.name} is missing") from fault
    except OSError as fault:
        raise FormatError(f"{path.name}: {fault.strerror or fault}") from fault
    except FormatError:
        raise
    except BaseException as fault:  # a panic of the reader is no Exception
        if isinstance(fault, Exception) or type(fault).__name__ == "PanicException":
            raise FormatError(f"{path.name} is no whole Parquet file") from fault
        raise


def _taken(path: Path, limit: int, at_once: int, most_bytes: int, *, texts: bool) -> Iterator[Any]:
    from arro3.io import read_parquet

    with ReadOnly(path) as file:
        if file.size > MAX_FILE_BYTES:
            raise FormatError(f"{path.name} has {file.size} bytes, more than is read")
        data = file.read(0, file.size)
    check(data, path.name, limit, most_bytes, texts=texts)
    rows = 0
    for batch in read_parquet(data, batch_size=max(1, min(limit, at_once))):
        rows += batch.num_rows
        if rows > limit:  # whatever the footer says
            raise FormatError(f"{path.name} has more rows than it should")
        yield batch
