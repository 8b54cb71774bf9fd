"""Loose samples come out in order, once a time, however they went in and wherever they lay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flatline.series.storage import Floats, Ints
from flatline.series.tsdb import wal
from flatline.series.tsdb.cover import Cover, uncovered
from flatline.series.tsdb.pieces import in_order
from flatline.series.tsdb.runs import Runs
from series.gorilla import varint

Sample = tuple[int, int, float]
refs = st.sampled_from([0, 1, 7, 65_535, 65_536, 70_000, 1 << 33])
loose = st.lists(st.tuples(refs, st.integers(-50, 50), st.floats(0, 9)), max_size=60)


def columns(found: list[Sample]) -> tuple[Ints, Ints, Floats]:
    ref, at, value = zip(*found, strict=True) if found else ((), (), ())
    return (
        np.array(ref, dtype=np.int64),
        np.array(at, dtype=np.int64),
        np.array(value, dtype=float),
    )


def once(found: list[Sample]) -> list[Sample]:
    """By series and time; of several at one time the first."""
    first: dict[tuple[int, int], float] = {}
    for ref, at, value in found:
        first.setdefault((ref, at), value)
    return [(ref, at, first[ref, at]) for ref, at in sorted(first)]


@given(found=loose)
@settings(deadline=None)
def test_samples_are_ordered(found: list[Sample]) -> None:
    """By series, then by time."""
    got = in_order(*columns(found))
    assert list(zip(*(c.tolist() for c in got), strict=True)) == once(found)


@given(found=loose, most=st.sampled_from([0, 3, 20, 1000]), cuts=st.integers(1, 7))
@settings(deadline=None)
def test_runs_give_each_series_what_went_in(found: list[Sample], most: int, cuts: int) -> None:
    """In memory or on disk; a sample that two runs have is there in both, the first run first."""
    runs = Runs(most)
    for begin in range(0, len(found), cuts):
        runs.add(columns(found[begin : begin + cuts]))
    runs.close()

    wanted = np.array(sorted({ref for ref, _, _ in found} | {5}, reverse=True), dtype=np.int64)
    given_rows = np.arange(wanted.size) * 10
    got = [sample for part in runs.of(wanted, given_rows)
           for sample in zip(*(c.tolist() for c in part), strict=True)]  # fmt: skip
    back = [(int(wanted[row // 10]), at, value) for row, at, value in got]
    assert once(back) == once(found)
    assert runs.total == len(found)


@given(found=loose, spans=st.lists(st.tuples(refs, st.integers(-50, 50), st.integers(0, 30)),
                                   max_size=6))  # fmt: skip
@settings(deadline=None)
def test_what_spans_cover_is_left_out(
    found: list[Sample], spans: list[tuple[int, int, int]]
) -> None:
    """Both ends of a span are in it."""
    of: dict[int, list[tuple[int, int]]] = {}
    for ref, first, length in spans:
        of.setdefault(ref, []).append((first, first + length))
    kept = once(found)
    ref, at, _ = columns(kept)

    of_spans = [(r, *span) for r, each in of.items() for span in each]
    table = np.array(of_spans, dtype=np.int64).reshape(-1, 3).T
    got = uncovered(ref, at, (table[0], table[1], table[2]))
    assert got.tolist() == [
        not any(first <= t <= last for first, last in of.get(r, ())) for r, t, _ in kept
    ]
    cover = Cover((table[0], table[1], table[2]))
    early = cover.outside(ref, at) if cover.works else None
    assert early is None or early.tolist() == got.tolist()
    assert cover.works or not of or max(of) - min(of) > 1 << 22


def record(ref: int, at: int, found: list[Sample]) -> bytes:
    out = b"\x02" + ref.to_bytes(8, "big") + at.to_bytes(8, "big", signed=True)
    for other, time, value in found:
        out += varint(other - ref) + varint(time - at) + np.float64(value).tobytes()[::-1]
    return out


wide = st.tuples(st.integers(0, 1 << 40), st.integers(-(1 << 50), 1 << 50), st.floats(0, 9))


@pytest.mark.parametrize("few", [0, 2, 96])
@given(records=st.lists(st.lists(wide, min_size=1, max_size=30), max_size=8),
       cut=st.integers(0, 30))  # fmt: skip
@settings(deadline=None)
def test_records_are_read_alike_however_many_there_are(
    few: int, records: list[list[Sample]], cut: int
) -> None:
    """In lockstep and walked through; one that ends within a sample gives those before it."""
    raw = [record(found[0][0], found[0][1], found) for found in records]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wal, "FEW", few)
        whole = wal.samples_of(raw)
        short = wal.samples_of([data[: max(17, len(data) - cut)] for data in raw])
    said = sorted(zip(*(c.tolist() for c in whole), strict=True))
    assert said == sorted((r, t, v) for found in records for r, t, v in found)
    assert set(zip(*(c.tolist() for c in short), strict=True)) <= set(said)
    assert len(short[0]) >= sum(max(0, len(found) - (cut + 9) // 10) for found in records)


@given(layout=st.lists(st.tuples(st.integers(0, 300), st.integers(-70, 70)), min_size=1,
                       max_size=20),
       scrapes=st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 50),
                                  st.integers(0, 3)), min_size=8, max_size=30))  # fmt: skip
@settings(deadline=None)
def test_records_that_are_laid_out_alike_are_read_as_they_are_one_by_one(
    layout: list[tuple[int, int]], scrapes: list[tuple[int, int, int]]
) -> None:
    """Also beside others of the same length; of some samples only those that are wanted."""
    made = []
    for number, (ref, at, other) in enumerate(scrapes):
        shift = 1 if other == 0 else 0  # other references, as many bytes
        made.append([(ref + more + (shift if n else 0), at + (later if n else 0), number + n / 8)
                     for n, (more, later) in enumerate([(0, 0), *layout])])  # fmt: skip
    raw = [record(found[0][0], found[0][1], found) for found in made]
    whole = wal.samples_of(raw)
    some = wal.samples_of(raw, lambda refs, times: (refs + times) % 3 == 0)

    every = sorted(sample for found in made for sample in found)
    assert sorted(zip(*(c.tolist() for c in whole), strict=True)) == every
    wanted = [sample for sample in every if (sample[0] + sample[1]) % 3 == 0]
    assert sorted(zip(*(c.tolist() for c in some), strict=True)) == wanted
