"""icefall's lines say which rank of how many wrote them."""

from __future__ import annotations

import pytest

from flatline.logs.labels import Labels

HEAD = "2026-03-10 11:27:40,335 INFO [train.py:1034] "


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        (HEAD + "(13/16) Epoch 1, batch 1250, loss[loss=0.53]", 13),
        (HEAD + "(0/4) Device: cuda:0", 0),
        (HEAD + "(16/16) Epoch 1", None),
        (HEAD + "Epoch (3/10), batch 1", None),
        ("2026-03-10 11:27:40 INFO (3/10) files read", None),
    ],
)
def test_rank_and_world_behind_the_place_in_the_program(line: str, rank: int | None) -> None:
    assert Labels().split(line).place.rank == rank
