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
        (members(BOTH * 2), None),  # started more often than there are places: tried again
        (members(BOTH, world=4), None),
        (members(BOTH) + "step 1/90 loss 3.1\nstep 2/90 loss 3.0\n", None),
    ],
)
def test_numbers_that_come_twice(tmp_path: Path, text: str, code: str | None) -> None:
    """Only where others of the world never come."""
    (tmp_path / "slurm-7.out").write_text(text)
    assert diagnose(collect(Request((str(tmp_path),)))).code == code
