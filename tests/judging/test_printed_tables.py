"""Times of all ranks in one line, in plain logs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

LATE = 3


def told(folder: Path, table: Callable[[int], str]) -> Verdict:
    """A run of eight ranks at a steady pace whose log holds such a line every ten steps."""
    lines = []
    for step in range(1, 201):
        at = f"2026-03-02 10:{step // 60:02d}:{step % 60:02d}"
        lines.append(f"{at} step {step}/400 loss {3.0 - step / 200:.4f} step_time 1.00s")
        if step % 10 == 0:
            lines.append(f"{at} {table(step)}")
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    return diagnose(collect(Request((str(folder),))))


def row(values: list[float]) -> str:
    """Side by side, as loops print them."""
    return " ".join(f"r{rank}={value:.3f}" for rank, value in enumerate(values))


def grouped(values: list[float], head: str = "timers (s/step, last 10)") -> str:
    """The ranks behind one another, each with its parts."""
    each = (f"r{rank} fwdbwd 0.300 allreduce {value:.3f}" for rank, value in enumerate(values))
    return f"{head}: {' | '.join(each)}"


def waits(step: int, late: int = LATE) -> list[float]:
    """Seconds: the last rank waits least, the others alike but for a hundredth."""
    return [0.05 if rank == late else 0.6 + (step + rank) % 3 / 100 for rank in range(8)]


@pytest.mark.parametrize(
    "table",
    [
        lambda step: f"per-rank wait in allreduce [s]: {row(waits(step))}",
        lambda step: f"per-rank compute (s): {row([0.95 - one for one in waits(step)])}",
        lambda step: f"per-rank allreduce_wait [ms]: {row([1e3 * one for one in waits(step)])}",
        lambda step: grouped(waits(step)),
    ],
    ids=["waits", "work", "milliseconds", "by rank"],
)
def test_the_rank_that_the_others_wait_for(tmp_path: Path, table: Callable[[int], str]) -> None:
    """By the shortest wait, or the longest work; never surely."""
    verdict = told(tmp_path, table)

    assert verdict.code == "D3"
    assert [place.rank for place in verdict.culprits] == [LATE]
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    "table",
    [
        lambda step: f"per-rank wait in allreduce: {row(waits(step))}",
        lambda step: grouped(waits(step), "timers"),
        lambda step: grouped(waits(step), "memory (GiB)"),
        lambda step: f"per-rank memory in sync [GiB]: {row(waits(step))}",
        lambda step: f"per-rank grad norm sync [s]: {row(waits(step))}",
        lambda step: f"per-rank wait in allreduce [s]: {row(waits(step, step // 10 % 8))}",
        lambda step: f"per-rank checkpoint wait [s]: {row(waits(step))}",
        lambda step: f"per-rank wait in allreduce [s]: {row([one / 20 for one in waits(step)])}",
        lambda step: f"per-rank wait in allreduce [s]: {row([9 * one for one in waits(step)])}",
        lambda step: (
            f"per-rank wait in allreduce [s]: {row(waits(step))}"
            if step <= 30
            else "per-rank wait in allreduce [s]: none"
        ),
    ],
    ids=[
        "no unit",
        "by rank, no unit",
        "by rank, memory",
        "memory",
        "a norm",
        "another one each time",
        "a save",
        "a fortieth of a step",
        "longer than a step",
        "three lines",
    ],
)
def test_what_names_no_rank(tmp_path: Path, table: Callable[[int], str]) -> None:
    """Tables of the same shape that tell of no rank that the others wait for."""
    assert told(tmp_path, table).code != "D3"
