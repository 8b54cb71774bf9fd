"""Prometheus text and OpenMetrics files, sound and hostile."""

from __future__ import annotations

import contextlib
import gzip
import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flatline.errors import FormatError
from flatline.series import exposition
from flatline.series.exposition import Exposition, read
from flatline.series.storage import SeriesBuilder, each

Found = dict[str, list[tuple[float, float]]]


def reading(tmp_path: Path, text: str | bytes) -> tuple[Exposition, Found]:
    file = tmp_path / "metrics.prom"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    builder = SeriesBuilder()
    said = read(file, "metrics.prom", builder)
    series = {}
    for labels, times, values in each(builder.build()):
        key = ",".join(f"{name}={value}" for name, value in labels)
        series[key] = list(zip(times.tolist(), values.tolist(), strict=True))
    return said, series


def test_prometheus_text_counts_milliseconds(tmp_path: Path) -> None:
    """Comments and blank lines are passed over."""
    text = '# TYPE a gauge\n\na{x="1"} 2.5 1700000000000\na{x="1"} +Inf 1700000015500\n'

    assert reading(tmp_path, text)[1] == {
        "__name__=a,x=1": [(1700000000.0, 2.5), (1700000015.5, math.inf)]
    }


def test_openmetrics_counts_seconds(tmp_path: Path) -> None:
    """Even where every time is whole; exemplars are skipped."""
    text = 'a_total{x="1"} 2 1700000000 # {trace="y"} 1 1699999999.5\n# EOF\n'

    assert reading(tmp_path, text)[1] == {"__name__=a_total,x=1": [(1700000000.0, 2.0)]}


def test_a_file_that_breaks_off_within_a_time_loses_that_line(tmp_path: Path) -> None:
    """`17000000` would be the first of January 1970; a last line without an end may be whole."""
    whole = "a 1 1700000000000\na 2 1700000015000"

    assert len(reading(tmp_path, whole)[1]["__name__=a"]) == 2
    said, series = reading(tmp_path, whole[:-1])
    assert series["__name__=a"] == [(1700000000.0, 1.0)]
    assert "breaks off" in said.gaps[0].reason


def test_times_of_another_unit_than_most_are_left_out(tmp_path: Path) -> None:
    """One stray time must not stretch the run by half a century."""
    said, series = reading(tmp_path, "a 1 1700000000000\na 2 1700000015000\na 3 1700000030\n")

    assert len(series["__name__=a"]) == 2
    assert "another unit" in said.gaps[0].reason


def test_labels_are_unescaped(tmp_path: Path) -> None:
    """Braces, commas and quotes inside a value do not end it."""
    text = r'a{x="q\"}, y=\\\n",y="2",} 1 1700000000000' + "\n"

    assert list(reading(tmp_path, text)[1]) == ['__name__=a,x=q"}, y=\\\n,y=2']


def test_names_beyond_the_old_alphabet_are_read(tmp_path: Path) -> None:
    """A metric's name may stand quoted among the labels."""
    text = '{"gpu.clock","the label"="x"} 1 1700000000000\n'

    assert list(reading(tmp_path, text)[1]) == ["__name__=gpu.clock,the label=x"]


def test_samples_are_put_in_order_and_kept_once(tmp_path: Path) -> None:
    """Of two values at one time the first stays, and the conflict is counted."""
    text = "a 3 1700000030000\na 1 1700000000000\na 2 1700000000000\na 1 1700000000000\n"
    file = tmp_path / "m"
    file.write_text(text, "utf-8")
    builder = SeriesBuilder()
    read(file, "m", builder)
    series = builder.build()

    assert series.values.tolist() == [1, 3]
    assert builder.conflicts == 1


def test_samples_without_a_time_are_a_gap(tmp_path: Path) -> None:
    """Nothing says when they were taken, and the file's own date is no answer."""
    said, series = reading(tmp_path, "a 1\nb 2 1700000000000\n")

    assert list(series) == ["__name__=b"]
    assert "1 sample without a timestamp" in said.gaps[0].reason


@pytest.mark.parametrize(
    "line",
    [
        'a{x="1} 2 1700000000000',
        'a{x="1",x="2"} 2 1700000000000',
        "a{x=1} 2 1700000000000",
        "a 1_0 1700000000000",
        "a 0x10 1700000000000",
        "a 1 -5",
        "a 1 1e400",
        "a",
        "{} 1 1700000000000",
        '{x="1"} 2 1700000000000',
        'a{x="' + "y" * 100_000 + '"} 1 1700000000000',
    ],
)
def test_a_malformed_line_is_counted_and_named(tmp_path: Path, line: str) -> None:
    """The others are read; the gap says where the first bad one stands."""
    said, series = reading(tmp_path, f"ok 1 1700000000000\n{line}\nok 2 1700000015000\n")

    assert list(series) == ["__name__=ok"]
    assert said.malformed == 1
    assert "the first is 2" in said.gaps[0].reason


@pytest.mark.parametrize(
    "data",
    [b"", b"\x00\x01\x02" * 999, b"just a log\nthat says nothing\n", b"\xff\xfe" * 500],
    ids=["empty", "binary", "log", "utf-16"],
)
def test_what_is_no_metrics_file_is_refused(tmp_path: Path, data: bytes) -> None:
    """With a message that says what stands in it."""
    with pytest.raises(FormatError, match="it holds 0 samples"):
        reading(tmp_path, data)


def test_a_line_of_gigabytes_is_never_held(tmp_path: Path) -> None:
    """What has no end within the bound is skipped to the next line."""
    data = b"ok 1 1700000000000\n" + b"x" * 3_000_000 + b"\nok 2 1700000015000\n"

    said, series = reading(tmp_path, data)

    assert said.malformed == 1
    assert series["__name__=ok"] == [(1700000000.0, 1.0), (1700000015.0, 2.0)]


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """Never another exception."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data + b"\nok 1 1700000000000\n")
        file.flush()
        with contextlib.suppress(FormatError):
            assert read(Path(file.name), "any.prom", SeriesBuilder()).samples >= 1


def test_a_packed_file_is_read_as_the_plain_one(tmp_path: Path) -> None:
    """One that breaks off gives what could be unpacked, and a gap."""
    text = "".join(
        f'm{{n="{n % 100}"}} {n} {1_700_000_000_000 + 1_000 * n}\n' for n in range(300_000)
    )
    whole = gzip.compress(text.encode(), 1)
    for size, complete in ((len(whole), True), (len(whole) - 1000, False)):
        file = tmp_path / f"{size}.gz"
        file.write_bytes(whole[:size])
        found = read(file, "m", SeriesBuilder())
        assert (found.samples == 300_000, found.gaps == ()) == (complete, complete)
        assert found.samples > 100_000


def test_a_file_of_too_many_series_keeps_those_that_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever they stand in it; how many samples were left out is said."""
    monkeypatch.setattr(exposition, "OTHER_SERIES", 5)
    monkeypatch.setattr(exposition, "MAX_SERIES", 12)
    file = tmp_path / "m.prom"
    rows = [f'{name}{{i="{i}"}} 1 {t}' for i in range(20) for name in ("b", "a")
            for t in (1_700_000_000_000, 1_700_000_015_000)]  # fmt: skip
    file.write_text("\n".join(rows) + "\n")
    builder = SeriesBuilder()
    said = read(file, "m.prom", builder, frozenset({"a"}))
    names = [dict(labels)["__name__"] for labels, _, _ in each(builder.build())]

    assert (len(names), names.count("b")) == (12, 3)
    assert "56 samples left out" in said.gaps[0].reason


def test_secrets_in_labels_are_masked_as_they_are_read(tmp_path: Path) -> None:
    """Queries name them, and must find them again."""
    text = 'a{host="h",api_key="hunter22"} 1 1700000000000\n'

    assert list(reading(tmp_path, text)[1]) == ["__name__=a,api_key=[masked],host=h"]
