"""One card whose exporter is scraped by two jobs of a Prometheus."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from flatline.judging.timeline import alone


def row(*, still: bool = False, **native: str) -> Any:
    known = {"UUID": "GPU-1", "Hostname": "n1", "job": "dcgm", "instance": "n1:9400", **native}
    return SimpleNamespace(still=still, native=known)


def test_by_whatever_name_its_host_is_reached_any_of_them_will_do() -> None:
    first, second = row(), row(job="gpus", instance="10.1.0.1:9400")

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


def test_of_two_that_stand_still_none_is_known_to_be_new() -> None:
    assert not alone([(1, row(still=True)), (1, row(still=True, job="gpus"))])
