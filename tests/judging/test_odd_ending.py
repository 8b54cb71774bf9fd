"""The one rank whose log ends otherwise, as a run stands still."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.judging.odd_ending import odd_ending

USUAL = "step 1218: backward, reduce_scatter(grads) seq=10441"
OTHER = "step 1219: entering all_gather(num_tokens) seq=10442"


def odd(folder: Path, ends: dict[int, str]) -> int | None:
    for rank, text in ends.items():
        (folder / f"rank_{rank}.log").write_text(f"step 1217 loss 2.4\n{text}\n")
    found = odd_ending(collect(Request((str(folder),))))
    return None if found is None else found.places[0].rank


def test_the_one_that_went_another_way(tmp_path: Path) -> None:
    """The numbers of ranks and steps do not count."""
    ends = {rank: f"[r{rank:02d}] {USUAL}" for rank in range(8)}

    assert odd(tmp_path, ends | {3: f"[r03] {OTHER}"}) == 3


@pytest.mark.parametrize(
    "others", [{0: OTHER}, {3: OTHER, 4: OTHER}, {3: OTHER, 4: "warning: slow disk"}, {}]
)
def test_near_misses(tmp_path: Path, others: dict[int, str]) -> None:
    """Rank 0 says more than others; of several, who is odd is open."""
    assert odd(tmp_path, dict.fromkeys(range(8), USUAL) | others) is None
