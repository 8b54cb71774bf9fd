"""D1, D2 and C3: near misses of runs whose GPUs have little to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from families.fleet import checked, facts_of, findings, sample, stepping
from flatline.families import idle_gpu_hang, input_starvation, throughput_bound
from flatline.model import Attempt, Cleared, Finding

Value = Callable[[int, float], float]


def lines(metric: str, label: str, value: Value, places: int = 2, until: int = 3600) -> list[str]:
    return [
        sample(metric, label.format(n=n), value(n, at), at)
        for n in range(places) for at in range(0, until, 30)
    ]  # fmt: skip


def starved(tmp_path: Path, util: float, waits: Callable[[int], float]) -> Finding | None:
    read = lines("DCGM_FI_DEV_GPU_UTIL", 'Hostname="n{n}",gpu="0"', lambda n, at: util)
    read += lines("node_pressure_io_waiting_seconds_total", 'instance="n{n}:9100"',
                  lambda n, at: waits(n) * at)  # fmt: skip
    facts, source = facts_of(tmp_path, read, stepping(3500))
    found = findings(checked(input_starvation.judge(facts), source))
    return found[0] if found else None


def test_idle_gpus_on_hosts_that_wait_are_starved(tmp_path: Path) -> None:
    """On all alike, with the hosts' own word for it."""
    found = starved(tmp_path, 25, lambda n: 0.6)

    assert found is not None
    assert (found.role, found.scope, found.fault_class) == ("cause", "all", "storage")


@pytest.mark.parametrize(("util", "waits"), [(25, 0.01), (55, 0.6), (55, 0.01)])
def test_a_small_model_is_a_warning(tmp_path: Path, util: float, waits: float) -> None:
    """Where the hosts do not wait, or where it is mild."""
    found = starved(tmp_path, util, lambda n: waits)

    assert found is not None
    assert found.role == "warning"


def test_one_host_that_waits_is_not_everyones_input(tmp_path: Path) -> None:
    """That would be its contention, or its rank's."""
    found = starved(tmp_path, 25, lambda n: 0.9 if n else 0.0)

    assert found is not None
    assert found.role == "warning"


def test_busy_gpus_are_not_starved(tmp_path: Path) -> None:
    """Nor cleared: a wait in a collective looks busy."""
    assert starved(tmp_path, 95, lambda n: 0.6) is None


def transported(tmp_path: Path, rdma: float, plain: float, up: float = 1) -> Finding | None:
    port = 'host="n{n}",device="r0",port="1"'
    read = lines("hw_rdma_tx_bytes_total", port, lambda n, at: rdma * at)
    read += lines("hw_rdma_port_state", port, lambda n, at: up)
    read += lines("hw_net_tx_bytes_total", 'host="n{n}",device="e0"', lambda n, at: plain * at)
    facts, source = facts_of(tmp_path, read, stepping(3500))
    found = findings(checked(throughput_bound.judge(facts), source))
    return found[0] if found else None


def test_idle_adapters_beside_a_full_network(tmp_path: Path) -> None:
    """Sockets instead of the fabric."""
    found = transported(tmp_path, 0, 600e6)

    assert found is not None
    assert found.fault_class == "slow-interconnect"


@pytest.mark.parametrize(
    ("rdma", "plain", "up"), [(9e9, 600e6, 1), (0, 2e6, 1), (0, 600e6, 0), (3e7, 600e6, 1)]
)
def test_networks_that_show_no_fallback(
    tmp_path: Path, rdma: float, plain: float, up: float
) -> None:
    """The fabric in use, little traffic at all, no fabric that is up, a fabric used a little."""
    assert transported(tmp_path, rdma, plain, up) is None


def idle(tmp_path: Path, gpus: int = 1, held: float = 30_000, stops: float = 600,
         util: float = 0.0, **more: object) -> object:  # fmt: skip
    label = 'Hostname="n0",gpu="{n}"'
    read = lines("DCGM_FI_DEV_GPU_UTIL", label, lambda n, at: util if at > stops else 95, gpus)
    read += lines("DCGM_FI_DEV_FB_USED", label, lambda n, at: held, gpus)
    read += lines("DCGM_FI_DEV_POWER_USAGE", label, lambda n, at: 70 if at > stops else 300, gpus)
    facts, source = facts_of(tmp_path, read, stepping(stops), **more)
    return checked(idle_gpu_hang.judge(facts), source)


def test_one_gpu_held_and_idle_is_named(tmp_path: Path) -> None:
    """For most of an hour after its last line."""
    found = idle(tmp_path)

    assert isinstance(found, Finding)
    assert found.culprits[0].gpu == "0"


def test_several_gpus_are_another_familys(tmp_path: Path) -> None:
    """Ranks that wait for one another are C1 or C2."""
    assert idle(tmp_path, gpus=2) is None


def test_memory_given_back_is_no_hang(tmp_path: Path) -> None:
    """The process has ended."""
    assert idle(tmp_path, held=300) is None


def test_a_run_known_to_have_ended_does_not_hang(tmp_path: Path) -> None:
    """Whatever lies on the device after it."""
    assert idle(tmp_path, attempts=(Attempt(0, "completed"),)) is None


def test_work_to_the_end_clears_it(tmp_path: Path) -> None:
    """A run whose log was lost may still work."""
    assert isinstance(idle(tmp_path, util=80.0), Cleared)
