"""Which host a rank has, by what srun said of its tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from flatline.facts import Facts
from flatline.judging.leads import spread
from flatline.model import Job, LogCite, Match, Place, ProcessExit, RecordCite, Signature, Step
from flatline.rank_hosts import COMMUNICATOR

SAID = Signature("x.timeout", "x", "root", "", "", "", ("x",), family="C2", tags=("timeout",))


def facts(
    tasks: Mapping[str, Sequence[int]], heard: Sequence[int], gpus: int | None = None
) -> Facts:
    """Two hosts, the tasks that a launcher spoke of on each, and the ranks that spoke."""
    cite = LogCite("slurm-1.out", 9, "srun: error")
    exits = [
        ProcessExit("srun", cite, Place(host=host, task=task), exit_code=1)
        for host, numbers in tasks.items()
        for task in numbers
    ]
    said = [Match(SAID, LogCite("slurm-1.out", rank, "", Place(rank=rank)), {}) for rank in heard]
    row = RecordCite("sacct.txt", "row 1", "FAILED", "JobID=1")
    job = Job("1", "train", "failed", "FAILED", row, nodes=("n1", "n2"), gpus=gpus)
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


def test_one_task_beyond_the_first_block_tells_its_rank() -> None:
    """So many tasks in blocks of a host's GPUs are ranks; of others nothing was said."""
    known = facts({"n2": [5]}, [5], gpus=8)

    assert [host_of(rank, known) for rank in (4, 5, 6)] == [None, "n2", None]


@pytest.mark.parametrize(
    ("tasks", "heard", "gpus"),
    [
        ({"n1": [0]}, [0], 8),
        ({"n2": [1]}, [1], 8),
        ({"n2": [3]}, [3], 8),
        ({"n1": [5]}, [5], 8),
        ({"n1": [4], "n2": [5]}, [4, 5], 8),
        ({"n2": [5]}, [9], 8),
        ({"n2": [5]}, [5], 7),
        ({"n2": [5]}, [5], None),
    ],
    ids=["in the first", "a launcher each", "two a host", "in turns", "one in turns", "more ranks",
         "no blocks", "size unknown"],
)  # fmt: skip
def test_tasks_in_no_block_of_ranks(
    tasks: Mapping[str, Sequence[int]], heard: Sequence[int], gpus: int | None
) -> None:
    """Their numbers are those of launchers, or laid on the hosts in another way."""
    known = facts(tasks, heard, gpus)

    assert [host_of(rank, known) for rank in range(8)] == [None] * 8


def communicator(rank: int, size: int, host: str, label: int | None = None) -> Match:
    """A line of NCCL on a rank of a communicator, behind a launcher's label or none."""
    signature = Signature(COMMUNICATOR, "nccl", "marker", "", "", "", ("x",))
    cite = LogCite("slurm-1.out", rank, "Init COMPLETE", Place(host=host, rank=label))
    return Match(signature, cite, {"comm_rank": str(rank), "comm_size": str(size), "bus": "0"})


def told(lines: Sequence[Match], hosts: int = 2) -> list[str | None]:
    nodes = tuple(f"n{number + 1}" for number in range(hosts))
    row = RecordCite("sacct.txt", "row 1", "FAILED", "JobID=1")
    job = Job("1", "train", "failed", "FAILED", row, nodes=nodes)
    known = Facts(targets=("run",), matches=lines, jobs=[job])
    return [host_of(rank, known) for rank in range(8)]


def test_the_communicator_of_all_ranks_tells() -> None:
    """Beside those of a part of them."""
    lines = [communicator(rank, 8, f"n{1 + rank // 4}") for rank in range(8)]
    parts = [communicator(rank % 2, 2, f"n{1 + rank // 4}") for rank in range(8)]

    assert told(lines + parts) == ["n1"] * 4 + ["n2"] * 4
    assert told(lines[:4]) == ["n1"] * 4 + [None] * 4


@pytest.mark.parametrize(
    "lines",
    [
        [communicator(rank, 4, "n2") for rank in range(4)],
        [communicator(rank, 4, "n2", 4 + rank) for rank in range(4)],
        [communicator(0, 4, "n2"), Match(SAID, LogCite("slurm-1.out", 9, "", Place(rank=5)), {})],
        [
            communicator(0, 4, "n2"),
            Match(SAID, LogCite("slurm-1.out", 9, ""), {"world_size": "8"}),
        ],
    ],
    ids=["of one host of two", "labelled", "a rank beyond", "a larger world"],
)
def test_a_communicator_of_some_ranks_tells_nothing(lines: Sequence[Match]) -> None:
    """It counts them anew, and is the largest where no other was made."""
    assert set(told(lines)[:4]) == {None}


@pytest.mark.parametrize(
    ("task", "world", "named"),
    [(5, 8, "n2"), (4, 8, "n2"), (3, 8, None), (5, None, None), (9, 8, None)],
    ids=["beyond the half", "at the half", "two ranks a task", "world unknown", "more tasks"],
)
def test_a_task_whose_number_only_a_rank_has(
    task: int, world: int | None, named: str | None
) -> None:
    """Each task starts as many ranks: more than half as many tasks are the ranks themselves."""
    row = RecordCite("sacct.txt", "row 1", "FAILED", "JobID=1")
    job = Job("1", "train", "failed", "FAILED", row, nodes=("n1", "n2"))
    cite = LogCite("slurm-1.out", 9, "srun: error", Place(host="n2", task=task))
    signature = Signature("c10d-world-size", "c10d", "marker", "", "", "", ("x",))
    said = Match(signature, LogCite("slurm-1.out", 1, "", Place()), {"world_size": str(world)})
    known = Facts(
        targets=("run",),
        jobs=[job],
        exits=[ProcessExit("srun", cite, cite.place, exit_code=1)],
        matches=[said] if world else [],
    )

    assert host_of(task, known) == named


def of_rows(*rows: tuple[str, ...], heard: int = 4, gpus: int | None = 4) -> Facts:
    """A job whose record has rows of these nodes, and so many ranks that spoke."""
    cite = RecordCite("sacct.txt", "row 1", "FAILED", "JobID=1")
    jobs = [Job("1", "train", "failed", "FAILED", cite, nodes=nodes, gpus=gpus) for nodes in rows]
    said = [Match(SAID, LogCite("a.out", n, "", Place(rank=n)), {}) for n in range(heard)]
    return Facts(targets=("run",), matches=said, jobs=jobs)


def test_a_job_of_one_node_has_its_ranks_there() -> None:
    assert host_of(2, of_rows(("n1",))) == "n1"
    assert of_rows(("n1",)).on_host(Place(task=0)).host == "n1"
    assert of_rows(("n1",)).on_host(Place(gpu="0")).host is None


@pytest.mark.parametrize(
    "known",
    [
        of_rows(("n1",), heard=8),
        of_rows(("n1",), ("n2",)),
        of_rows(("n1", "n2")),
        of_rows(),
    ],
    ids=["part of a larger run", "moved", "two nodes", "no record"],
)
def test_near_misses_of_one_node(known: Facts) -> None:
    assert host_of(2, known) is None


def test_a_task_is_no_rank_where_ranks_speak() -> None:
    """srun's task 1 started the ranks of the second host."""
    known = facts({"n1": [0], "n2": [1]}, (0, 2, 3, 4, 5, 6, 7), gpus=8)

    assert known.places_of(1) == ()
    assert known.places_of(2) == (Place(rank=2),)


def test_what_fails_on_a_part_of_the_hosts_is_not_everywhere() -> None:
    """Though no other rank was heard of."""
    failed = [Place(host="n2", rank=n) for n in (4, 5)]
    known = facts({}, (4, 5), gpus=8)

    assert spread(known, failed) == ("place", tuple(failed))
    both = [Place(host="n1", rank=4), Place(host="n2", rank=5)]
    assert spread(known, both)[0] == "all"
    assert spread(known, [Place(rank=4), Place(rank=5)])[0] == "all"


def of_step(tasks: int, task: int, reporter: str = "srun") -> tuple[Place, ...]:
    """Where what ended on the second of two hosts stands, by the record of its step."""
    cite = RecordCite("sacct.txt", "row 2", "FAILED", "JobID=1.0")
    step = Step("0", "x", "failed", "FAILED", cite, nodes=("n1", "n2"), tasks=tasks)
    row = RecordCite("sacct.txt", "row 1", "FAILED", "JobID=1")
    job = Job("1", "x", "failed", "FAILED", row, nodes=("n1", "n2"), gpus=8, steps=(step,))
    place = Place(host="n2", task=task)
    ended = ProcessExit(reporter, LogCite("a.out", 9, "", place), place, exit_code=1)
    return spread(Facts(targets=("run",), jobs=[job], exits=[ended]), [place])[1]


def test_a_task_is_a_rank_where_the_record_has_one_for_each_gpu() -> None:
    assert of_step(8, 6) == (Place(host="n2", rank=6, task=6),)


@pytest.mark.parametrize(
    ("tasks", "task", "reporter"),
    [(2, 1, "srun"), (8, 1, "srun"), (8, 6, "torchelastic")],
    ids=["a launcher on each host", "not where the record lays it", "an agent"],
)
def test_a_task_that_is_no_rank(tasks: int, task: int, reporter: str) -> None:
    assert [place.rank for place in of_step(tasks, task, reporter)] == [None]
