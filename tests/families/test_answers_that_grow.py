"""D6 where a policy answers at greater length by and by, told below the bar of each step (TRL)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 2, 3, 4, tzinfo=UTC)
STEPS, PLAN = 160, 800


def judged(
    folder: Path, length: Callable[[int], float], took_s: Callable[[int], float]
) -> Verdict:
    dice, elapsed = Random(6), 0.0
    head = f"[INFO|trainer.py:2414] {BEGAN:%Y-%m-%d %H:%M:%S},000 >> "
    lines = [
        f"{head}***** Running training *****\n",
        f"{head}  Total optimization steps = {PLAN}\n",
    ]
    for n in range(1, STEPS + 1):
        elapsed += took_s(n) * dice.uniform(0.99, 1.01)
        minutes, seconds = divmod(int(elapsed), 60)
        hours, minutes = divmod(minutes, 60)
        said = f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes:02d}:{seconds:02d}"
        lines += (
            f"  {n * 100 // PLAN}%|#    | {n}/{PLAN} [{said}<9:59:59, {took_s(n):.2f}s/it]\n",
            f"{{'loss': {0.02 + dice.uniform(0, 0.01):.4f}, 'grad_norm': 0.3,"
            " 'learning_rate': 1e-06,"
            f" 'completions/mean_length': {length(n) * dice.uniform(0.99, 1.01):.2f},"
            f" 'reward': {0.2 + n / 900:.4f}, 'epoch': {n / PLAN:.2f}}}\n",
        )  # fmt: skip
    (folder / "slurm-71.out").write_text("".join(lines))
    end = BEGAN + timedelta(seconds=elapsed)
    (folder / "sacct.psv").write_text(
        "JobID|State|ExitCode|Start|End|NNodes|NodeList\n"
        f"71|RUNNING|0:0|{BEGAN - timedelta(seconds=90):%Y-%m-%dT%H:%M:%S}|Unknown|1|nd4\n"
    )
    (folder / "squeue.txt").write_text(f"{end:%Y-%m-%dT%H:%M:%S}\n")
    return diagnose(collect(Request((str(folder),))))


def ramp(n: int, first: int = 1, last: int = STEPS) -> float:
    return 600 + 2400 * min(max((n - first) / (last - first), 0.0), 1.0)


def curved(n: int) -> float:
    """Up, level, and up again: no curve that a host's leak takes."""
    return ramp(n, 20, 45) * (1.0 if n < 90 else 1.0 + (n - 90) / 40 * 0.5)


def uneven(n: int) -> float:
    """Longer from the first step on, and each time by another amount."""
    return ramp(n) * Random(n).uniform(0.88, 1.12)


def dearer(length: float) -> float:
    return 8 + length / 50


@pytest.mark.parametrize("length", [lambda n: ramp(n, 60, 110), curved, uneven])
def test_steps_take_as_long_as_their_answers(
    tmp_path: Path, length: Callable[[int], float]
) -> None:
    verdict = judged(tmp_path, length, lambda n: dearer(length(n)))

    assert (verdict.code, verdict.fault_class) == ("D6", "size")


@pytest.mark.parametrize(
    ("length", "took_s"),
    [
        (ramp, lambda n: dearer(ramp(n, 70, 71))),
        (uneven, lambda n: dearer(ramp(n))),
        (lambda n: ramp(n, 20, 100), lambda n: dearer(ramp(n, 70, 150))),
        (lambda _: 600.0, lambda n: dearer(ramp(n, 60, 110))),
        (lambda n: 3600 - ramp(n, 60, 110), lambda n: dearer(ramp(n, 60, 110))),
    ],
    ids=[
        "they grow, it leaps",
        "they are uneven, it is not",
        "later",
        "as long as ever",
        "shorter",
    ],
)
def test_answers_that_do_not_tell(
    tmp_path: Path, length: Callable[[int], float], took_s: Callable[[int], float]
) -> None:
    assert judged(tmp_path, length, took_s).code != "D6"
