"""A task that stopped before the launch which all others came to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from families.fleet import T0, sample
from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

NODES, STUCK = 8, 5
BEGUN = "[{t}] node prologue done on q{n}, sourcing the environment"
LAUNCH = "[{t}] exec torchrun --nnodes 8 --nproc-per-node 4 --rdzv-endpoint q0:29500 train.py"
WARNS = "W1114 22:1{n}:30.{n}11 77{n}1 torch/distributed/run.py:792] OMP_NUM_THREADS is 1"
ROW = (
    "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
    "31|big|{state}|0:0|2023-11-14T22:13:20|{end}|q[0-7]\n"
)
ENDED = (
    "slurmstepd: error: *** STEP 31.0 ON q0 CANCELLED AT 2023-11-14T22:33:00 ***\n"
    "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
)


def said(task: int) -> list[str]:
    return [BEGUN] if task == STUCK else [BEGUN, LAUNCH, WARNS]


def verdict(
    folder: Path,
    lines: Callable[[int], list[str]] = said,
    *,
    end: str = "2023-11-14T22:33:20",
    used: float = 0.0,
    state: str = "CANCELLED by 7",
    more: str = "",
) -> Verdict:
    rows = [
        f"{n}: " + line.format(n=n, t=f"22:14:{n:02d}")
        for at in range(4)
        for n in (3, 1, 5, 0, 2, 7, 4, 6)
        for line in lines(n)[at : at + 1]
    ]
    (folder / "slurm-31.out").write_text("\n".join(rows) + "\n" + more + ENDED)
    (folder / "sacct.txt").write_text(ROW.format(state=state, end=end))
    readings = (
        sample("DCGM_FI_DEV_GPU_UTIL", f'gpu="{gpu}",Hostname="q{n}"', used * (at > 600), at)
        for n in range(NODES)
        for gpu in range(4)
        for at in range(0, 1200, 30)
    )
    (folder / "metrics.prom").write_text("\n".join(readings) + "\n")
    assert T0 == 1_700_000_000  # 22:13:20, as the record says
    return diagnose(collect(Request((str(folder),))))


def test_one_task_stopped_before_the_launch(tmp_path: Path) -> None:
    """Nothing failed, and nobody says that it waits."""
    found = verdict(tmp_path)

    assert (found.code, [place.host for place in found.culprits]) == ("C1", ["q5"])
    assert found.confidence < 0.8


def in_own_logs(folder: Path, lines: Callable[[int], list[str]]) -> Verdict:
    """Each node's task with a log of its own, and the batch script's beside them."""
    for n in range(NODES):
        text = "".join(line.format(n=n, t=f"22:14:{n:02d}") + "\n" for line in lines(n))
        (folder / f"node-q{n}.log").write_text(text)
    return verdict(folder, lambda n: [])


def test_one_whose_own_log_ends_before_the_launch(tmp_path: Path) -> None:
    found = in_own_logs(tmp_path, said)

    assert (found.code, [str(place) for place in found.culprits]) == ("C1", ["q5"])


@pytest.mark.parametrize(
    "lines",
    [
        lambda n: [BEGUN] if n % 2 else [BEGUN, LAUNCH, WARNS],
        lambda n: ["{t} mounting"] if n == STUCK else [BEGUN, LAUNCH, WARNS],
        lambda n: [BEGUN] if n == 0 else [BEGUN, LAUNCH, WARNS],
        lambda n: [BEGUN, LAUNCH, WARNS],
    ],
    ids=["half of them", "it does something else", "the first", "none"],
)
def test_own_logs_that_tell_of_nobody(tmp_path: Path, lines: Callable[[int], list[str]]) -> None:
    assert in_own_logs(tmp_path, lines).culprits == ()


def test_its_launcher_says_nothing_as_the_others_do(tmp_path: Path) -> None:
    """It came to the same command, and stopped as that began."""
    found = verdict(tmp_path, lambda n: [BEGUN, LAUNCH] if n == STUCK else [BEGUN, LAUNCH, WARNS])

    assert (found.code, [place.host for place in found.culprits]) == ("C1", ["q5"])


@pytest.mark.parametrize(
    "lines",
    [
        lambda n: [BEGUN, LAUNCH],
        lambda n: [BEGUN] if n else [BEGUN, LAUNCH],
        lambda n: [BEGUN] if n in (2, 5, 6) else [BEGUN, LAUNCH],
        lambda n: [BEGUN] if n == 0 else [BEGUN, LAUNCH],
        lambda n: [BEGUN, "conda: solving"] if n == 5 else [BEGUN, LAUNCH],
        lambda n: [BEGUN, *([LAUNCH] if n != 5 else []), *([WARNS] if n != 6 else [])],
        lambda n: [BEGUN] if n == 5 else [BEGUN, "[{t}] {n} cores of this node are pinned"],
        lambda n: [] if n == 5 else [BEGUN, LAUNCH],
        lambda n: [BEGUN] if n == 5 else [BEGUN, LAUNCH, "q{n}:1:1 [0] NCCL INFO Bootstrap"],
    ],
    ids=["all came", "one alone prints it", "too many", "the first has other duties",
         "on another way", "each lacks something else", "no launch", "nothing heard of it",
         "the others had met"],
)  # fmt: skip
def test_tasks_of_which_none_is_left_behind(
    tmp_path: Path, lines: Callable[[int], list[str]]
) -> None:
    assert verdict(tmp_path, lines).code != "C1"


def test_what_shows_that_nobody_waited_for_long(tmp_path: Path) -> None:
    """The GPUs worked, the job was short, it ended well, or steps were made."""
    steps = "".join(f"0: step {n}/900 loss {9 / n:.3f}\n" for n in range(1, 40))
    others: tuple[dict[str, object], ...] = (
        {"used": 88.0},
        {"end": "2023-11-14T22:16:20"},
        {"state": "COMPLETED"},
        {"more": steps},
    )
    for n, changed in enumerate(others):
        folder = tmp_path / str(n)
        folder.mkdir()
        assert verdict(folder, **changed).code != "C1"  # type: ignore[arg-type]
