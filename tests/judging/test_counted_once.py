"""A bar and a loss of one step are two points of it: the pace is told by steps, not by points."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.facts import Facts
from flatline.judging.pace import pace
from flatline.judging.throughput import course, step_at

START = datetime(2026, 3, 1, 4, tzinfo=UTC)
FAST, SLOW, STEPS, CHANGE = 6, 9, 200, 120


def facts(folder: Path, *, loss_first: bool, rated: bool = True, number: bool = False) -> Facts:
    """A dict and a bar a step, milliseconds apart; the last steps take longer."""
    lines, at = [], START
    for step in range(1, STEPS + 1):
        each_s = FAST if step <= CHANGE else SLOW
        at += timedelta(seconds=each_s)
        rate = f"{each_s:.2f}s/it" if rated else "?it/s"
        bar = f" {step // 5}%|##        | {step}/1000 [10:00<2:00:00,  {rate}]"
        said = f", 'step': {step}" if number else ""
        loss = f"{{'loss': {2 - step / 500:.4f}, 'epoch': {step / 400:.3f}{said}}}"
        both = (loss, bar) if loss_first else (bar, loss)
        lines += [f"{at + timedelta(milliseconds=2 * n):%Y-%m-%dT%H:%M:%S.%f}Z {text}"
                  for n, text in enumerate(both)]  # fmt: skip
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    return collect(Request((str(folder),)))


@pytest.mark.parametrize("loss_first", [True, False], ids=["loss, bar", "bar, loss"])
@pytest.mark.parametrize("rated", [True, False], ids=["with a rate", "by the clock"])
@pytest.mark.parametrize("number", [True, False], ids=["both have steps", "the bar has"])
def test_the_pace_of_steps_that_are_printed_twice(
    tmp_path: Path, loss_first: bool, rated: bool, number: bool
) -> None:
    """Whatever comes first of the two, and whichever bears the number."""
    found = facts(tmp_path, loss_first=loss_first, rated=rated, number=number)

    known, run = pace(found), course(found)

    assert known is not None
    assert known.interval_s == pytest.approx(SLOW, abs=0.1)
    assert run is not None
    assert [phase.part for phase in run.slow] == [pytest.approx(FAST / SLOW, abs=0.02)]
    change = (START + timedelta(seconds=FAST * CHANGE)).timestamp()
    assert run.slow[0].begins == pytest.approx(change, abs=2 * SLOW)
    assert step_at(found, change + SLOW / 3) in (CHANGE, CHANGE + 1)


def test_a_bar_that_is_drawn_now_and_then(tmp_path: Path) -> None:
    """Losses without a number that come between are signs of progress all the same."""
    lines = []
    for n in range(1, 201):
        when = f"{START + timedelta(seconds=6 * n):%Y-%m-%dT%H:%M:%S}Z "
        lines.append(f"{when}{{'loss': {2 - n / 500:.4f}, 'epoch': {n / 400:.3f}}}")
        if n % 50 == 0:
            lines.append(f"{when} {n // 5}%|#   | {n}/1000 [10:00<2:00:00,  6.00s/it]")
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")

    known = pace(collect(Request((str(tmp_path),))))

    assert known is not None
    assert known.interval_s == pytest.approx(6, abs=0.1)
