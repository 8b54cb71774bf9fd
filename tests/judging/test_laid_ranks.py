"""Which host has which ranks, by how launchers lay them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from flatline.collect.catalogue import confirming
from flatline.laid_ranks import laid
from flatline.model import Job, LogCite, Match, Place, RecordCite, Step
from flatline.signatures import load

HOSTS = ("n1", "n2")
ROW = RecordCite("sacct.txt", "row 1", "FAILED", "JobID=1")
JOB = Job("1", "train", "failed", "FAILED", ROW, nodes=HOSTS, gpus=8)
LABELLED = [Place(rank=rank, task=rank) for rank in range(8)]
WHOLE = dict.fromkeys(range(4), "n1") | dict.fromkeys(range(4, 8), "n2")
MPIRUN = "+ mpirun -np 8 {}-x NCCL_DEBUG=INFO python train.py"


def hosts_of(
    lines: Iterable[str] = (),
    places: Sequence[Place] = (),
    job: Job = JOB,
    world: int | None = None,
) -> dict[int | None, str | None]:
    matches = []
    for number, line in enumerate(lines):
        for signature in load():
            if signature.origin != "placement":
                continue
            if (found := confirming(signature.pattern).search(line)) is not None:
                groups = {key: said for key, said in found.groupdict().items() if said is not None}
                matches.append(Match(signature, LogCite("job.out", number + 1, line), groups))
    return {p.rank: p.host for p in laid(places, job.nodes, matches, [job], world)}


def test_tasks_that_are_ranks_fill_a_node_first() -> None:
    """srun labelled the last of them with its own number."""
    assert hosts_of(places=LABELLED) == WHOLE


@pytest.mark.parametrize(
    "places",
    [
        LABELLED[:6],
        [Place(rank=4 * task, task=task) for task in range(2)],
        [*LABELLED, Place(rank=3, task=1)],
        [Place(task=task) for task in range(8)],
        [*LABELLED, Place(rank=8, task=8)],
        [*LABELLED, Place(host="n2", task=1)],
        [*LABELLED, Place(host="n1.site.org", rank=5)],
    ],
    ids=["not the last", "a launcher each", "other ranks", "no ranks", "more", "in turns",
         "elsewhere"],
)  # fmt: skip
def test_labels_that_lay_no_rank(places: Sequence[Place]) -> None:
    """Tasks may start several ranks, be fewer than GPUs, or stand in another order."""
    assert hosts_of(places=places) == {}


def step(number: str, tasks: int | None, minutes: int | None, on: Sequence[str] = HOSTS) -> Step:
    """One that ran for so long, or still does."""
    begin = datetime(2026, 3, 1, tzinfo=UTC)
    end = None if minutes is None else begin + timedelta(minutes=minutes)
    return Step(number, "python", "failed", "FAILED", ROW, started_at=begin, ended_at=end,
                nodes=tuple(on), tasks=tasks)  # fmt: skip


@pytest.mark.parametrize(
    "steps",
    [
        (step("batch", 1, 60, HOSTS[:1]), step("extern", 2, 60), step("0", 8, 59)),
        (step("0", 2, 1), step("1", 8, 30)),
        (step("0", 2, 90), step("1", 8, None)),
    ],
    ids=["alone", "behind a check of the nodes", "still going"],
)
def test_a_step_of_a_task_for_each_gpu(steps: Sequence[Step]) -> None:
    """Its tasks are the ranks, whether or not their lines are labelled."""
    assert hosts_of(places=[Place(rank=6)], job=replace(JOB, steps=tuple(steps))) == WHOLE


@pytest.mark.parametrize(
    ("job", "places"),
    [
        (replace(JOB, steps=(step("0", 2, 60),)), []),
        (replace(JOB, steps=(step("0", 8, 1), step("1", 2, 60))), []),
        (replace(JOB, steps=(step("0", 8, 60, HOSTS[:1]),)), []),
        (replace(JOB, steps=(step("extern", 8, 60),)), []),
        (replace(JOB, gpus=2, steps=(step("0", 2, 60),)), []),
        (replace(JOB, steps=(step("0", 8, 60),)), [Place(host="n2", rank=1)]),
        (replace(JOB, steps=(step("0", 8, 60),), submit_line="sbatch -m cyclic job.sh"), []),
        (replace(JOB, steps=(step("0", 8, 60),)), [Place(rank=15)]),
    ],
    ids=["a launcher each", "the longer counts", "one node", "no step of a program",
         "one GPU a node", "elsewhere", "cyclic", "more ranks"],
)  # fmt: skip
def test_a_step_that_lays_no_rank(job: Job, places: Sequence[Place]) -> None:
    assert hosts_of(places=places, job=job) == {}


@pytest.mark.parametrize(
    "job",
    [
        replace(JOB, gpus=None),
        replace(JOB, gpus=16),
        replace(JOB, nodes=("n1", "n2", "n3")),
        replace(JOB, tasks=2),
        replace(JOB, devices=(("n1", ("0", "1")), ("n2", tuple("012345")))),
        replace(JOB, submit_line="sbatch --distribution=cyclic job.sh"),
        replace(JOB, scheduler="kubernetes"),
    ],
    ids=["unknown", "more GPUs", "no blocks", "other tasks", "uneven", "cyclic", "pods"],
)
def test_a_record_that_does_not_say_how_many_a_node_takes(job: Job) -> None:
    assert hosts_of(places=LABELLED, job=job) == {}


@pytest.mark.parametrize(
    "line",
    [
        "SLURM_DISTRIBUTION=cyclic",
        "+ srun -l -n 8 -m plane=2 python train.py",
        "#SBATCH --distribution=arbitrary",
    ],
)
def test_srun_that_was_told_otherwise(line: str) -> None:
    assert hosts_of([line], LABELLED) == {}
    assert hosts_of(["+ srun -l -m block:cyclic python train.py"], LABELLED) == WHOLE


@pytest.mark.parametrize(
    "options",
    [
        "",
        "--bind-to none --map-by slot ",
        "--map-by ppr:4:node ",
        "-npernode 4 ",
        "-H n1:4,n2:4 -mca btl_tcp_if_include eno1 ",
    ],
)
def test_mpirun_fills_a_node_first(options: str) -> None:
    """One rank told of is enough."""
    assert hosts_of([MPIRUN.format(options)], [Place(rank=0)]) == WHOLE


@pytest.mark.parametrize(
    "line",
    [
        MPIRUN.format("--map-by node "),
        MPIRUN.format("-bynode "),
        MPIRUN.format("--map-by=ppr:2:node "),
        MPIRUN.format("--rank-by node "),
        MPIRUN.format("-ppn 1 "),
        MPIRUN.format("--rankfile ranks.txt "),
        MPIRUN.format("--hostfile hosts.txt "),
        MPIRUN.format("-H n2:4,n1:4 "),
        MPIRUN.format("-mca rmaps_base_mapping_policy node "),
        MPIRUN + " : -np 1 python serve.py",
        "mpirun -np 8 -x PATH \\",
        MPIRUN.replace("8", "4"),
        "+ mpirun python train.py",
        "mpirun noticed that process rank 5 with PID 81 on node n2 exited on signal 9 (Killed).",
    ],
)
def test_mpirun_that_lays_them_otherwise(line: str) -> None:
    """By turns, by a file, in another order, or in another number."""
    assert hosts_of([line.format("")], [Place(rank=0)]) == {}


def test_what_speaks_against_a_command() -> None:
    """Another one, a stated size, and a rank that is heard of elsewhere."""
    plain = MPIRUN.format("")
    assert hosts_of([plain, "+ mpirun -np 2 python check.py"]) == {}
    assert hosts_of([plain], world=16) == {}
    assert hosts_of([plain], [Place(host="n2", rank=1)]) == {}
    assert hosts_of([plain], [Place(host="n2", rank=5)]) == WHOLE
