"""`query`, on a recorded run."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from flatline.cli import Engine, answer

RUN = str(Path(__file__).parents[1] / "scenarios" / "gpu_throttled_one_of_many" / "run")
CLOCK = "DCGM_FI_DEV_SM_CLOCK"
END = "2026-01-14T09:20:00Z"


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Status, output and complaints of `flatline query`."""
    status = answer(["query", *words], Engine())
    said = capsys.readouterr()
    return status, said.out, said.err


def test_a_series_that_differs_stands_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Of 32 GPUs 24 are shown, the slow one among them; what they share stands above."""
    status, page, _ = asked(capsys, RUN, CLOCK)

    lines = page.splitlines()
    assert status == 0
    assert lines[0].startswith(CLOCK + '{modelName="NVIDIA A100')
    assert [line for line in lines if "  195  " in line and "▁" in line]
    assert any(line.startswith("and 8 more") for line in lines)
    assert max(map(len, lines)) <= 80


def test_the_query_may_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    """The target is what exists."""
    assert asked(capsys, CLOCK, RUN) == asked(capsys, RUN, CLOCK)


def test_json_is_prometheuss_response(capsys: pytest.CaptureFixture[str]) -> None:
    """A vector at one time: labels, seconds, and the value as text."""
    _, page, _ = asked(capsys, RUN, f"count({CLOCK}) / 2", "--time", END, "--json")

    assert orjson.loads(page) == {
        "status": "success",
        "data": {
            "resultType": "vector",
            "result": [{"metric": {}, "value": [1768382400, "16"]}],
        },
    }


def test_a_range_is_a_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    """A point every step from start to end, both among them."""
    times = ("--start", "2026-01-14T09:10:00Z", "--end", END, "--step", "5m")
    _, page, _ = asked(capsys, RUN, f"group({CLOCK})", *times, "--format", "json")

    data = orjson.loads(page)["data"]
    assert data["resultType"] == "matrix"
    assert data["result"][0]["values"] == [
        [1768381800, "1"], [1768382100, "1"], [1768382400, "1"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "kind"), [("time()", "scalar"), ('"x"', "string"), (f"{CLOCK}[1m]", "matrix")]
)
def test_other_kinds_are_answered(
    query: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """At one time, in a table too."""
    status, page, _ = asked(capsys, RUN, query, "--time", END, "--json")

    assert (status, orjson.loads(page)["data"]["resultType"]) == (0, kind)
    assert asked(capsys, RUN, query, "--time", END)[0] == 0


def test_no_series_is_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """With the metrics that were perhaps meant."""
    status, page, _ = asked(capsys, RUN, "DCGM_FI_DEV_SM_CLOCKS")

    assert status == 0
    assert page.startswith("no series from 2026-01-14 09:00:00Z to ")
    assert CLOCK in page


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((RUN, "rate(x"), "is no PromQL"),
        ((RUN, "mad_over_time(x[5m])"), "experimental"),
        ((RUN, "x", "--step", "5 apples"), "no step"),
        ((RUN, "x", "--time", "noon"), "is no time"),
        ((RUN, "x", "--time", END, "--step", "1m"), "over a range"),
        ((RUN, "x", "--start", END, "--end", "2026-01-14"), "ends before"),
        ((RUN, "x[5m]", "--start", END), "no answer over a range"),
        (("nowhere-at-all", "x"), "does not exist"),
        (("x",), "give a TARGET"),
        ((__file__, "x"), "holds no metrics"),
    ],
)
def test_a_wrong_call_is_status_2(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message says what is wrong."""
    status, page, complaint = asked(capsys, *words)

    assert (status, page) == (2, "")
    assert said in complaint


def test_a_wrong_query_is_told_in_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    """As the API tells it."""
    status, page, _ = asked(capsys, RUN, "sum(", "--json")

    assert status == 2
    assert orjson.loads(page)["errorType"] == "bad_data"


def test_labels_do_not_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Telemetry is text of others."""
    file = tmp_path / "m.prom"
    file.write_text(
        '# TYPE a gauge\na{l="\x1b[2J"} 1 1768381200000\na{l="y"} +Inf 1768381200000\n'
    )

    status, page, _ = asked(capsys, str(file), "a")

    assert status == 0
    assert "\x1b" not in page
    assert "×" in page


def test_a_store_that_cannot_be_read_is_no_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2 with what to do, not 0 with nothing."""
    here = tmp_path / "run"
    here.mkdir()
    (here / "m.prom").write_text("# TYPE up gauge\nup 1 1772337600000\n")
    assert (
        answer(["capsule", str(here), "--output", str(tmp_path / "c"), "--quiet"], Engine()) == 0
    )
    (tmp_path / "c" / "metrics" / "0-text" / "labels.parquet").write_bytes(b"PAR1")

    status, page, complaint = asked(capsys, str(tmp_path / "c"), "up")

    assert status == 2
    assert "up" not in page
    assert "no metrics could be read" in complaint
    assert "make the capsule again" in complaint


def test_data_years_apart_are_asked_of_the_last_stretch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In steps that show it; where a time is named, of that."""
    file = tmp_path / "m.prom"
    times = [1_600_000_000, *range(1_768_381_200, 1_768_384_801, 60)]
    file.write_text("# TYPE a gauge\n" + "".join(f"a 1 {at}000\n" for at in times))

    status, page, complaint = asked(capsys, str(file), "a", "--json")
    points = orjson.loads(page)["data"]["result"][0]["values"]
    _, long, _ = asked(capsys, str(file), "a", "--json", "--start", "2020-09-13T12:26:40Z")

    assert (status, points[0][0], points[1][0] - points[0][0]) == (0, 1_768_381_200, 15)
    assert "reach back to 2020-09-13" in orjson.loads(page)["warnings"][0] + complaint
    assert orjson.loads(long)["data"]["result"][0]["values"][0][0] == 1_600_000_000
