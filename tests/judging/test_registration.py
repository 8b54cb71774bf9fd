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
        (broken("Connection reset by peer", "all_reduce"), None),
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
    assert found.code != "C1" or found.confidence < 0.8
