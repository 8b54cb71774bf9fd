"""Hosts of one run that two exporters share, and those that both have."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flatline.collect.telemetry import telemetry
from flatline.model import Place
from flatline.sources.metrics import MetricsSource
from flatline.vocab.rewrite import Scope

T0 = 1_700_000_000
SAMPLES = 5


def dcgm(host: str, watts: float = 500.0, samples: int = SAMPLES, instance: str = "") -> str:
    """Two GPUs of a host; without `instance` as a file of the exporter has them."""
    scrape = f',instance="{instance}"' if instance else ""
    return "".join(
        f'DCGM_FI_DEV_POWER_USAGE{{gpu="{gpu}",UUID="GPU-{host}-{gpu}",Hostname="{host}"{scrape}}}'
        f" {watts} {(T0 + 30 * n) * 1000}\n"
        for gpu in range(2)
        for n in range(samples)
    )


def smi(host: str, watts: float = 600.0, instance: str = "") -> str:
    """The same by nvidia_gpu_exporter, whose GPUs are UUIDs."""
    target = instance or f"{host}:9835"
    return "".join(
        f'nvidia_smi_power_draw_watts{{uuid="{host}-{gpu}",instance="{target}"}}'
        f" {watts} {(T0 + 30 * n) * 1000}\n"
        f'nvidia_smi_gpu_info{{uuid="{host}-{gpu}",index="{gpu}",instance="{target}"}}'
        f" 1 {(T0 + 30 * n) * 1000}\n"
        for gpu in range(2)
        for n in range(SAMPLES)
    )


def amd(host: str, watts: float = 700.0) -> str:
    return "".join(
        f'gpu_package_power{{hostname="{host}",gpu_id="{gpu}",card_model="x"}}'
        f" {watts} {(T0 + 30 * n) * 1000}\n"
        for gpu in range(2)
        for n in range(SAMPLES)
    )


def read(tmp_path: Path, texts: Iterable[str], scope: Scope | None = None) -> MetricsSource:
    file = tmp_path / "m.prom"
    file.write_text("# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n" + "".join(texts), "utf-8")
    return MetricsSource([(file, "m.prom")], scope)


def watts(source: MetricsSource, query: str = "gpu_power_watts") -> dict[str, float]:
    """The last value by host, of GPU 0 where GPUs are told apart."""
    rows = source.ask(query).rows
    return {str(r.place.host): r.last for r in rows if r.place.gpu in (None, "0")}


@pytest.mark.parametrize("other", [smi, amd])
def test_each_exporter_answers_for_its_own_hosts(tmp_path: Path, other: object) -> None:
    """And every row is cited by its own exporter's query, which gives its value again."""
    assert callable(other)
    source = read(tmp_path, [dcgm("n1"), dcgm("n2"), other("n3")])
    answer = source.ask("avg_over_time(gpu_power_watts[1m])")
    cites = {row.place: answer.cite(row, "power") for row in answer.rows}

    assert {place.host for place in cites} == {"n1", "n2", "n3"}
    assert len(cites) == 6
    assert {row.exporter for row in answer.rows if row.place.host != "n3"} == {"dcgm-exporter"}
    assert all(source.replay(cite) == cite.value for cite in cites.values())
    assert "DCGM_" in cites[Place(host="n1", gpu="0")].query
    assert "DCGM_" not in cites[Place(host="n3", gpu="1")].query
    assert cites[Place(host="n3", gpu="1")].value >= 600.0


def test_a_joined_query_runs_as_it_is_written(tmp_path: Path) -> None:
    """As `flatline query` runs it, and as the answer tells it."""
    source = read(tmp_path, [dcgm("n1"), smi("n2")])
    answer = source.ask("gpu_power_watts > 10")
    native = source.native("gpu_power_watts > 10")

    assert answer.query == getattr(native, "text", "")
    again = source._engine.run(answer.query, T0 + 60.0, T0 + 60.0, 0.0)
    assert sorted(again.values[:, 0]) == [500.0, 500.0, 600.0, 600.0]


def test_a_host_that_both_have_is_the_first_s(tmp_path: Path) -> None:
    """The first has more series; the other answers for the host that it alone has."""
    source = read(tmp_path, [dcgm("n1"), dcgm("n2"), smi("n2"), smi("n3")])

    assert watts(source) == {"n1": 500.0, "n2": 500.0, "n3": 600.0}
    assert watts(source, "avg by (host) (gpu_power_watts)") == watts(source)


def test_a_host_whose_exporter_fell_silent_stays_that_exporter_s(tmp_path: Path) -> None:
    """Its silence is what it says: no other reading is put in its place half-way."""
    source = read(tmp_path, [dcgm("n1"), dcgm("n2", samples=2), dcgm("n3"), smi("n2")])
    answer = source.ask("gpu_power_watts", step_s=30.0)
    rows = {str(row.place): (row.exporter, len(row)) for row in answer.rows}

    assert len(rows) == 6
    assert {exporter for exporter, _ in rows.values()} == {"dcgm-exporter"}


def test_an_exporter_that_was_gone_before_the_run_answers_for_nothing(tmp_path: Path) -> None:
    """A database holds what a site had before it changed exporters."""
    file = tmp_path / "m.prom"
    before = "".join(dcgm(host) for host in ("n1", "n2", "n3"))
    early = before.replace(str(T0 // 10_000), str(T0 // 10_000 - 100))
    file.write_text("# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n" + early + smi("n1") + smi("n2"))
    run = datetime.fromtimestamp(T0 - 60, UTC), datetime.fromtimestamp(T0 + 600, UTC)

    assert watts(MetricsSource([(file, "m.prom")], within=run)) == {"n1": 600.0, "n2": 600.0}


def test_one_number_over_all_hosts_is_of_one_exporter(tmp_path: Path) -> None:
    """Of the one with most series, or of the one that is named: their levels may differ."""
    source = read(tmp_path, [dcgm("n1"), dcgm("n2"), smi("n3")])

    assert [r.last for r in source.ask("quantile(0.5, gpu_power_watts)").rows] == [500.0]
    named = source.ask("quantile(0.5, gpu_power_watts)", exporter="nvidia_gpu_exporter")
    assert [r.last for r in named.rows] == [600.0]
    assert source.replay(named.cite(named.rows[0], "the median")) == 600.0


@pytest.mark.parametrize(
    "texts",
    [
        [dcgm("n1"), dcgm("n2"), smi("n1", instance="10.0.0.1:9835")],
        [dcgm("pod-a"), dcgm("pod-b"), smi("pod-a", instance="n1:9835")],
    ],
)
def test_the_same_host_under_another_name_is_not_read_twice(
    tmp_path: Path, texts: list[str]
) -> None:
    """An address that nothing resolves, and GPUs that both have by UUID."""
    assert set(watts(read(tmp_path, texts)).values()) == {500.0}


def test_of_a_site_the_hosts_of_the_run_decide(tmp_path: Path) -> None:
    """Elsewhere the exporter with more series has hosts of others; both have other runs' hosts."""
    texts = [*(dcgm(f"n{n}") for n in range(4, 9)), smi("n3"), smi("n4"), smi("n5", 650.0)]

    assert watts(read(tmp_path, texts, Scope(("n3",)))) == {"n3": 600.0}
    both = read(tmp_path, texts, Scope(("n3", "n4"), {"n3": ("0",)}))
    assert watts(both) == {"n3": 600.0, "n4": 500.0}
    assert [r.place.gpu for r in both.ask("gpu_power_watts").rows if r.place.host == "n3"] == ["0"]
    assert not both.gaps


def test_a_host_that_no_exporter_has_is_still_told(tmp_path: Path) -> None:
    """Once for each exporter that lacks it, as of one."""
    source = read(tmp_path, [dcgm("n1"), smi("n2")], Scope(("n1", "n2", "n3")))

    assert {gap.where for gap in source.gaps if gap.need == "metrics of every host"} == {"n3"}


def profiled(host: str) -> str:
    """The SM activity of two GPUs by dcgm-exporter."""
    return "".join(
        f'DCGM_FI_PROF_SM_ACTIVE{{gpu="{gpu}",UUID="GPU-{host}-{gpu}",Hostname="{host}"}}'
        f" 0.9 {(T0 + 30 * n) * 1000}\n"
        for gpu in range(2)
        for n in range(SAMPLES)
    )


def test_hosts_whose_exporter_lacks_a_signal_are_told(tmp_path: Path) -> None:
    """Once for each signal, with all of them, when it is asked for by host."""
    hosts = [f"n{n}" for n in range(3, 6)]
    both = [dcgm("n1"), dcgm("n2"), profiled("n1"), profiled("n2")]
    source = read(tmp_path, [*both, *map(smi, hosts)], Scope(("n1", "n2", *hosts)))
    assert not source.gaps

    for query in ("gpu_power_watts", "max(gpu_sm_active_ratio)"):
        source.ask(query)
    assert not source.gaps

    for query in ("gpu_sm_active_ratio", "max by (host) (max_over_time(gpu_sm_active_ratio[1m]))"):
        source.ask(query)
    assert [(gap.need, gap.reason) for gap in source.gaps] == [
        (
            "gpu_sm_active_ratio of every host",
            "not of n3, n4, n5: nvidia_gpu_exporter does not carry it",
        )
    ]


def test_hosts_whose_exporter_cannot_answer_as_asked_are_told(tmp_path: Path) -> None:
    """One that has several clocks of a GPU gives their mean, of which there is no highest."""
    clock = "".join(
        f'gpu_clock{{hostname="n3",gpu_id="0",clock_index="{index}",clock_type="system"}}'
        f" {1900 + index} {(T0 + 30 * n) * 1000}\n"
        for index in range(2)
        for n in range(SAMPLES)
    )
    texts = [dcgm(host).replace("POWER_USAGE", "SM_CLOCK") for host in ("n1", "n2")]
    source = read(tmp_path, [*texts, amd("n3"), clock])

    source.ask("avg_over_time(gpu_sm_clock_hertz[1m])")
    assert not source.gaps
    source.ask("max_over_time(gpu_sm_clock_hertz[1m])")
    (gap,) = source.gaps
    assert gap.need == "gpu_sm_clock_hertz of every host"
    assert gap.reason.startswith("not of n3: amd-device-metrics-exporter: ")


def test_a_host_that_another_exporter_answers_for_lacks_nothing(tmp_path: Path) -> None:
    """Two exporters on every host; and one of hosts alone has no GPUs to speak of."""
    node = "".join(f'node_procs_running{{instance="{host}:9100"}} 3 {T0 * 1000}\n'
                   for host in ("n1", "n2", "n9"))  # fmt: skip
    source = read(
        tmp_path, [*map(dcgm, ("n1", "n2")), *map(profiled, ("n1", "n2")), smi("n2"), node]
    )
    source.ask("gpu_sm_active_ratio")
    source.ask("host_procs_running")

    assert not source.gaps


def test_a_host_under_another_name_is_not_told_as_left_out(tmp_path: Path) -> None:
    """The same cards by UUID, on a host that the other exporter calls by its address."""
    texts = [dcgm("n1"), profiled("n1"), smi("n1", instance="10.0.0.1:9835")]
    source = read(tmp_path, texts)
    source.ask("gpu_sm_active_ratio")

    assert not [gap for gap in source.gaps if "gpu_sm_active_ratio" in gap.need]


def test_signals_show_both(tmp_path: Path) -> None:
    """With the hosts of each."""
    read(tmp_path, [dcgm("n1"), smi("n2")])
    found = telemetry((str(tmp_path),), ())
    power = {c.exporter: c.hosts for c in found.carried if c.signal == "gpu_power_watts"}

    assert power == {"dcgm-exporter": ("n1",), "nvidia_gpu_exporter": ("n2",)}


def test_a_few_hosts_that_lack_a_signal_of_their_own_exporter_are_told(tmp_path: Path) -> None:
    """Where most lack it, as of a profiler's metrics that one host has on trial, it is the
    exporter's way and no gap."""
    names = ("n1", "n2", "n3")
    powers = [dcgm(host) for host in names]
    scope = Scope(names)
    lacking = read(tmp_path, [*powers, profiled("n1"), profiled("n2")], scope)
    lacking.ask("gpu_sm_active_ratio")

    assert [(gap.need, gap.reason) for gap in lacking.gaps] == [
        ("gpu_sm_active_ratio of every host", "not of n3: dcgm-exporter does not have it there")
    ]

    (tmp_path / "trial").mkdir()
    trial = read(tmp_path / "trial", [*powers, profiled("n1")], scope)
    trial.ask("gpu_sm_active_ratio")

    assert not trial.gaps
