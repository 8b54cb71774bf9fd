"""Which host a rank has, by what srun said of its tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from flatline.facts import Facts
from flatline.model import Job, LogCite, Match, Place, ProcessExit, RecordCite, Signature

SAID = Signature("x.timeout", "x", "root", "", "", "", ("x",), family="C2", tags=("timeout",))


def facts(tasks: Mapping[str, Sequence[int]], heard: Sequence[int]) -> Facts:
    """Two hosts, the tasks that a launcher spoke of on each, and the ranks that spoke."""
    cite = LogCite("slurm-1.out", 9, "srun: error")
    exits = [
        ProcessExit("srun", cite, Place(host=host, task=task), exit_code=1)
        for host, numbers in tasks.items()
        for task in numbers
    ]
    said = [Match(SAID, LogCite("slurm-1.out", rank, "", Place(rank=rank)), {}) for rank in heard]
    row = RecordCite("sacct.txt", "row 1", "FAILED", "JobID=1")
    job = Job("1", "train", "failed", "FAILED", row, nodes=("n1", "n2"))
    return Facts(targets=("run",), exits=exits, matches=said, jobs=[job])


def host_of(rank: int, known: Facts) -> str | None:
    return known.on_host(Place(rank=rank)).host


def test_tasks_are_ranks_where_there_are_as_many() -> None:
    """As many on each host."""
    known = facts({"n1": range(4), "n2": range(4, 8)}, range(8))

    assert [host_of(rank, known) for rank in (0, 3, 4, 7)] == ["n1", "n1", "n2", "n2"]


def test_the_one_srun_did_not_speak_of_is_where_one_is_missing() -> None:
    """It did not print its rank either."""
    assert host_of(6, facts({"n1": range(4), "n2": (4, 5, 7)}, (0, 1, 2, 3, 4, 5, 7))) == "n2"


@pytest.mark.parametrize(
    ("tasks", "heard"),
    [
        ({"n1": [0], "n2": [1]}, range(8)),
        ({"n1": [0], "n2": [1]}, range(2)),
        ({"n1": range(4), "n2": range(4, 8)}, range(16)),
        ({"n1": range(4), "n2": range(4, 8)}, (0, 4)),
        ({"n1": (0, 1, 2), "n2": (4, 5, 7)}, (0, 1, 2, 4, 5, 7)),
        ({"n1": range(4), "n2": (3, 5, 6, 7)}, range(8)),
        ({"n1": range(4)}, range(4)),
    ],
    ids=[
        "torchrun",
        "one each",
        "more ranks",
        "few spoke",
        "two hosts short",
        "twice",
        "one host",
    ],
)
def test_what_lays_no_rank_on_a_host(tasks: Mapping[str, Sequence[int]], heard: range) -> None:
    """A launcher's task may start many ranks, and what is missing may be anywhere."""
    known = facts(tasks, heard)

    assert [host_of(rank, known) for rank in range(8)] == [None] * 8
