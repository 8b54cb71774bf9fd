"""Hosts of one run that two exporters read: each is laid beside those of its own exporter."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from families.fleet import T0, facts_of, sample, stepping
from flatline.judging.gpus import readings
from flatline.judging.idle_power import idle
from flatline.judging.slow_cpus import slow_cpus
from flatline.judging.throughput import course
from flatline.model import Place

STOOD, HOSTS, CARDS = 900, 5, 4


def when(second: int) -> datetime:
    return datetime.fromtimestamp(T0 + second, UTC)


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


@pytest.mark.parametrize(
    ("old", "card", "shown"),
    [
        (lambda at: 500.0, "a", 300.0),
        (lambda at: 500.0 + at / 50, "a", None),
        (lambda at: 500.0, "b", None),
    ],
    ids=["stands still", "moves as well", "of a namesake"],
)
def test_a_second_exporter_of_one_host_that_serves_its_last_reading(
    tmp_path: Path, old: Callable[[int], float], card: str, shown: float | None
) -> None:
    """Of two that tell of one card the one that moves is read; where both move neither is, nor of
    two cards of one name."""
    lines = []
    for at in range(0, 1500, 20):
        for gpu in range(CARDS):
            now = 600.0 - 300.0 * (at > STOOD) + at % 40
            for uuid, port, watts in (("a", 9400, now), (card, 9401, old(at))):
                labels = f'gpu="{gpu}",UUID="{uuid}{gpu}",Hostname="n0",instance="n0:{port}"'
                lines.append(sample("DCGM_FI_DEV_POWER_USAGE", labels, watts, at))
    facts, _ = facts_of(tmp_path, lines, stepping(STOOD))

    read = readings(facts.series("avg_over_time(gpu_power_watts[60s])",
                                 start=when(60), end=when(1440), step_s=60.0))  # fmt: skip

    at_end = None if read is None else read.value(Place(host="n0", gpu="0"), T0 + 1440)
    assert at_end == (None if shown is None else pytest.approx(shown, abs=40))
