"""A job that its workflow manager did not hear of, and its own log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2025, 2, 3, 9, 0, tzinfo=UTC)
GIVEN_UP = 1800
UNHEARD = "{}  Job is unresponsive - no heartbeat received in 180 seconds.\n"


def stamp(seconds: float) -> str:
    return f"{BEGAN + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}"


def steps(last: int) -> str:
    return "".join(
        f"{stamp(s)}  step {n} loss {2.4 * 0.99**n:.5f}\n"
        for n, s in enumerate(range(0, last, 20))
    )


def judged(folder: Path, last: int, told: str, behind: str = "") -> Verdict:
    (folder / "job.log").write_text(steps(last) + behind)
    (folder / "events.txt").write_text(f"{stamp(0)}  Job ready to run\n{told}")
    return diagnose(collect(Request((str(folder),))))


def test_one_that_went_on(tmp_path: Path) -> None:
    behind = f"{stamp(GIVEN_UP)}  received SIGTERM from the manager, cleaning up\n"
    verdict = judged(tmp_path, GIVEN_UP - 5, UNHEARD.format(stamp(GIVEN_UP)), behind)

    assert verdict.code == "C4"
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    ("last", "told", "behind"),
    [
        (GIVEN_UP - 170, UNHEARD.format(stamp(GIVEN_UP)), ""),
        (GIVEN_UP - 900, UNHEARD.format(stamp(GIVEN_UP)), ""),
        (GIVEN_UP - 5, UNHEARD.format("[CPU: 9.1 GB]"), ""),
        (GIVEN_UP - 5, UNHEARD.format(stamp(GIVEN_UP)), "Segmentation fault (core dumped)\n"),
        (GIVEN_UP + 1800, UNHEARD.format(stamp(GIVEN_UP)), ""),
    ],
    ids=["stopped in the window", "long before", "undated", "it crashed", "it lived on"],
)
def test_near_misses(tmp_path: Path, last: int, told: str, behind: str) -> None:
    assert judged(tmp_path, last, told, behind).code != "C4"
