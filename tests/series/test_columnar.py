"""Series in columnar files: every bit comes back, only what is asked for is read."""

from __future__ import annotations

import contextlib
import random
import struct
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flatline.errors import FormatError, QueryRejected
from flatline.series import columnar_write
from flatline.series.columnar import ColumnarStore
from flatline.series.columnar_codec import CONSTANT, decode, encode
from flatline.series.columnar_files import read_numbers, read_texts, write_numbers, write_texts
from flatline.series.columnar_write import Writer, selections_of, write_store
from flatline.series.matching import Matcher
from flatline.series.promql.evaluate import over
from flatline.series.storage import NAME, STALE, MemoryStore, Series, each, series_of

EVER = (-1e12, 1e12)
ODD = (STALE, float("nan"), float("inf"), float("-inf"), -0.0, 5e-324, 1e300, 2.0**53, -1e17,
       struct.unpack("<d", b"\x01\0\0\0\0\0\xf8\xff")[0])  # fmt: skip
VALUES = st.one_of(
    st.sampled_from(ODD),
    st.integers(-(2**53), 2**53).map(float),
    st.decimals(-1000, 1000, places=3).map(float),
    st.floats(width=64),
)


def metric(name: str) -> Matcher:
    return Matcher(NAME, "=", name)


def bits(values: np.ndarray) -> list[int]:
    return np.ascontiguousarray(values, dtype=np.float64).view(np.int64).tolist()


def kept(series: Series, folder: Path, window: tuple[float, float] = EVER) -> ColumnarStore:
    memory = MemoryStore(series)
    span = memory.span if window == EVER else window
    write_store(memory, folder, selections_of(memory), span or (0.0, 0.0))
    return ColumnarStore(folder, "metrics")


def fleet(hosts: int = 3, samples: int = 40) -> Series:
    """Two metrics of some hosts, one scraped a second after the other."""
    rows = []
    for host in range(hosts):
        for name, factor in (("load", 0.25), ("seen_total", 3.0)):
            labels = {NAME: name, "host": f"n{host}", "job": "x"}
            times = [1000.0 + host + 15 * n for n in range(samples)]
            rows.append(
                (labels, [(t, factor * ((n * 7 + host) % 11)) for n, t in enumerate(times)])
            )
    return series_of(rows)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(VALUES, min_size=1, max_size=40), min_size=1, max_size=6))
def test_every_bit_comes_back(chunks: list[list[float]]) -> None:
    """Stale markers, NaN of any payload, infinities, -0, denormals and numbers without a short
    decimal, mixed within a chunk as they like."""
    values = np.array([value for chunk in chunks for value in chunk])
    offsets = np.concatenate(([0], np.cumsum([len(chunk) for chunk in chunks]))).astype(np.int64)
    coded = encode(values, offsets)
    for at in range(len(chunks)):
        part = slice(int(offsets[at]), int(offsets[at + 1]))
        size = np.array([part.stop - part.start])
        one = slice(at, at + 1)
        if coded.kinds[at] == CONSTANT:
            found = np.repeat(coded.bases[one].view(np.float64), size)
        else:
            found = decode(int(coded.kinds[at]), coded.numbers[part], size, coded.scales[one],
                           coded.units[one], coded.bases[one])  # fmt: skip
        mine = coded.odd_chunks == at
        found.view(np.int64)[coded.odd_places[mine]] = coded.odd_bits[mine]

        assert bits(found) == bits(values[part])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(VALUES, max_size=30), min_size=1, max_size=5))
def test_a_folder_holds_what_was_written(tmp_path_factory: pytest.TempPathFactory,
                                         rows: list[list[float]]) -> None:  # fmt: skip
    """Labels, times and values of every series, also of one without a sample."""
    series = series_of([
        ({NAME: f"m{n % 2}", "n": str(n)}, [(100.0 + 7 * i + n, v) for i, v in enumerate(row)])
        for n, row in enumerate(rows)
    ])  # fmt: skip
    store = kept(series, tmp_path_factory.mktemp("store") / "s")
    found = {labels: (t.tolist(), bits(v)) for labels, t, v in each(store.select((), *EVER))}

    assert found == {labels: (t.tolist(), bits(v)) for labels, t, v in each(series) if len(t)}


def test_samples_close_together_and_far_apart_are_asked_for_a_thousand_times_at_most(
    tmp_path: Path,
) -> None:
    """Two that are a millisecond apart say nothing of a month without any."""
    times = [1000.0, 1000.001, 1000.002, 1000.0 + 30 * 86_400]
    store = MemoryStore(series_of([({NAME: "load"}, [(at, 1.0) for at in times])]))
    asked = 0

    class Counting(MemoryStore):
        def select(self, matchers: Sequence[Matcher], start: float, end: float) -> Series:
            nonlocal asked
            asked += 1
            return super().select(matchers, start, end)

    counting = Counting(store.series)
    written = write_store(counting, tmp_path / "s", selections_of(store), (times[0], times[-1]))

    assert written.samples == 4
    assert asked <= columnar_write.MOST_STRETCHES + 2


def test_queries_are_answered_as_of_memory(tmp_path: Path) -> None:
    """Over every kind of selector, at steps that fall between the samples."""
    series = fleet()
    memory, store = MemoryStore(series), kept(series, tmp_path / "s")
    for query in ("load", 'load{host=~"n[01]"}', 'load{host!="n1"}', 'load{absent=""}',
                  "sum by (host) (rate(seen_total[2m]))", "max_over_time(load[1m]) > 1",
                  'count({job="x"})', 'load{host="n9"}', "nothing"):  # fmt: skip
        one, other = (over(query, held, 1010.0, 1500.0, 20.0) for held in (memory, store))
        rows = dict(zip(other.labels, range(len(other.labels)), strict=True))
        assert set(one.labels) == set(other.labels), query
        for at, labels in enumerate(one.labels):
            assert one.present[at].tolist() == other.present[rows[labels]].tolist(), query
            there = one.present[at]
            assert bits(one.values[at][there]) == bits(other.values[rows[labels]][there]), query

    assert dict(store.names()) == dict(memory.names())
    assert store.span == memory.span
    assert store.label_values("load", "host") == {"n0", "n1", "n2"}


def test_a_selector_and_a_window_read_what_they_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A metric's own parts, of the stretches that the window touches."""
    monkeypatch.setattr(columnar_write, "PART_SAMPLES", 64)
    monkeypatch.setattr(columnar_write, "STRETCH_SAMPLES", 32)
    store = kept(fleet(4, 320), tmp_path / "s")
    parts = len(list((tmp_path / "s").glob("part-*")))
    store.select((metric("load"), Matcher("host", "=", "n1")), 1000.0, 1060.0)

    assert parts > 20
    assert len(store._parts) == 1

    found = store.select((metric("load"),), 1000.0, 1060.0)

    assert len(store._parts) <= 3
    assert found.times.max() < 1000 + 2 * 32 * 15


def test_what_stands_still_costs_nothing_and_what_moves_little(tmp_path: Path) -> None:
    """Under a byte a sample: constants none, counters and temperatures less than one."""
    chance = np.random.default_rng(3)
    rows = []
    for n in range(40):
        walk = 60 + np.cumsum(chance.choice([-1, 0, 0, 0, 1], 480))
        watts = np.round(640 + chance.normal(0, 12, 480), 1)
        for name, values in (("zero", np.zeros(480)), ("temp", walk), ("power", watts)):
            at = [(1000.0 + 15 * i, float(v)) for i, v in enumerate(values)]
            rows.append(({NAME: name, "gpu": str(n)}, at))
    series = series_of(rows)
    kept(series, tmp_path / "s")
    size = sum(path.stat().st_size for path in (tmp_path / "s").iterdir())

    assert size / series.values.size < 0.8


def test_times_are_shared_by_the_series_of_a_scrape(tmp_path: Path) -> None:
    """Fifty series with the same times keep them once."""
    rows = [({NAME: f"m{n}"}, [(1000.0 + i, float(i)) for i in range(100)]) for n in range(50)]
    kept(series_of(rows), tmp_path / "s")
    (times,) = read_numbers(tmp_path / "s" / "times.parquet", ("time_ms",))

    assert times.size == 100


def test_label_values_are_masked(tmp_path: Path) -> None:
    """A token in a label is not stored; two that become alike stay two series."""
    secrets = ["hf_" + letter * 33 + "A" for letter in "bc"]
    rows = [({NAME: "up", "url": f"https://x/?token={s}"}, [(1000.0, 1.0)]) for s in secrets]
    store = kept(series_of(rows), tmp_path / "s")

    assert len(set(store.labels(()))) == 2
    for path in (tmp_path / "s").iterdir():
        assert not any(secret[3:20].encode() in path.read_bytes() for secret in secrets)
    assert not any(secret in str(store.labels(())) for secret in secrets)


def test_secrets_in_a_folder_from_elsewhere_are_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that Flatline did not write: no answer shows a secret, no selector finds one, and
    two stay two series; what is so masked is sealed again as it is."""
    rows = [({NAME: "up", "token": f"s3cr3t-{n}-of-mine", "host": "n1"}, [(1000.0, float(n))])
            for n in range(3)]  # fmt: skip
    with monkeypatch.context() as open_hearted:
        open_hearted.setattr(columnar_write, "mask_value", lambda name, value: value)
        store = kept(series_of(rows), tmp_path / "s")
    tokens = {"[masked]", "[masked]~2", "[masked]~3"}
    guess = Matcher("token", "=~", "s3cr3t.*")

    assert {dict(labels)["token"] for labels in store.labels(())} == tokens
    assert store.label_values("up", "token") == tokens
    assert not store.labels((metric("up"), guess))
    assert not store.labels((metric("up"), Matcher("token", "=", "s3cr3t-1-of-mine")))
    assert len(store.labels((metric("up"), Matcher("token", "=", "[masked]~2")))) == 1
    write_store(store, tmp_path / "again", selections_of(store), (0.0, 2000.0))
    again = ColumnarStore(tmp_path / "again", "metrics")
    assert again.label_values("up", "token") == tokens
    assert sorted(again.select((), *EVER).values.tolist()) == [0.0, 1.0, 2.0]


# --- damage -------------------------------------------------------------------------------------


def test_a_part_that_is_damaged_is_a_gap(tmp_path: Path) -> None:
    """The other series are read, the gap is told once."""
    kept(fleet(), tmp_path / "s")
    for path in (tmp_path / "s").glob("part-*"):
        path.write_bytes(path.read_bytes()[:-20])
    store = ColumnarStore(tmp_path / "s", "metrics")

    assert len(store.select((metric("load"),), *EVER)) == 0
    assert len(store.select((metric("seen_total"),), *EVER)) == 0
    assert [gap.where for gap in store.gaps] == ["metrics"]
    assert "part-00000.parquet" in store.gaps[0].reason


@pytest.mark.parametrize("table", ["strings", "labels", "times", "chunks", "odd"])
def test_a_table_that_is_damaged_ends_the_store(tmp_path: Path, table: str) -> None:
    """Cut anywhere, gone, or of another kind."""
    kept(fleet(), tmp_path / "s")
    path = tmp_path / "s" / f"{table}.parquet"
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", b"PAR1" * 20, whole[:-8] + b"\xff" * 8):
        path.write_bytes(damaged)
        with pytest.raises(FormatError, match=table):
            ColumnarStore(tmp_path / "s", "metrics")
    path.unlink()
    with pytest.raises(FormatError, match="missing"):
        ColumnarStore(tmp_path / "s", "metrics")


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("labels", "name", 10**6), ("labels", "value", -1), ("labels", "series", 7 * 10**8),
        ("chunks", "series", 10**6), ("chunks", "grid", -1), ("chunks", "kind", 9),
        ("chunks", "scale", 99), ("chunks", "scale", -1), ("times", "time_ms", 5),
        ("times", "grid", 10**6), ("times", "time_ms", -(1 << 62)),
    ],
)  # fmt: skip
def test_a_number_that_names_nothing_is_refused(
    tmp_path: Path, table: str, column: str, value: int
) -> None:
    """A store may come from anybody: no number of its tables reaches outside them."""
    kept(fleet(), tmp_path / "s")
    path = tmp_path / "s" / f"{table}.parquet"
    names = columnar_write.FORMAT[table]
    columns = dict(zip(names, read_numbers(path, names), strict=True))
    changed = columns[column].astype(np.int64)
    changed[-1] = value
    path.unlink()
    write_numbers(path, {**columns, column: changed})

    with pytest.raises(FormatError):
        ColumnarStore(tmp_path / "s", "metrics").select((), *EVER)


@pytest.mark.parametrize(
    ("column", "value"),
    [("part", 77), ("part", -5), ("first", 10**9), ("first", -1), ("unit", 1 << 62), ("base", 1)],
)
def test_a_chunk_that_points_elsewhere_is_a_gap_or_a_number(
    tmp_path: Path, column: str, value: int
) -> None:
    """Never an error: what is stored decides what is read, whatever it says."""
    kept(fleet(), tmp_path / "s")
    path = tmp_path / "s" / "chunks.parquet"
    names = columnar_write.FORMAT["chunks"]
    columns = dict(zip(names, read_numbers(path, names), strict=True))
    columns[column] = np.full(columns[column].size, value, dtype=np.int64)
    path.unlink()
    write_numbers(path, columns)
    store = ColumnarStore(tmp_path / "s", "metrics")
    found = store.select((), *EVER)

    assert len(found) == 6 or store.gaps


def test_more_rows_than_announced_are_refused(tmp_path: Path) -> None:
    """A column that unpacks without end is left after as many rows as there may be."""
    write_numbers(tmp_path / "n.parquet", {"number": np.zeros(1 << 20, dtype=np.int64)})

    assert (tmp_path / "n.parquet").stat().st_size < 2000
    with pytest.raises(FormatError, match="more rows"):
        read_numbers(tmp_path / "n.parquet", ("number",), 1000)


def test_texts_that_unpack_without_end_are_refused(tmp_path: Path) -> None:
    """A long text a thousand times over packs to nothing."""
    write_texts(tmp_path / "t.parquet", ["x" * (1 << 20)] * 300)

    assert (tmp_path / "t.parquet").stat().st_size < 200_000
    with pytest.raises(FormatError, match="unpacks to more than 256 MiB"):
        read_texts(tmp_path / "t.parquet", 1000)


def test_nothing_is_unpacked_of_a_table_that_claims_too_much(tmp_path: Path) -> None:
    """Rows by the footer, a page by its header and by its frame: refused without their memory."""
    rows = np.zeros((1 << 24) + 1, dtype=np.int64)
    kept(fleet(), tmp_path / "s")
    labels = tmp_path / "s" / "labels.parquet"
    labels.unlink()
    write_numbers(labels, dict.fromkeys(("series", "name", "value"), rows))
    del rows
    tracemalloc.start()
    with pytest.raises(FormatError, match=r"labels\.parquet has more rows"):
        ColumnarStore(tmp_path / "s", "metrics")
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


def test_a_page_that_unpacks_to_another_size_is_refused(tmp_path: Path) -> None:
    """Its header says little, its frame gigabytes: what the reader would believe is compared."""
    import zstandard

    write_texts(tmp_path / "t.parquet", ["x" * 500])
    data = (tmp_path / "t.parquet").read_bytes()
    at = data.index(b"\x28\xb5\x2f\xfd")
    told = zstandard.frame_content_size(data[at:])
    flag = data[at + 4]
    wide = {1: 2, 2: 4, 3: 8}[flag >> 6]
    place = at + 5 + (not flag & 32)
    lie = (told + 1).to_bytes(wide, "little")
    (tmp_path / "t.parquet").write_bytes(data[:place] + lie + data[place + wide :])

    with pytest.raises(FormatError, match="no whole Parquet"):
        read_texts(tmp_path / "t.parquet", 1000)


def test_a_folder_that_is_there_is_not_written_into(tmp_path: Path) -> None:
    """Nothing is ever overwritten."""
    with pytest.raises(FileExistsError):
        Writer(tmp_path)


def test_chunks_without_end_are_refused(tmp_path: Path) -> None:
    """A chunk that stands still costs nothing: a folder may announce more than any memory."""
    series = series_of([({NAME: "zero"}, [(1000.0 + n, 0.0) for n in range(1 << 14)])])
    memory = MemoryStore(series)
    writer = Writer(tmp_path / "s")
    writer.add(series)
    writer.close()
    path = tmp_path / "s" / "chunks.parquet"
    names = columnar_write.FORMAT["chunks"]
    columns = dict(zip(names, read_numbers(path, names), strict=True))
    path.unlink()
    write_numbers(path, {name: np.repeat(one, 1 << 14) for name, one in columns.items()})
    store = ColumnarStore(tmp_path / "s", "metrics")

    assert path.stat().st_size < 10_000
    assert memory.span == store.span
    with pytest.raises(QueryRejected, match="samples at once"):
        store.select((metric("zero"),), *EVER)


def test_flipped_bytes_end_in_a_gap_or_an_error_of_ours(tmp_path: Path) -> None:
    """Whatever stands in the files of a folder, reading it fails as it is meant to."""
    kept(fleet(), tmp_path / "s")
    files = {path: path.read_bytes() for path in sorted((tmp_path / "s").iterdir())}
    dice = random.Random(5)
    for _ in range(400):
        path = dice.choice(list(files))
        data = bytearray(files[path])
        for _ in range(dice.choice((1, 2, 8))):
            data[dice.randrange(len(data))] = dice.randrange(256)
        path.write_bytes(data)
        with contextlib.suppress(FormatError, QueryRejected):
            ColumnarStore(tmp_path / "s", "metrics").select((), *EVER)
        path.write_bytes(files[path])
