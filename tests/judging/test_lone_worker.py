"""The one GPU that works longer than all others in every step, where no record names the hosts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from families.fleet import facts_of, sample, stepping
from flatline.judging.lone_worker import lone_worker
from flatline.judging.throughput import course
from flatline.model import Place

ENDS = 3600
Level = Callable[[int, int, float], float]
"""(host, GPU, seconds since the run began) -> SM activity."""


def told(tmp_path: Path, level: Level, hosts: int = 5) -> Place | None:
    """Hosts of eight GPUs, measured from ten minutes before the run to ten after it."""
    lines = [
        sample("DCGM_FI_PROF_SM_ACTIVE", f'gpu="{gpu}",Hostname="n{host}",modelName="H100"',
               level(host, gpu, at), at)
        for host in range(hosts)
        for gpu in range(8)
        for at in range(-600, ENDS + 600, 30)
    ]  # fmt: skip
    facts, _ = facts_of(tmp_path, lines, stepping(ENDS, lambda at: 6.0 + at % 7 / 100))
    run = course(facts)
    assert run is not None
    found = lone_worker(facts, run)
    return None if found is None else found.place


def working(host: int, gpu: int, at: float) -> float:
    if not 0 <= at <= ENDS:
        return 0.0
    return 0.72 if (host, gpu) == (2, 3) else 0.56


def test_beside_a_host_that_no_run_held(tmp_path: Path) -> None:
    """It idles throughout: it is not one of the run's."""
    found = told(tmp_path, lambda host, gpu, at: 0.0 if host == 4 else working(host, gpu, at))

    assert found == Place(host="n2", gpu="3")


@pytest.mark.parametrize(
    "other",
    [lambda at: 0.8, lambda at: 0.8 if at > 1200 else 0.0, lambda at: 0.8 if at < 1800 else 0.0],
    ids=["before and after", "begins later", "ends before"],
)
def test_beside_a_host_that_another_run_held(
    tmp_path: Path, other: Callable[[float], float]
) -> None:
    """Which of the hosts are this run's nothing says."""
    assert told(tmp_path, lambda host, gpu, at: other(at) if host == 4
                else working(host, gpu, at)) is None  # fmt: skip
