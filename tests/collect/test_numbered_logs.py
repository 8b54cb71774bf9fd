"""Undated logs whose names alone say which of them came first."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

NONE = (
    "WARNING: could not find the metadata file /mnt/out_b/latest_checkpointed_iteration.txt\n"
    "    will not load any checkpoints and will start from random\n"
)
SAVED = "  successfully saved checkpoint at iteration    7600 to /mnt/out-b\n"


def steps(first: int, last: int, loss: float) -> str:
    return "".join(
        f" iteration {n:8d}/   40000 | consumed samples: {n * 64:12d} | elapsed time per iteration"
        f" (ms): 812.0 | learning rate: 2.0E-04 | global batch size:    64 | lm loss:"
        f" {loss - n / 9e4:.6E} | grad norm: 0.400 |\n"
        for n in range(first, last + 1, 20)
    )


@pytest.mark.parametrize(
    ("names", "first", "attempts"),
    [
        (("fit.log", "fit.2.log"), 7000, 2),
        (("part1.txt", "part2.txt"), 7000, 2),
        (("fit.2.log", "fit.log"), 7000, 1),
        (("fit.log", "other.2.log"), 7000, 1),
        (("fit.log", "fit.log.1"), 7000, 1),
        (("fit.log", "fit.2.log"), 520, 1),
    ],
    ids=["the second", "parts", "the other way", "of two names", "turned over", "it went on"],
)
def test_which_came_first(
    tmp_path: Path, names: tuple[str, str], first: int, attempts: int
) -> None:
    (tmp_path / names[0]).write_text(steps(first, 7600, 3.0) + SAVED)
    (tmp_path / names[1]).write_text(NONE + steps(20, 500, 10.8))
    facts = collect(Request((str(tmp_path),)))

    assert len(facts.attempts) == attempts
    found = diagnose(facts)
    assert (found.code == "E2") == (attempts == 2)
    if attempts == 2:
        assert found.confidence < 0.8
