"""Nodes that a run shared with other jobs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from flatline.collect.sharing import shared
from flatline.model import Job, RecordCite

BEGAN = datetime(2026, 3, 1, tzinfo=UTC)
CITE = RecordCite("sacct.txt", "row 1, State", "COMPLETED", "JobID=7")


def job(name: str, first_h: float, last_h: float | None, *nodes: str, gpus: int | None = 4) -> Job:
    began = BEGAN + timedelta(hours=first_h)
    ended = None if last_h is None else BEGAN + timedelta(hours=last_h)
    return Job(name, name, "completed", "COMPLETED", CITE, started_at=began, ended_at=ended,
               nodes=nodes, gpus=gpus)  # fmt: skip


OWN = job("7", 0, 4, "n1", "n2")


@pytest.mark.parametrize(
    ("other", "hosts"),
    [
        (job("8", 3, 9, "n2", "n3"), ["n2"]),
        (job("8", -3, None, "n1", "n2"), ["n1", "n2"]),
        (job("8", 4, 9, "n2"), []),
        (job("8", -3, 0, "n2"), []),
        (job("8", 1, 2, "n3"), []),
        (job("8", 1, 2, "n2", gpus=0), []),
        (job("7", 1, 2, "n2"), []),
    ],
    ids=["a part", "all the time", "after", "before", "elsewhere", "without GPUs", "itself"],
)
def test_a_node_that_another_job_was_on(other: Job, hosts: list[str]) -> None:
    gaps = shared((OWN, other), (OWN,))

    assert [gap.where for gap in gaps] == hosts
    assert all("job 8" in gap.reason for gap in gaps)


def test_whose_gpus_are_known_there_is_no_question() -> None:
    told = job("7", 0, 4, "n1", "n2")
    told = replace(told, devices=(("n2", ("0",)),))

    assert shared((told, job("8", 1, 2, "n1", "n2")), (told,))[0].where == "n1"
    assert len(shared((told, job("8", 1, 2, "n1", "n2")), (told,))) == 1
