"""The one GPU that works longer than all others in every step, where no record names the hosts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from families.fleet import facts_of, sample, stepping
from flatline.judging.lone_worker import lone_card, lone_worker
from flatline.judging.throughput import course
from flatline.model import Attempt, Place

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


def gaps(tmp_path: Path, resident: Level, sm: Level, slow: bool = False) -> Place | None:
    """The card that alone has gaps, on two hosts of eight GPUs that are the run's."""
    lines = [
        sample(metric, f'gpu="{gpu}",Hostname="n{host}",modelName="H100"',
               level(host, gpu, at), at)
        for metric, level in (("DCGM_FI_PROF_GR_ENGINE_ACTIVE", resident),
                              ("DCGM_FI_PROF_SM_ACTIVE", sm))
        for host in range(2)
        for gpu in range(8)
        for at in range(0, ENDS, 30)
    ]  # fmt: skip
    track = stepping(ENDS, lambda at: 8.0 if slow and at > 2000 else 6.0 + at % 7 / 100)
    tries = (Attempt(0, "completed", hosts=("n0", "n1")),)
    facts, _ = facts_of(tmp_path, lines, track, attempts=tries)
    run = course(facts)
    assert run is not None
    found = lone_card(facts, run)
    return None if found is None else found.place


def late(host: int, gpu: int, at: float) -> float:
    return 0.7 if (host, gpu) == (1, 3) else 0.97


def test_a_card_that_alone_has_gaps(tmp_path: Path) -> None:
    """The others wait for it in kernels."""
    assert gaps(tmp_path, late, lambda host, gpu, at: 0.5) == Place(host="n1", gpu="3")


@pytest.mark.parametrize(
    ("resident", "sm"),
    [
        (lambda h, g, at: 0.7 if (h, g) == (0, 0) else 0.97, lambda h, g, at: 0.5),
        (lambda h, g, at: 0.7 if g == 3 else 0.97, lambda h, g, at: 0.5),
        (lambda h, g, at: 0.7 if (h, g) == (1, 3) and at < 1800 else 0.97, lambda h, g, at: 0.5),
        (late, lambda h, g, at: 0.34 if (h, g) == (1, 3) else 0.5),
        (lambda h, g, at: 0.1 if (h, g) == (1, 3) else 0.97,
         lambda h, g, at: 0.03 if (h, g) == (1, 3) else 0.5),
        (lambda h, g, at: 0.6 if (h, g) == (1, 3) else 0.8, lambda h, g, at: 0.5),
    ],
    ids=["the head's own", "one on each host", "half of the time", "has less to do", "a spare",
         "all have gaps"],
)  # fmt: skip
def test_near_misses_of_a_card_with_gaps(tmp_path: Path, resident: Level, sm: Level) -> None:
    """What stands so by its part of the work, or for a time, holds nobody back."""
    assert gaps(tmp_path, resident, sm) is None


def test_gaps_that_were_there_before_the_pace_fell(tmp_path: Path) -> None:
    """They do not explain a fall."""
    assert gaps(tmp_path, late, lambda host, gpu, at: 0.5, slow=True) is None
