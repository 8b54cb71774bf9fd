"""Metrics files answer canonical queries, and their citations can be run again."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flatline.errors import QueryRejected, SourceError
from flatline.model import Place
from flatline.sources.metrics import MetricsSource, recognise
from flatline.vocab.rewrite import Scope

T0 = 1_700_000_000
CLOCKS = {("n1", "0"): 1410, ("n1", "1"): 1400, ("n2", "0"): 200}


def dcgm(metric: str, values: dict[tuple[str, str], float], every: int = 15) -> str:
    return "".join(
        f'{metric}{{gpu="{gpu}",UUID="GPU-{host}{gpu}",Hostname="{host}"}} {value}'
        f" {(T0 + every * n) * 1000}\n"
        for n in range(9)
        for (host, gpu), value in values.items()
    )


def source(tmp_path: Path, *texts: str, scope: Scope | None = None) -> MetricsSource:
    files = []
    for number, text in enumerate(texts):
        path = tmp_path / f"m{number}.prom"
        path.write_text(text, "utf-8")
        files.append((path, path.name))
    return MetricsSource(files, scope)


def test_an_answer_has_a_row_a_place(tmp_path: Path) -> None:
    """In canonical units, with the query that ran."""
    answer = source(tmp_path, dcgm("DCGM_FI_DEV_SM_CLOCK", CLOCKS)).ask("gpu_sm_clock_hertz")
    row = answer.of(Place(host="n2", gpu="0"))

    assert row is not None
    assert row.last == 200e6
    assert answer.query == "DCGM_FI_DEV_SM_CLOCK * 1000000"
    assert (answer.unit, answer.engine) == ("hertz", "flatline-promql 2")


def test_a_citation_is_narrowed_to_its_place_and_runs_again(tmp_path: Path) -> None:
    """From the object and from the document's form of it."""
    metrics = source(tmp_path, dcgm("DCGM_FI_DEV_SM_CLOCK", CLOCKS))
    answer = metrics.ask("avg_over_time(gpu_sm_clock_hertz[1m])")
    cite = answer.cite(answer.rows[2], "SM clock", at=T0 + 60.0)
    item = asdict(cite) | {"start": cite.start.isoformat(), "end": cite.end.isoformat()}

    assert 'SM_CLOCK{Hostname="n2",gpu="0"}[1m]' in cite.query
    assert (cite.value, cite.place) == (200e6, Place(host="n2", gpu="0"))
    assert metrics.replay(cite) == metrics.replay(item) == 200e6


def test_a_value_that_hangs_on_the_others_keeps_the_whole_query(tmp_path: Path) -> None:
    """A part of the fleet's median, narrowed, would be another number."""
    metrics = source(tmp_path, dcgm("DCGM_FI_DEV_SM_CLOCK", CLOCKS))
    answer = metrics.ask("gpu_sm_clock_hertz / scalar(quantile(0.5, gpu_sm_clock_hertz))")
    cite = answer.cite(answer.rows[0], "part of the median")

    assert "Hostname=" not in cite.query
    assert metrics.replay(cite) == cite.value == pytest.approx(1410 / 1400)


def test_an_aggregate_has_no_place(tmp_path: Path) -> None:
    """And is cited as it stands."""
    metrics = source(tmp_path, dcgm("DCGM_FI_DEV_SM_CLOCK", CLOCKS))
    answer = metrics.ask("min(gpu_sm_clock_hertz)")
    cite = answer.cite(answer.rows[0], "lowest clock")

    assert not cite.place
    assert metrics.replay(cite) == 200e6


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"place": Place(host="n9", gpu="0")}, "gives 0 values"),
        ({"query": "DCGM_FI_DEV_SM_CLOCK", "place": Place(host="n1")}, "gives 0 values"),
        ({"query": "nothing_like_it"}, "gives 0 values"),
        ({"engine": "prometheus 3"}, "not by"),
        ({"end": datetime(2030, 1, 1, tzinfo=UTC)}, "gives 0 values"),
    ],
)
def test_a_citation_that_no_longer_holds_is_told(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    """Another place, another query, another engine, another time."""
    metrics = source(tmp_path, dcgm("DCGM_FI_DEV_SM_CLOCK", CLOCKS))
    answer = metrics.ask("gpu_sm_clock_hertz")
    cite = replace(answer.cite(answer.rows[0], "clock"), **change)  # type: ignore[arg-type]

    with pytest.raises(SourceError, match=said):
        metrics.replay(replace(cite, start=cite.end))


def test_a_document_that_is_no_citation_is_refused(tmp_path: Path) -> None:
    """Not a traceback."""
    metrics = source(tmp_path, dcgm("DCGM_FI_DEV_SM_CLOCK", CLOCKS))

    for item in ({}, {"query": 3, "engine": "x", "start": "soon", "end": "later"}):
        with pytest.raises(SourceError, match="no query citation"):
            metrics.replay(item)


def test_every_answer_is_kept(tmp_path: Path) -> None:
    """Asked again, it is the same object; what was asked can be told."""
    metrics = source(tmp_path, dcgm("DCGM_FI_DEV_SM_CLOCK", CLOCKS))

    assert metrics.ask("gpu_sm_clock_hertz") is metrics.ask("gpu_sm_clock_hertz")
    assert [answer.canonical for answer in metrics.answers] == ["gpu_sm_clock_hertz"]


def test_a_missing_signal_is_named(tmp_path: Path) -> None:
    """The answer has no rows, is false, and says what nothing carries."""
    answer = source(tmp_path, dcgm("DCGM_FI_DEV_SM_CLOCK", CLOCKS)).ask("gpu_power_watts")

    assert not answer
    assert answer.missing[0].need.startswith("gpu_power_watts ")


def test_a_wrong_query_is_rejected(tmp_path: Path) -> None:
    """Not taken for a missing signal."""
    metrics = source(tmp_path, dcgm("DCGM_FI_DEV_SM_CLOCK", CLOCKS))

    with pytest.raises(QueryRejected, match="no canonical signal"):
        metrics.ask("gpu_sm_clok_hertz")


def test_only_the_gpus_of_the_run_are_asked(tmp_path: Path) -> None:
    """On a shared node another job's GPU is not seen, and the query says so."""
    scope = Scope(("n1", "n2"), {"n1": ("1",)})
    metrics = source(tmp_path, dcgm("DCGM_FI_DEV_SM_CLOCK", CLOCKS), scope=scope)

    answer = metrics.ask("gpu_sm_clock_hertz")

    assert {row.place for row in answer.rows} == {Place("n1", "1"), Place("n2", "0")}
    assert 'Hostname="n1",gpu="1"' in answer.query


def test_files_are_read_as_one_store(tmp_path: Path) -> None:
    """What one of them cannot give is a gap with its name; the window spans them all."""
    metrics = source(
        tmp_path,
        dcgm("DCGM_FI_DEV_SM_CLOCK", CLOCKS),
        "this is no metrics file\n",
        dcgm("DCGM_FI_DEV_POWER_USAGE", CLOCKS, every=30),
    )

    assert metrics.measured("GPU clock and power metrics")
    assert not metrics.measured("GPU memory metrics")
    assert not metrics.measured("words nobody wrote down")
    assert [gap.where for gap in metrics.gaps] == ["m1.prom"]
    assert metrics.window == (
        datetime.fromtimestamp(T0, UTC),
        datetime.fromtimestamp(T0 + 240, UTC),
    )


def test_no_metrics_is_no_error(tmp_path: Path) -> None:
    """There is no window, and every signal is missing."""
    metrics = source(tmp_path, "nothing\n")

    assert metrics.window is None
    assert metrics.ask("gpu_power_watts").missing


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (b"# HELP a Something.\n# TYPE a gauge\na 1\n", True),
        (b'a{x="1"} 2 1700000000000\na{x="2"} 3 1700000000000\n', True),
        (b'{__name__="a",x="1"} 2 1700000000\n# EOF\n', True),
        (b"step 10 loss 3.2\nstep 20 loss 3.1\n", False),
        (b"config {lr=3} 1e-4\n{'loss': 2.0}\n", False),
        (b"# TYPE of run: pretraining\nepoch 1\n", False),
        (b"\x7fELF\x00\x00# TYPE a gauge\n", False),
        (b"", False),
    ],
)
def test_metrics_files_are_told_by_content(head: bytes, known: bool) -> None:
    """A log is none, whatever it prints in braces."""
    assert recognise("anything", head) is known


def test_recognising_a_file_loads_no_engine() -> None:
    """A target without metrics does not pay for NumPy."""
    code = (
        "import sys; from flatline.sources.metrics import recognise; recognise('x', b'');"
        "print([m for m in ('numpy', 'promql_parser') if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert said.stdout.strip() == "[]"
