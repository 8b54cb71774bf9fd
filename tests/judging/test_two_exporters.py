"""Hosts of one run that two exporters read: each is laid beside those of its own exporter."""

from __future__ import annotations

from pathlib import Path

import pytest

from families.fleet import T0, facts_of, sample, stepping
from flatline.judging.idle_power import idle
from flatline.judging.slow_cpus import slow_cpus
from flatline.judging.throughput import course
from flatline.model import Place

STOOD, HOSTS, CARDS = 900, 5, 4


def card(host: int, gpu: int, watts: float, at: float) -> list[str]:
    """A card's power: by nvidia_gpu_exporter on the last host, elsewhere by dcgm-exporter."""
    if host < HOSTS - 1:
        labels = f'gpu="{gpu}",UUID="GPU-{host}-{gpu}",Hostname="n{host}"'
        return [sample("DCGM_FI_DEV_POWER_USAGE", labels, watts, at)]
    labels = f'uuid="{host}-{gpu}",instance="n{host}:9835"'
    return [
        sample("nvidia_smi_power_draw_watts", labels, watts, at),
        sample("nvidia_smi_gpu_info", f'{labels},index="{gpu}"', 1, at),
    ]


@pytest.mark.parametrize(
    ("resting", "meant"),
    [(HOSTS - 1, ()), (2, (Place(host="n2"),))],
    ids=["read otherwise", "read alike"],
)
def test_power_is_not_held_against_what_another_exporter_reads(
    tmp_path: Path, resting: int, meant: tuple[Place, ...]
) -> None:
    """A host whose cards all draw less than the others' put its work down, where they are read
    alike; where they are not, nothing tells a lower reading from less work."""
    lines = [
        line
        for host in range(HOSTS)
        for gpu in range(CARDS)
        for at in range(0, 1520, 20)
        for line in card(host, gpu, 640 if at <= STOOD else 150 if host == resting else 230, at)
    ]
    facts, _ = facts_of(tmp_path, lines, stepping(STOOD))
    found = idle(facts, T0 + STOOD + 600)

    assert (() if found is None else found.places) == meant


@pytest.mark.parametrize(("slow", "meant"), [(HOSTS - 1, False), (2, True)])
def test_cpu_clocks_are_not_held_against_what_another_exporter_reads(
    tmp_path: Path, slow: int, meant: bool
) -> None:
    """node_exporter averages over CPUs what the recorder may read of one."""
    names = tuple(f"n{host}" for host in range(HOSTS))
    lines = [
        sample("node_cpu_scaling_frequency_hertz", f'instance="{name}:9100",cpu="0"', hertz, at)
        if host < HOSTS - 1
        else sample("flatline_host_cpu_frequency_hertz", f'host="{name}"', hertz, at)
        for host, name in enumerate(names)
        for hertz in (2.0e9 if host == slow else 3.4e9,)
        for at in range(0, 1520, 20)
    ]
    facts, _ = facts_of(tmp_path, lines, stepping(1500))
    run = course(facts)
    assert run is not None

    assert (slow_cpus(facts, run, names[slow], names) is not None) == meant
