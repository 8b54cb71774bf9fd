"""Numbers by which a driver says that it has none are left out, and counted."""

from __future__ import annotations

from math import isnan, nan
from pathlib import Path

import pytest

from flatline.model import Place
from flatline.series.quality import without_blanks
from flatline.series.storage import STALE, STALE_BITS, series_of
from flatline.sources.metrics import MetricsSource

T0 = 1_700_000_000
NAMED = [2**64 - 1, 0x7FFFFFFFFFFFFFF0, *(2**47 + n for n in range(4))]


@pytest.mark.parametrize("blank", NAMED)
def test_a_number_that_stands_for_none_is_left_out(blank: int) -> None:
    """Of its series alone, whose other samples stay at their times."""
    rows = [({"__name__": "a"}, [(0.0, 3.0), (15.0, float(blank)), (30.0, 5.0)]),
            ({"__name__": "b"}, [(0.0, float(blank))]),
            ({"__name__": "c"}, [(0.0, 7.0)])]  # fmt: skip
    left, count = without_blanks(series_of(rows))

    assert count == 2
    assert left.labels == series_of(rows).labels
    assert left.offsets.tolist() == [0, 2, 2, 3]
    assert left.times.tolist() == [0.0, 30.0, 0.0]
    assert left.values.tolist() == [3.0, 5.0, 7.0]


@pytest.mark.parametrize(
    "value",
    [2**47 - 1, 2**47 + 4, 3 * 10**17, 2**62, 2**65, -(2**47), 0.5, 0.0, float("inf")],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("beside", [1.0, float(2**64 - 1)], ids=["alone", "beside one"])
def test_a_large_counter_is_a_number(value: float, beside: float) -> None:
    """Bytes of a fabric, and nanojoules, come to more than what stands for none."""
    left, count = without_blanks(series_of([({"__name__": "a"}, [(0.0, beside), (15.0, value)])]))

    assert count == (beside > 1.0)
    assert left.values.tolist()[-1] == value


def test_what_is_no_number_stays_as_it_is() -> None:
    """The marker that a series ended keeps its bits."""
    rows = [({"__name__": "a"}, [(0.0, nan), (15.0, STALE), (30.0, 2.0**47)])]
    left, count = without_blanks(series_of(rows))

    assert count == 1
    assert [isnan(value) for value in left.values] == [True, True]
    assert int(left.values.view("uint64")[1]) == STALE_BITS


def card(values: list[str]) -> str:
    return "".join(
        f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",UUID="GPU-1",Hostname="n1"}} {value}'
        f" {(T0 + 15 * n) * 1000}\n"
        for n, value in enumerate(values)
    )


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (["612", "18446744073709551615", "618", "9223372036854775792", "612"], "2 samples"),
        (["612", "140737488355330", "618", "1.40737488355328e+14", "612"], "2 samples"),
        (["612", "140737488355327", "618", "612", "612"], None),
    ],
    ids=["whole numbers", "with a fraction", "one below"],
)
def test_how_many_were_left_out_of_a_file_is_told(
    tmp_path: Path, values: list[str], told: str | None
) -> None:
    """And no answer holds any."""
    (tmp_path / "m.prom").write_text(card(values))
    source = MetricsSource([(tmp_path / "m.prom", "m.prom")])
    row = source.ask("max_over_time(gpu_power_watts[5m])", step_s=0).of(Place("n1", "0"))
    said = [gap.reason for gap in source.gaps if "says that it has none" in gap.reason]

    assert row is not None
    assert row.last == (618 if told else 2**47 - 1)
    assert [reason.partition(" hold")[0] for reason in said] == ([told] if told else [])
