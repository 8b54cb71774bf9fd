"""One card whose exporter is scraped by two jobs of a Prometheus."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from flatline.judging.timeline import alone


def row(*, still: bool = False, times: float = 1.0, **native: str) -> Any:
    known = {"UUID": "GPU-1", "Hostname": "n1", "job": "dcgm", "instance": "n1:9400", **native}
    read = [(60.0 * at, times * (400.0 + at % 3)) for at in range(10)]
    return SimpleNamespace(still=still, native=known, points=lambda: iter(read))


def test_by_whatever_name_its_host_is_reached_any_of_them_will_do() -> None:
    first, second = row(), row(times=1.05, job="gpus", instance="10.1.0.1:9400")

    assert alone([(1, second), (1, first)]) == {1: first}


def test_the_one_that_serves_an_old_reading_does_not() -> None:
    stuck, moving = row(still=True), row(job="gpus", instance="10.1.0.1:9400")

    assert alone([(1, stuck), (1, moving)]) == {1: moving}


@pytest.mark.parametrize(
    "other",
    [{"UUID": "GPU-2"}, {"hpc_job": "8"}, {"UUID": "", "instance": "10.1.0.1:9400"}],
    ids=["another card", "another job's time", "cards that no label names"],
)
def test_what_may_be_two_things_stays_out(other: dict[str, str]) -> None:
    first = row(UUID="") if "instance" in other else row()

    assert not alone([(1, first), (1, row(**other))])


@pytest.mark.parametrize("times", [1.3, float("nan")])
def test_where_they_do_not_agree_neither_is_known(times: float) -> None:
    assert not alone([(1, row()), (1, row(times=times, job="gpus"))])


def test_of_two_that_stand_still_none_is_known_to_be_new() -> None:
    assert not alone([(1, row(still=True)), (1, row(still=True, job="gpus"))])
