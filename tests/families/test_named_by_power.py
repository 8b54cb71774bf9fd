"""The card of a rank that the program reports as slow, by a power unlike that of all others."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Place

BEGAN = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
REPORT = (
    "STRAGGLER DETECTION WARNING: Some GPUs have worse relative performance. Affected ranks: [{}]"
)


def culprits(folder: Path, rank: int, watts: dict[int, float]) -> tuple[Place, ...]:
    """Sixteen ranks on two hosts, one that is reported, and cards of another power."""
    noise = random.Random(3)
    at, lines, samples = BEGAN, ["world_size: 16"], []
    for n in range(1, 1201):
        at += timedelta(seconds=3)
        lines.append(f"{at:%Y-%m-%d %H:%M:%S} step {n}/9000 loss {4 - n / 600:.4f} step_time 3.0s")
        if n % 80 == 0:
            lines.append(f"{at:%Y-%m-%d %H:%M:%S} {REPORT.format(rank)}")
        if n % 10 == 0:
            for gpu in range(16):
                label = f'Hostname="gn{1 + gpu // 8}",gpu="{gpu % 8}",modelName="H100"'
                level = watts.get(gpu, 560.0) * noise.gauss(1, 0.01)
                moment = int(at.timestamp() * 1000)
                samples += [
                    f"DCGM_FI_DEV_POWER_USAGE{{{label}}} {level:.1f} {moment}",
                    f"DCGM_FI_DEV_GPU_UTIL{{{label}}} 100 {moment}",
                ]
    (folder / "slurm-77.out").write_text("\n".join(lines) + "\n")
    (folder / "metrics.prom").write_text("\n".join(sorted(samples)) + "\n")
    (folder / "queue.txt").write_text(
        f"{at:%Y-%m-%d %H:%M:%S}\n77 gpu lm mira R 01:00:00 2 gn[1-2]\n"
    )
    verdict = diagnose(collect(Request((str(folder),))))
    assert verdict.code == "D3"
    return verdict.culprits


@pytest.mark.parametrize("watts", [400.0, 610.0, 680.0])
def test_the_one_that_its_number_counts_to(tmp_path: Path, watts: float) -> None:
    assert culprits(tmp_path, 11, {11: watts}) == (Place(host="gn2", gpu="3", rank=11),)


@pytest.mark.parametrize(
    ("rank", "watts"),
    [
        (10, {11: 400.0}),
        (3, {11: 400.0}),
        (11, {11: 400.0, 5: 410.0}),
        (11, {11: 540.0}),
        (11, {11: 610.0, 5: 580.0}),
        (11, {}),
    ],
    ids=["another number", "another host", "two", "little less", "another nearly so", "none"],
)
def test_cards_that_are_not_known_to_be_its_own(
    tmp_path: Path, rank: int, watts: dict[int, float]
) -> None:
    assert culprits(tmp_path, rank, watts) == (Place(rank=rank),)
