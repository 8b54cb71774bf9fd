"""A bar without label or loss: something advanced, nobody says what."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

LIMIT = (
    "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-04-14T16:20:46 DUE TO TIME LIMIT ***\n"
)
RAISED = (
    'Traceback (most recent call last):\n  File "/app/main.py", line 9, in <module>\n'
    "    run()\nTypeError: iteration over a 0-d tensor\n"
)


def bar(*counts: int, total: int = 50) -> str:
    return "".join(
        f"\r {100 * n // total:3d}%|{'#' * n}| {n}/{total} [{n}:00:00<9:00:00, 631.04s/it]"
        for n in counts
    )


def said(tmp_path: Path, text: str) -> Verdict:
    (tmp_path / "train.log").write_text(text)
    return diagnose(collect(Request((str(tmp_path),))))


def test_a_bar_that_moved_up_to_the_limit_is_weak_progress(tmp_path: Path) -> None:
    """Weak: what it counts is not said."""
    verdict = said(tmp_path, bar(0, 4, 8, 11) + LIMIT)

    assert verdict.code == "F3"
    assert verdict.confidence < 0.8


def test_a_bar_that_had_ended_or_never_moved_is_none(tmp_path: Path) -> None:
    assert said(tmp_path, bar(0, 25, 50) + "\n" + LIMIT).state == "undetermined"
    assert said(tmp_path, bar(0) + LIMIT).state == "undetermined"


def test_what_is_raised_halfway_through_a_bar_is_no_start_up(tmp_path: Path) -> None:
    """Behind a bar that had ended it is."""
    assert said(tmp_path, bar(4, 24) + "\n" + RAISED).code == "A3"
    assert said(tmp_path, bar(4, 24, 50) + "\n" + RAISED).code == "A1"


def one(elapsed: str, rate: str, at: int = 640) -> str:
    return f" {at // 16}%|####      | {at}/1600 [{elapsed}<1:36:00, {rate}]\n"


def test_the_one_bar_that_is_left_had_gone_steadily(tmp_path: Path) -> None:
    """640 steps of 6 s took 1:04:00: as fast lately as ever."""
    verdict = said(tmp_path, one("1:04:00", " 6.02s/it") + LIMIT)
    assert verdict.code == "F3"
    assert verdict.confidence < 0.8
    assert "gone steadily to 640 of 1600" in verdict.headline
    assert said(tmp_path, one("1:04:00", " 0.17it/s") + LIMIT).code == "F3"


@pytest.mark.parametrize(
    "line",
    [
        one("1:04:00", "31.50s/it"),  # it had slowed down
        one("3:04:00", " 6.02s/it"),  # it had stood for hours before
        one("00:30", " 6.00s/it", at=5),  # its rate is of the same few steps
        one("2:40:00", " 6.00s/it", at=1600),  # it had ended
    ],
)
def test_one_bar_shows_no_steady_pace(tmp_path: Path, line: str) -> None:
    assert said(tmp_path, line + LIMIT).state == "undetermined"
