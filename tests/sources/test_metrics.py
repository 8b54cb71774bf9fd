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


NODE = "".join(
    f'node_uname_info{{instance="10.0.0.{n}:9100",nodename="n{n}"}} 1 {T0 * 1000 + 60_000}\n'
    f'node_procs_running{{instance="10.0.0.{n}:9100"}} {n} {T0 * 1000 + 60_000}\n'
    f'node_infiniband_state_id{{instance="10.0.0.{n}:9100",device="mlx5_0",port="1"}} {n}'
    f" {T0 * 1000 + 60_000}\n"
    for n in (3, 4)
)


def test_hosts_join_by_the_name_behind_their_address(tmp_path: Path) -> None:
    """In answers, in matchers, in the run's own hosts, and when a citation runs again."""
    metrics = source(tmp_path, NODE, scope=Scope(hosts=("n3", "n4")))
    answer = metrics.ask('host_procs_running{host="n4"}')
    cite = answer.cite(answer.rows[0], "run queue")

    assert metrics.gaps == ()
    assert (cite.place, cite.value) == (Place(host="n4"), 4)
    assert 'instance="10.0.0.4:9100"' in cite.query
    assert metrics.replay(cite) == 4


def test_a_state_that_means_up_is_a_flag(tmp_path: Path) -> None:
    """Of a state machine's numbers one means yes; a mean of states means nothing."""
    metrics = source(tmp_path, NODE)
    answer = metrics.ask("rdma_port_up")

    assert {row.place.host: row.last for row in answer.rows} == {"n3": 0, "n4": 1}
    with pytest.raises(QueryRejected, match="comparison"):
        metrics.ask("avg_over_time(rdma_port_up[5m])")


@pytest.mark.parametrize(
    ("line", "signal", "value"),
    [
        ('accelerator_nvidia_power_current_usage_milli_watts{uuid="G",instance="n1:1"} 350000',
         "gpu_power_watts", 350.0),
        ('hw_gpu_clock_mhz{type="sclk",gpu="0",host="n1"} 2100\nhw_gpu_power_watts{host="n1"} 9',
         "gpu_sm_clock_hertz", 2.1e9),
        ('ray_node_gram_used{GpuIndex="0",ip="n1"} 1024\nray_node_mem_used{ip="n1"} 1',
         "gpu_memory_used_bytes", 2.0**30),
        ('hw_io_pressure_some_pct{host="n1"} 40\nhw_procs_running{host="n1"} 3',
         "host_io_pressure_ratio", 0.4),
        ('slurm_node_count_per_state{state="down"} 2', "slurm_nodes_down", 2.0),
        ('up{instance="n1:9100",job="node"} 1', "exporter_up", 1.0),
        ('flatline_recorder_info{host="n1"} 1\nflatline_gpu_power_watts{host="n1",gpu="0"} 7',
         "gpu_power_watts", 7.0),
    ],
)  # fmt: skip
def test_units_and_scales_of_exporters(
    tmp_path: Path, line: str, signal: str, value: float
) -> None:
    """Milliwatts, megahertz, mebibytes and percentages come to canonical units."""
    text = "".join(f"{part} {T0 * 1000}\n" for part in line.split("\n"))
    answer = source(tmp_path, text).ask(signal)

    assert [row.last for row in answer.rows] == [value]


def test_an_index_in_a_label_of_its_own_becomes_the_gpu(tmp_path: Path) -> None:
    """amd_smi_exporter: microwatts, and the GPU under the metric's own name."""
    metrics = source(
        tmp_path, f'amd_gpu_power{{gpu_power="3",instance="n1:2021"}} 4e8 {T0 * 1000}\n'
    )
    answer = metrics.ask("gpu_power_watts")
    cite = answer.cite(answer.rows[0], "power")

    assert (cite.place, cite.value) == (Place(host="n1", gpu="3"), 400.0)
    assert metrics.replay(cite) == 400.0
