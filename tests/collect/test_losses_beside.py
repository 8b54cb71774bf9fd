"""Losses on standard output, and the bar that counts their steps on standard error."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.facts import Facts

EVERY, LAST, PLAN = 10, 407, 900
HEAD = (
    "[INFO|trainer.py:2405] 2026-10-23 08:03:56,788 >> ***** Running training *****\n"
    f"[INFO|trainer.py:2413] 2026-10-23 08:03:56,790 >>   Total optimization steps = {PLAN}\n"
)

EPOCHS = "[INFO|trainer.py:2407] 2026-10-23 08:03:56,788 >>   Num Epochs = {}\n"


def bar(last: int = LAST) -> str:
    return "\r".join(
        f" {100 * n // PLAN}%|##   | {n}/{PLAN}"
        f" [{4 * n // 60:02d}:{4 * n % 60:02d}<59:00,  4.00s/it]"
        for n in range(last + 1)
    )


def losses(count: int, bent: float = 1.0) -> str:
    epochs = [2.0 * ((n / count) ** bent) for n in range(1, count + 1)]
    return "".join(
        f"{{'loss': {3 * 0.99**n:.4f}, 'grad_norm': 1.2, 'learning_rate': 1e-05,"
        f" 'epoch': {epoch:.2f}}}\n"
        for n, epoch in enumerate(epochs)
    )


def read(folder: Path, told: str, drawn: str) -> Facts:
    (folder / "sft-5.out").write_text("job 5 on n1\n" + told)
    (folder / "sft-5.err").write_text(HEAD + drawn)
    return collect(Request((str(folder),)))


def test_each_loss_has_its_step_and_its_line(tmp_path: Path) -> None:
    facts = read(tmp_path, losses(LAST // EVERY), bar())
    (track,) = facts.tracks
    points = [i for i in range(len(track)) if track.has_loss[i]]
    told = facts.point(track, points[2])

    assert [track.steps[i] for i in points] == [*range(EVERY, LAST + 1, EVERY)]
    assert (told.step, told.loss) == (30, pytest.approx(3 * 0.99**2, abs=1e-4))
    assert (told.cite.source, told.cite.line) == ("sft-5.out", 4)
    assert str(round(told.loss, 4)) in told.cite.text
    assert (facts.last_step, facts.planned_steps) == (LAST, PLAN)
    assert track.sources == ("sft-5.err", "sft-5.out")


@pytest.mark.parametrize(
    ("told", "drawn"),
    [
        (losses(LAST // EVERY, bent=2.0), bar()),
        (losses(4), bar()),
        (losses(LAST + 1), bar()),
        (losses(LAST // EVERY), bar() + "\n" + bar()),
        (losses(LAST // EVERY - 5), bar()),
        (losses(LAST // EVERY), EPOCHS.format(9) + bar()),
    ],
    ids=[
        "at uneven steps",
        "too few",
        "more than steps",
        "two runs of the bar",
        "held back in a buffer",
        "of another plan",
    ],
)
def test_what_does_not_fit_stays_apart(tmp_path: Path, told: str, drawn: str) -> None:
    facts = read(tmp_path, told, drawn)

    assert not any(track.elsewhere for track in facts.tracks)
