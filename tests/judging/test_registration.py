"""Ranks that have the same number wait for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

BOTH = (0, 1, 2, 3, 0, 1, 2, 3)
COMPLETE = "All distributed processes registered. Starting with 8 processes\n"


def members(ranks: tuple[int, ...], world: int = 8) -> str:
    return "GPU available: True, used: True\n" + "".join(
        f"{n // 4}: Initializing distributed: GLOBAL_RANK: {rank}, MEMBER: {rank + 1}/{world}\n"
        for n, rank in enumerate(ranks)
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (members(BOTH), "C1"),
        (members((0, 0)), "C1"),
        (members(tuple(range(8))), None),
        (members((0, 1, 2, 3)), None),  # the log may end there
        (members(BOTH) + COMPLETE, None),  # one Trainer after the other, seen from one node
        (members(BOTH) + COMPLETE.replace("distributed", "DDP").replace("with", "ddp with"), None),
        (members(BOTH) + "Training completed\n", None),
        (members(BOTH * 2), None),  # started more often than there are places: tried again
        (members(BOTH, world=4), None),
        (members(BOTH) + "step 1/90 loss 3.1\nstep 2/90 loss 3.0\n", None),
    ],
)
def test_numbers_that_come_twice(tmp_path: Path, text: str, code: str | None) -> None:
    """Only where others of the world never come."""
    (tmp_path / "slurm-7.out").write_text(text)
    assert diagnose(collect(Request((str(tmp_path),)))).code == code


def broken(said: str, function: str = "init_process_group") -> str:
    return (
        "Traceback (most recent call last):\n"
        '  File "/home/u/train.py", line 9, in <module>\n    main()\n'
        f'  File "/venv/lib/torch/distributed/distributed_c10d.py", line 318, in {function}\n'
        f"    store.add(store_key, 1)\nRuntimeError: {said}\n"
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (broken("Connection reset by peer"), "C1"),
        (broken("[13] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via"
                " c10d key-value store by key '0', but store->get('0') got error: Connection reset"
                " by peer", "barrier"), "C1"),
        (broken("Connection reset by peer", "all_reduce"), "C5"),
        (broken("Connection reset by peer") + "trying again\nTraining completed\n", None),
        ("step 1/90 loss 3.1\nstep 2/90 loss 3.0\n" + broken("Connection reset by peer"), "C2"),
        ("[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
         + broken("Connection reset by peer"), "B1"),
    ],
)  # fmt: skip
def test_a_rank_that_lost_the_store_while_the_group_was_made(
    tmp_path: Path, text: str, code: str | None
) -> None:
    """Only where nothing else is heard of, and never surely."""
    (tmp_path / "train.log").write_text(text)
    found = diagnose(collect(Request((str(tmp_path),))))
    assert found.code == code
    assert found.code not in ("C1", "C5") or found.confidence < 0.8


HALF = members((0, 2, 1, 3))
ENDS = {
    "limit": "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-02T09:00:00 DUE TO TIME"
    " LIMIT ***\n",
    "cancelled": "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-02T09:00:00 ***\n",
}
LISTED = "  JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
ROW = "51120934       g8a   fit.sh    anna  R      {}      2 g8a-2-[5-6]\n"


def dated(text: str, minutes: int) -> str:
    """The same lines at ten o'clock, and another some minutes later."""
    lines = "".join(f"2026-03-02 10:00:0{n} {one}\n" for n, one in enumerate(text.splitlines()))
    return lines + f"2026-03-02 10:{minutes:02d}:00 still waiting\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (HALF + ENDS["limit"], "C1"),
        (HALF + ENDS["cancelled"], "C1"),
        (LISTED + ROW.format("41:07") + HALF, "C1"),
        (dated(HALF, 25), "C1"),
        (HALF, None),  # the log may have been cut off
        (LISTED + ROW.format("0:41") + HALF, None),
        (dated(HALF, 2), None),
        (members(tuple(range(8))) + ENDS["cancelled"], None),  # all came
        (members((4, 5, 6, 7)) + ENDS["cancelled"], None),  # of the other node: rank 0 would tell
        (members((0,)) + ENDS["cancelled"], None),  # each rank may have a log of its own
        (HALF + COMPLETE + ENDS["cancelled"], None),
        (HALF + "step 1/90 loss 3.1\nstep 2/90 loss 3.0\n" + ENDS["cancelled"], None),
        (HALF + "Training completed\n" + LISTED + ROW.format("41:07"), None),
    ],
)  # fmt: skip
def test_ranks_that_never_come(tmp_path: Path, text: str, code: str | None) -> None:
    """They are named where something shows that the others waited, and never surely."""
    (tmp_path / "slurm-7.out").write_text(text)
    found = diagnose(collect(Request((str(tmp_path),))))

    assert found.code == code
    if code is not None:
        assert "ranks 4-7 of 8" in found.headline
        assert [place.rank for place in found.culprits] == [4, 5, 6, 7]
        assert found.confidence < 0.8


def test_a_timeout_says_that_ranks_are_missing_and_their_peers_say_which(tmp_path: Path) -> None:
    """The line that gives up counts them; those that came are known by their own."""
    (tmp_path / "slurm-7.out").write_text(
        HALF + "torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for"
        " clients. 4/8 clients joined.\n"
    )
    found = diagnose(collect(Request((str(tmp_path),))))

    assert found.code == "C1"
    assert any("Ranks 4-7 never" in one.text for one in found.shows)


def test_an_exception_goes_before_ranks_that_never_came(tmp_path: Path) -> None:
    """Of the run, whatever its other ranks did."""
    text = 'Traceback (most recent call last):\n  File "/a.py", line 1, in <module>\n'
    (tmp_path / "slurm-7.out").write_text(
        HALF + text + "ModuleNotFoundError: No module named 'apex'\n" + ENDS["cancelled"]
    )

    assert diagnose(collect(Request((str(tmp_path),)))).code == "A1"
