"""Nodes that Slurm knows by the names of their pods, and exporters by those of machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.sources.metrics import MetricsSource
from flatline.vocab.rewrite import Scope

T0 = 1_700_000_000
Scraped = tuple[str, str | None]
"""The machine, and the pod that held its GPU."""
APART: list[Scraped] = [("vm-7kq2", "worker-0"), ("vm-x09c", "worker-1"), ("vm-pp3z", "other-0")]
RUN = ("worker-0", "worker-1")


def read(folder: Path, scraped: list[Scraped], label: str = "pod") -> MetricsSource:
    rows = []
    for n, (name, pod) in enumerate(scraped):
        held = f',{label}="{pod}"' if pod else ""
        at = f"10.1.0.{n}"
        rows += [
            f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",Hostname="{name}"{held},instance="{at}:9400"}} {n}',
            f'node_uname_info{{nodename="{name}",instance="{at}:9100"}} 1',
            f'node_procs_running{{instance="{at}:9100"}} {10 + n}',
        ]
    file = folder / "m.prom"
    file.write_text("".join(f"{row} {(T0 + 30 * n) * 1000}\n" for n in range(4) for row in rows))
    return MetricsSource([(file, "m.prom")], Scope(RUN))


def hosts(source: MetricsSource, signal: str) -> dict[str | None, float]:
    return {row.place.host: row.last for row in source.ask(signal).rows}


@pytest.mark.parametrize("label", ["pod", "exported_pod"])
def test_the_machine_beneath_is_the_node(tmp_path: Path, label: str) -> None:
    """To what its node_exporter says as well."""
    source = read(tmp_path, APART, label)

    assert hosts(source, "gpu_power_watts") == {"worker-0": 0.0, "worker-1": 1.0}
    assert hosts(source, "host_procs_running") == {"worker-0": 10.0, "worker-1": 11.0}


@pytest.mark.parametrize(
    ("scraped", "known"),
    [
        ([("vm-a", "worker-0"), ("vm-b", "worker-0"), ("vm-c", "worker-1")], {"worker-1"}),
        ([("vm-a", "train-x-0"), ("vm-b", None)], set()),
        ([("worker-0", "exporter-1"), ("worker-1", "worker-0")], {"worker-0", "worker-1"}),
    ],
    ids=["a pod on two machines", "pods of no node", "named by themselves"],
)
def test_near_misses(tmp_path: Path, scraped: list[Scraped], known: set[str]) -> None:
    assert set(hosts(read(tmp_path, scraped), "gpu_power_watts")) == known
