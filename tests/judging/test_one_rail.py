"""Collectives over one of four adapters, as NCCL was told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.one_rail import chosen
from flatline.model import Verdict

BEGAN = datetime(2026, 4, 14, 10, tzinfo=UTC)
LASTED = 2400
CARDS = ("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3")
TOLD = "NCCL INFO NCCL_IB_HCA set to mlx5_0"
SACCT = (
    "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
    "77|sft|COMPLETED|0:0|2026-04-14T09:59:00|2026-04-14T10:40:30|2|w[1-2]\n"
)


@pytest.mark.parametrize(
    ("named", "device", "is_chosen"),
    [
        ("mlx5_0", "mlx5_0", True),
        ("mlx5_1", "mlx5_10", True),
        ("mlx5", "mlx5_3", True),
        ("mlx5_0,mlx5_2", "mlx5_2", True),
        ("mlx5_0", "mlx5_1", False),
        ("=mlx5_1", "mlx5_1", True),
        ("=mlx5_1", "mlx5_10", False),
        ("^mlx5_0", "mlx5_0", False),
        ("^mlx5_0", "mlx5_1", True),
        ("^mlx5_1", "mlx5_10", False),
        ("^=mlx5_1", "mlx5_10", True),
        ("^=mlx5_1", "mlx5_1", False),
        ("mlx5_0:1", "mlx5_0", True),
        ("=mlx5_0:1,mlx5_3:1", "mlx5_3", True),
        ("=mlx5_0:1", "mlx5_1", False),
    ],
)
def test_what_a_setting_picks(named: str, device: str, is_chosen: bool) -> None:
    """By what a name begins with, exactly, all but those, and with a port."""
    assert chosen(named, device) is is_chosen


def run(
    folder: Path,
    *,
    said: str = TOLD,
    active: float = 0.35,
    others: float = 0.0,
    state: int = 4,
    waits: float = 5e4,
    hosts: int = 2,
) -> Verdict:
    """Two hosts for 40 minutes, each of four adapters. What NCCL says, how busy the processors of
    the GPUs are, the part that the other adapters carry of what mlx5_0 does and their state, the
    ticks a second that mlx5_0 waits, and on how many hosts it is so."""
    lines = [f"w{n}:910:940 [0] {said}" for n in (1, 2)]
    lines += [f"w{n}:910:940 [0] NCCL INFO Using network IB" for n in (1, 2)]
    lines += [
        f"{BEGAN + timedelta(seconds=8 * step):%Y-%m-%dT%H:%M:%S}Z step {step} loss"
        f" {1.5 + 8 / step:.4f} step_time 8.0{step % 3}s"
        for step in range(1, LASTED // 8 + 1)
    ]
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    (folder / "sacct.txt").write_text(SACCT)
    read = []
    for second in range(-60, LASTED + 60, 30):
        at = int((BEGAN.timestamp() + second) * 1000)
        worked = max(0, min(second, LASTED))
        busy = 0 <= second <= LASTED
        for n in (1, 2):
            for device in CARDS:
                port = f'{{instance="w{n}:9100",device="{device}",port="1"}}'
                first = device == CARDS[0]
                part = 1.0 if first or n > hosts else others
                up = 4 if first else state
                name = "node_infiniband_port"
                read += [
                    f"{name}_data_transmitted_bytes_total{port} {part * 8e9 * worked:.0f} {at}",
                    f"{name}_transmit_wait_total{port} {waits * worked * first:.0f} {at}",
                    f"node_infiniband_state_id{port} {up} {at}",
                ]
            card = f'{{Hostname="w{n}",gpu="0"}}'
            read.append(f"DCGM_FI_DEV_GPU_UTIL{card} {100 if busy else 0} {at}")
            read.append(f"DCGM_FI_PROF_SM_ACTIVE{card} {active if busy else 0} {at}")
    (folder / "metrics.prom").write_text("\n".join(read) + "\n")
    return diagnose(collect(Request((str(folder),))))


def told_rail(verdict: Verdict) -> list[str]:
    """The roles of what is said of the adapters."""
    return [
        one.role for one in verdict.findings
        if one.finding.code == "D2" and "a part of the adapters" in one.finding.summary
    ]  # fmt: skip


@pytest.mark.parametrize(
    "said", [TOLD, TOLD.replace("mlx5_0", "=mlx5_0:1"),
             TOLD.replace("mlx5_0", "^mlx5_1,mlx5_2,mlx5_3"),
             "NCCL INFO NET/IB : NCCL_IB_HCA set to mlx5_0"],
    ids=["prefix", "exact", "all but", "by its older line"],
)  # fmt: skip
def test_one_adapter_carries_all_and_waits(tmp_path: Path, said: str) -> None:
    """Three more of each host are up and idle: one setting away."""
    verdict = run(tmp_path, said=said)

    assert (verdict.code, verdict.fault_class, verdict.scope) == ("D2", "slow-interconnect", "all")
    assert verdict.confidence < 0.8
    assert "mlx5_1, mlx5_2, mlx5_3 lay idle" in verdict.findings[0].finding.summary
    assert any("NCCL_IB_HCA" in cite.text for one in verdict.shows for cite in one.cites)


def test_gpus_at_work_make_it_a_warning(tmp_path: Path) -> None:
    """The run lost nothing by it."""
    verdict = run(tmp_path, active=0.9)

    assert verdict.code == "G1"
    assert told_rail(verdict) == ["warning"]


@pytest.mark.parametrize(
    "changed",
    [{"others": 1.0}, {"others": 0.2}, {"state": 1}, {"waits": 0.0},
     {"said": "NCCL INFO NCCL_IB_TIMEOUT set by environment to 22."},
     {"said": TOLD.replace("mlx5_0", "mlx5")}, {"hosts": 1}],
    ids=["others carry as much", "others carry some", "others are down", "it does not wait",
         "NCCL was told nothing", "NCCL was told all", "one of two hosts"],
)  # fmt: skip
@pytest.mark.parametrize("active", [0.35, 0.9])
def test_near_misses(tmp_path: Path, changed: dict[str, object], active: float) -> None:
    """Nothing is said of the adapters."""
    assert told_rail(run(tmp_path, active=active, **changed)) == []  # type: ignore[arg-type]
