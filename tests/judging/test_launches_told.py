"""D2 of launches that wait for one another, by what the log says that the same took without."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

SET = "+ export CUDA_LAUNCH_BLOCKING=1\n"
TOLD = "previous run without it: 240 ms/step\n"


@pytest.mark.parametrize(
    ("head", "step_ms", "found"),
    [
        (SET + TOLD, 610, True),
        (SET + TOLD, 245, False),
        (TOLD, 610, False),
        (SET + "warm-up done: 240 ms/step\n", 610, False),
        (SET + "without compression: 240 ms/batch saved\n", 610, False),
    ],
    ids=["far slower", "as fast", "it is not set", "of this run", "of something else"],
)
def test_by_the_logs_own_words(tmp_path: Path, head: str, step_ms: int, found: bool) -> None:
    steps = "".join(f"step {n} loss {6 - n / 90:.3f} {step_ms + n % 7} ms/step\n"
                    for n in range(10, 400, 10))  # fmt: skip
    (tmp_path / "train.log").write_text(head + steps)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.fault_class == "launch-blocking") == found
    assert verdict.confidence < 0.8


ON, OFF = "CUDA_LAUNCH_BLOCKING=1\n", "$ unset CUDA_LAUNCH_BLOCKING\n"
SHOWS = "$ tail -n 5 monday.log\n"


def steps(first: int, count: int, ms: int) -> str:
    return "".join(f"iter {n}: loss {5 - n / 900:.4f}, time {ms + n % 5}.25ms\n"
                   for n in range(first, first + count))  # fmt: skip


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (ON + SHOWS + steps(900, 5, 210), True),
        (SHOWS + steps(900, 5, 210) + "+ export " + ON, True),
        (ON + SHOWS + steps(900, 5, 640), False),
        (ON + SHOWS + steps(900, 5, 210) + OFF, False),
        (SHOWS + steps(900, 3, 210) + ON + steps(903, 2, 210), False),
        (ON + "$ python train.py --fast\n" + steps(900, 5, 210), False),
        (SHOWS + steps(900, 5, 210), False),
    ],
    ids=["far slower", "set behind it", "as slow", "taken away", "of the log that is shown",
         "a run of its own", "not set"],
)  # fmt: skip
def test_beside_a_log_that_a_shell_shows(tmp_path: Path, head: str, found: bool) -> None:
    run = "$ python train.py | tee tuesday.log\n" + steps(0, 300, 660)
    (tmp_path / "console.txt").write_text(head + run)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.fault_class == "launch-blocking") == found
    assert verdict.confidence < 0.8
