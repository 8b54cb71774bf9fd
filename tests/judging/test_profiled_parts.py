"""D2 by what a loop says once of the parts of the steps that it profiled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.judging.reductions import reduction

BEGAN = datetime(2026, 5, 2, 9, 0, tzinfo=UTC)
STEP_S = 6


def share(folder: Path, *said: str, steps: int = 40) -> float | None:
    """The part of a step of six seconds that is communication."""
    lines = [f"{BEGAN:%F %T} {one}" for one in said]
    for n in range(1, steps):
        at = BEGAN + timedelta(seconds=STEP_S * n)
        lines.append(f"{at:%F %T} INFO step {n}/9000 loss {2 + 9 / (n + 4):.3f}")
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    told = reduction(collect(Request((str(folder),))))
    return None if told is None else round(told.lost_s / told.wall_s, 2)


@pytest.mark.parametrize(
    "said",
    [
        "profiled 10..20: compute=1.8s exposed_comm=4.2s (reduce_scatter 2.4s, all_gather=1.8s)",
        "parts of a step: compute: 1780ms comm_time: 4150 ms data: 70ms",
    ],
)
def test_parts_that_add_up_to_a_step(tmp_path: Path, said: str) -> None:
    assert share(tmp_path, said) in (0.69, 0.7)


@pytest.mark.parametrize(
    ("said", "steps"),
    [
        ("profiled 1 step: compute=1.8s exposed_comm=42.0s", 40),
        ("profiled: compute=1.8s comm=2.0s allreduce=2.2s", 40),
        ("profiled 10..20: compute=1.8s exposed_comm=4.2s", 8),
        ("compute=bf16 comm=nccl", 40),
    ],
    ids=["another length", "two of them", "few steps", "no times"],
)
def test_parts_that_tell_nothing(tmp_path: Path, said: str, steps: int) -> None:
    assert share(tmp_path, said, steps=steps) is None
