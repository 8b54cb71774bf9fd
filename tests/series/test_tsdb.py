"""A database folder is read in place: every sample, nothing else, and without a trace."""

from __future__ import annotations

import ast
import gzip
import re
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import cramjam
import numpy as np
import pytest
import zstandard
from google_crc32c import value as crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from flatline.errors import SourceError
from flatline.series.matching import Matcher
from flatline.series.storage import Labels, MemoryStore, Series, each, series_of
from flatline.series.tsdb import head, index
from flatline.series.tsdb.database import Database
from flatline.series.tsdb.xor import decode
from series.gorilla import encode, uvarint, varint

FIXTURE = Path(__file__).parent.parent / "fixtures" / "tsdb"
BLOCK = next(path.name for path in (FIXTURE / "db").iterdir() if len(path.name) == 26)
LINE = re.compile(r"\{(.*)\} (\S+) (-?\d+)")
PAIR = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*")')
EVER = (-1e15, 1e15)
Samples = dict[Labels, list[tuple[float, int]]]


def dumped() -> Series:
    """What the server's own tool says is in the folder."""
    rows: dict[Labels, list[tuple[float, float]]] = {}
    for line in gzip.decompress((FIXTURE / "dump.txt.gz").read_bytes()).decode().splitlines():
        found = LINE.fullmatch(line)
        assert found is not None
        labels = tuple(sorted((k, ast.literal_eval(v)) for k, v in PAIR.findall(found[1])))
        rows.setdefault(labels, []).append((int(found[3]) / 1000, float(found[2])))
    return series_of((dict(labels), samples) for labels, samples in rows.items())


def samples(series: Series) -> Samples:
    """By labels, values as bits but for NaN, whose kind a dump does not tell."""
    return {
        labels: [
            (t, 0 if v != v else struct.unpack("<Q", struct.pack("<d", v))[0])
            for t, v in zip(times.tolist(), values.tolist(), strict=True)
        ]
        for labels, times, values in each(series)
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the recorded folder, to be damaged."""
    shutil.copytree(FIXTURE / "db", tmp_path / "db")
    return tmp_path / "db"


def every(folder: Path, *matchers: Matcher) -> Samples:
    return samples(Database(folder, "db").select(matchers, *EVER))


def amount(found: Samples) -> int:
    return sum(map(len, found.values()))


def state(folder: Path) -> dict[str, tuple[object, ...]]:
    return {
        str(path): (s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_atime_ns,
                    path.read_bytes() if path.is_file() else None)
        for path in sorted(folder.rglob("*"))
        for s in [path.stat()]
    }  # fmt: skip


# --- what is there ---


def test_every_sample_the_servers_own_tool_finds_is_found() -> None:
    """Of the block and of the head of a killed server, without what was deleted, to the bit."""
    store = Database(FIXTURE / "db", "db")

    assert samples(store.select((), *EVER)) == samples(dumped())
    assert store.gaps == ()


@pytest.mark.parametrize(
    "matchers",
    (
        (Matcher("__name__", "=", "DCGM_FI_DEV_SM_CLOCK"),),
        (Matcher("__name__", "=~", "DCGM_.*"), Matcher("gpu", "!=", "1")),
        (Matcher("gpu", "=~", "0|1"), Matcher("__name__", "!~", ".*TEMP")),
        (Matcher("gpu", "=", ""),),
        (Matcher("gpu", "!=", ""), Matcher("job", "=", "")),
        (Matcher("nothing", "=", "x"),),
        (Matcher("__name__", "=", "nothing"),),
        (Matcher("job", "=~", "x?"), Matcher("kind", "=", "values")),
    ),
)
def test_matchers_select_as_they_do_in_memory(matchers: tuple[Matcher, ...]) -> None:
    """Through the index of the block and over the series of the head."""
    memory = MemoryStore(dumped())

    assert every(FIXTURE / "db", *matchers) == samples(memory.select(matchers, *EVER))
    store = Database(FIXTURE / "db", "db")
    assert set(store.labels(matchers)) >= set(memory.labels(matchers))


def test_a_window_holds_its_own_samples_only() -> None:
    """Both ends included."""
    whole = dumped()
    start, end = float(whole.times.min()) + 600, float(whole.times.min()) + 1200
    found = Database(FIXTURE / "db", "db").select((), start, end)

    assert found.times.size == np.count_nonzero((whole.times >= start) & (whole.times <= end))
    assert (found.times.min(), found.times.max()) == (start, end)


def test_metrics_and_their_labels_are_told_without_reading_samples() -> None:
    """And the time samples span."""
    store, memory = Database(FIXTURE / "db", "db"), MemoryStore(dumped())

    assert dict(store.names()) == dict(memory.names())
    assert store.span == memory.span


def test_reading_leaves_no_trace(folder: Path) -> None:
    """No byte, time or file of the folder is another afterwards."""
    state(folder)  # whatever reading to compare does to access times is done before
    before = state(folder)
    every(folder)

    assert state(folder) == before


def test_a_folder_that_may_not_be_written_is_read(folder: Path) -> None:
    """It is opened for reading only."""
    for path in [*folder.rglob("*"), folder]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert every(folder) == samples(dumped())
    finally:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755)


# --- what is damaged ---


def damaged(folder: Path, name: str, change: str) -> None:
    path = folder / name.replace("BLOCK", BLOCK)
    data = bytearray(path.read_bytes())
    used = len(bytes(data).rstrip(b"\0"))
    match change:
        case "cut":
            del data[used * 2 // 3 :]
        case "flipped":
            data[used // 2] ^= 0x55
        case "empty":
            data.clear()
    path.write_bytes(data)


FILES = ("BLOCK/index", "BLOCK/chunks/000001", "BLOCK/meta.json", "BLOCK/tombstones",
         "chunks_head/000001", "wal/00000000", "wal/00000001")  # fmt: skip


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("change", ("cut", "flipped", "empty"))
def test_damage_is_told_and_the_rest_is_read(folder: Path, name: str, change: str) -> None:
    """No sample is made up; what a damaged list of deletions hid may show."""
    damaged(folder, name, change)
    store = Database(folder, "db")
    found, whole = samples(store.select((), *EVER)), samples(dumped())

    assert amount(found) > 500
    if "tombstones" not in name and "wal" not in name:
        assert all(set(found[labels]) <= set(whole[labels]) for labels in found)
    nothing_yet = change == "empty" and "wal" in name  # as a server begins a segment
    assert store.gaps or nothing_yet or amount(found) >= amount(whole)


def test_a_chunk_that_does_not_match_its_checksum_is_left_out_alone(folder: Path) -> None:
    """The others of its file and of its series are there."""
    path = folder / BLOCK / "chunks" / "000001"
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    store = Database(folder, "db")
    lost = amount(samples(dumped())) - amount(samples(store.select((), *EVER)))

    assert 0 < lost <= 120
    assert "checksum" in store.gaps[0].reason


@pytest.mark.parametrize("encoding, name", ((2, "native histograms"), (3, "native float hist"),
                                            (99, "chunks of encoding 99")))  # fmt: skip
def test_what_is_no_float_chunk_is_refused_by_name(folder: Path, encoding: int, name: str) -> None:
    """Not decoded as something else."""
    path = folder / BLOCK / "chunks" / "000001"
    data = bytearray(path.read_bytes())
    size, at = index.uvarint(data, 8)
    data[at] = encoding
    end = at + 1 + size
    data[end : end + 4] = crc32c(bytes(data[at:end])).to_bytes(4, "big")
    path.write_bytes(data)
    store = Database(folder, "db")
    store.select((), *EVER)

    assert store.gaps[0].reason.startswith(name)


def test_a_block_being_written_is_not_read_and_one_twice_there_counts_once(folder: Path) -> None:
    """As a compaction that was killed leaves them."""
    block = folder / BLOCK
    shutil.copytree(block, folder / f"{BLOCK}.tmp-for-creation")
    shutil.copytree(block, folder / (BLOCK[:-1] + "0"))

    assert every(folder) == samples(dumped())


def test_a_block_alone_is_a_database() -> None:
    """As a snapshot, Thanos or Mimir keeps it."""
    found = every(FIXTURE / "db" / BLOCK)

    assert amount(found) > 1000
    assert all(dict(labels).get("job") is None for labels in found)


@pytest.mark.parametrize("kept", [10, 1000])
def test_a_log_too_long_for_memory_is_put_in_order_on_disk(
    kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same answer."""
    monkeypatch.setattr(head, "KEPT", kept)

    assert every(FIXTURE / "db") == samples(dumped())


def test_where_the_temporary_folder_is_full_the_log_is_read_for_each_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the same answer."""
    monkeypatch.setattr(head, "KEPT", 10)
    monkeypatch.setattr("tempfile.tempdir", "/proc/no-such-folder")

    assert every(FIXTURE / "db") == samples(dumped())


def test_a_selection_beyond_what_memory_should_hold_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It says what to narrow."""
    monkeypatch.setattr("flatline.series.tsdb.pieces.MAX_SAMPLES", 100)

    with pytest.raises(SourceError, match="--start"):
        every(FIXTURE / "db")


# --- the log, written by hand ---

ID = struct.Struct(">Q").pack


def series_record(ref: int, **labels: str) -> bytes:
    pairs = b"".join(
        uvarint(len(text)) + text.encode() for pair in sorted(labels.items()) for text in pair
    )
    return b"\x01" + ID(ref) + uvarint(len(labels)) + pairs


def samples_record(*found: tuple[int, int, float]) -> bytes:
    ref, at, _ = found[0]
    body = b"".join(varint(r - ref) + varint(t - at) + struct.pack(">d", v) for r, t, v in found)
    return b"\x02" + ID(ref) + struct.pack(">q", at) + body


def log_of(folder: Path, *records: bytes, flag: int = 0, name: str = "00000000") -> None:
    """A segment whose records are cut into pages as a server cuts them."""
    pack = {0: bytes, 8: lambda r: bytes(cramjam.snappy.compress_raw(r)),
            16: zstandard.ZstdCompressor().compress}[flag]  # fmt: skip
    out = bytearray()
    for record in map(pack, records):
        first = True
        while first or record:
            if 32768 - len(out) % 32768 < 8:
                out += bytes(32768 - len(out) % 32768)
            room = 32768 - len(out) % 32768 - 7
            part, record = record[:room], record[room:]
            kind = (1 if first else 4) if not record else (2 if first else 3)
            out += bytes([kind | flag]) + struct.pack(">HI", len(part), crc32c(bytes(part))) + part
            first = False
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(out)


LONG = samples_record(*((1, 1_700_000_000_000 + n * 15_000, n / 7) for n in range(9000)))


@pytest.mark.parametrize("flag", (0, 8, 16))
def test_records_are_read_across_pages_however_they_are_packed(tmp_path: Path, flag: int) -> None:
    """Plain, snappy and zstd."""
    log_of(tmp_path / "wal", series_record(1, __name__="up"), LONG, flag=flag)
    found = Database(tmp_path, "db").select((), *EVER)

    assert found.labels == ((("__name__", "up"),),)
    assert found.times.size == 9000
    assert found.values[-1] == 8999 / 7


def test_a_page_that_is_damaged_costs_its_own_records_only(tmp_path: Path) -> None:
    """What stands in the pages after it is read."""
    few = [samples_record((1, 1_700_000_000_000 + n * 1000, float(n))) for n in range(3000)]
    log_of(tmp_path / "wal", series_record(1, __name__="up"), *few)
    path = tmp_path / "wal" / "00000000"
    data = bytearray(path.read_bytes())
    data[40_000] ^= 1
    path.write_bytes(data)
    store = Database(tmp_path, "db")
    found = store.select((), *EVER)

    assert 2000 < found.times.size < 3000
    assert found.values[-1] == 2999.0
    assert "checksum" in store.gaps[0].reason


def test_segments_before_the_checkpoint_are_not_read_twice(tmp_path: Path) -> None:
    """The checkpoint stands for them."""
    log_of(tmp_path / "wal" / "checkpoint.00000001", series_record(1, __name__="up"),
           samples_record((1, 1000, 1.0)), name="00000000")  # fmt: skip
    log_of(tmp_path / "wal", samples_record((1, 1000, 9.0)), name="00000001")
    log_of(tmp_path / "wal", samples_record((1, 2000, 2.0)), name="00000002")
    found = Database(tmp_path, "db").select((), *EVER)

    assert found.values.tolist() == [1.0, 2.0]


def test_late_samples_are_sorted_in(tmp_path: Path) -> None:
    """From the log of out-of-order samples."""
    log_of(tmp_path / "wal", series_record(1, __name__="up"), samples_record((1, 5000, 5.0)))
    log_of(tmp_path / "wbl", samples_record((1, 3000, 3.0), (1, 2000, 2.0)))

    assert Database(tmp_path, "db").select((), *EVER).values.tolist() == [2.0, 3.0, 5.0]


def test_exemplars_are_passed_over_and_histograms_told(tmp_path: Path) -> None:
    """The former are no samples; the latter are, and are not read."""
    log_of(tmp_path / "wal", series_record(1, __name__="up"), samples_record((1, 5000, 5.0)),
           b"\x04" + bytes(20), b"\x06" + bytes(9), b"\x07" + bytes(30))  # fmt: skip
    store = Database(tmp_path, "db")

    assert store.select((), *EVER).values.tolist() == [5.0]
    assert [gap.reason for gap in store.gaps] == ["native histograms: not read"]


# --- chunks ---

numbers = st.one_of(
    st.floats(allow_nan=False),
    st.sampled_from([0.0, 1.0, 1.5, 1e300, -0.0]),
    st.just(float("inf")),
)
steps = st.one_of(st.just(15_000), st.integers(1, 40_000), st.integers(1, 1 << 40))


@given(st.lists(st.lists(st.tuples(steps, numbers), min_size=1, max_size=40), max_size=12))
@settings(max_examples=60, deadline=None)
def test_what_was_encoded_is_decoded_to_the_bit(lists: list[list[tuple[int, float]]]) -> None:
    """Whatever the intervals and values, many chunks of different lengths at once."""
    chunks = []
    for one in lists:
        time, rising = -5_000, []
        for step, value in one:
            time += step
            rising.append((time, value))
        chunks.append(rising)
    found = decode([encode(one) for one in chunks])

    for number, one in enumerate(chunks):
        part = slice(found.offsets[number], found.offsets[number + 1])
        assert found.times[part].tolist() == [time for time, _ in one]
        assert found.values[part].tobytes() == np.array([v for _, v in one]).tobytes()
    assert not found.bad.any()


@given(st.lists(st.binary(max_size=60), max_size=8))
@settings(max_examples=80, deadline=None)
def test_what_is_no_chunk_gives_nothing_or_what_it_says(chunks: list[bytes]) -> None:
    """Never an error, and never more samples than the bits can make."""
    found = decode(chunks)

    assert all(
        size == 0 or size <= len(chunk) * 4
        for size, chunk in zip(np.diff(found.offsets).tolist(), chunks, strict=True)
    )


def test_a_chunk_cut_short_is_bad_and_its_neighbours_are_not() -> None:
    """It is told which one."""
    whole = encode([(n * 15_000, n / 3) for n in range(120)])
    found = decode([whole, whole[:200], whole])

    assert found.bad.tolist() == [False, True, False]
    assert np.diff(found.offsets).tolist() == [120, 0, 120]


def copies() -> Iterator[Path]:
    root = FIXTURE.parents[2].parent / "shared" / "realdata" / "vm-tsdb-snapshots"
    yield from root.glob("prometheus/snapshots/*")


def test_a_snapshot_of_another_maker_is_read() -> None:
    """2,434 series, one sample each."""
    found = next(copies(), None)
    if found is None:
        pytest.skip("no snapshots here")
    store = Database(found, "db")

    assert len(store.select((), *EVER)) == 2434
    assert store.gaps == ()
