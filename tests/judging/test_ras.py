"""NCCL's status service names who is behind, in the shapes of its source."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Place, Verdict

STEPS = "".join(
    f"2026-03-02 09:0{n // 6}:{n % 6}0,000 step {n * 10}/5000 loss {8 - n * 0.01:.3f}\n"
    for n in range(24)
)
TIMED_OUT = (
    "[rank0]:[E302 09:14:02.470417210 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught"
    " collective operation timeout: WorkNCCL(SeqNum=841, OpType=ALLREDUCE, NumelIn=8388608,"
    " NumelOut=8388608, Timeout(ms)=600000) ran for 600003 milliseconds before timing out.\n"
)
HEAD = """\
NCCL version 2.26.2 compiled with CUDA 12.8
CUDA runtime version 12080, driver version 12080

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          8            1         16       16

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         8        16        16   RUNNING  {}

Errors
======

"""
ALONE = (
    "Warnings\n========\n\n#0-0 (27a079b828ff1a75) MISMATCH\n"
    "  Communicator ranks have different collective operation counts\n"
    "  15 ranks have launched up to operation {0}\n"
    "  Rank 11 has launched up to operation {1} -- GPU 3 managed by process 483 on node 10.1.0.2"
    "\n\n"
)
SEVERAL = (
    "Warnings\n========\n\n#0-0 (27a079b828ff1a75) MISMATCH\n"
    "  Communicator ranks have different collective operation counts\n"
    "  {2} ranks have launched up to operation {0}\n"
    "  {3} ranks have launched up to operation {1}\n"
    + "".join(
        f"  Rank {n} -- GPU {n} managed by process 48{n} on node 10.1.0.1\n" for n in range(3)
    )
    + "\n"
)
DEAD = (
    "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n"
    "  Process 3487 on node 10.1.0.2 managing GPU 5\n\nWarnings\n========\n\n"
)


def told(folder: Path, answers: str, log: str = STEPS + TIMED_OUT) -> Verdict:
    (folder / "train.log").write_text(log)
    (folder / "ncclras.txt").write_text(answers)
    return diagnose(collect(Request((str(folder),))))


BEHIND = HEAD.format("MISMATCH") + ALONE.format(6650, 6649)


@pytest.mark.parametrize(
    ("answers", "places", "sure"),
    [
        (BEHIND, (Place(host="10.1.0.2", gpu="3", rank=11),), False),
        (BEHIND * 2, (Place(host="10.1.0.2", gpu="3", rank=11),), True),
        (
            HEAD.format("MISMATCH") + SEVERAL.format(6650, 6649, 13, 3),
            tuple(Place(host="10.1.0.1", gpu=str(n), rank=n) for n in range(3)),
            False,
        ),
        (HEAD.format("MISMATCH") + SEVERAL.format(6650, 6649, 10, 6), (), True),
        (HEAD.format("OK") + DEAD, (Place(host="10.1.0.2", gpu="5"),), True),
    ],
    ids=["one", "twice alike", "three", "six, of which three are listed", "dead"],
)
def test_who_is_behind_is_waited_for(
    tmp_path: Path, answers: str, places: tuple[Place, ...], sure: bool
) -> None:
    """Once it may have been asked at another moment."""
    verdict = told(tmp_path, answers)

    assert (verdict.code, verdict.culprits) == ("C2", places)
    assert (verdict.confidence >= 0.8) is sure


@pytest.mark.parametrize(
    ("answers", "code"),
    [(BEHIND, None), (BEHIND * 2, "C2"), (BEHIND + BEHIND.replace("665", "671"), None)],
    ids=["once", "twice alike", "it moves"],
)
def test_a_run_that_nothing_else_tells_of(tmp_path: Path, answers: str, code: str | None) -> None:
    """Of a run at work some rank is always behind; the counts move."""
    verdict = told(tmp_path, answers, "started\n")

    assert verdict.code == code
    assert verdict.confidence < 0.8


def test_a_copy_of_an_answer_is_no_second_look(tmp_path: Path) -> None:
    (tmp_path / "copied").mkdir()
    (tmp_path / "copied" / "ncclras.txt").write_text(BEHIND)

    assert told(tmp_path, BEHIND, "started\n").code is None


def test_two_looks_in_files_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "ncclras-1.txt").write_text(BEHIND.replace("(0.00s)", "(0.01s)"))

    assert told(tmp_path, BEHIND, "started\n").code == "C2"
