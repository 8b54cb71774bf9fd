"""CorrDiff's lines: images for steps, and the program's own clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.parsers import corrdiff

LINE = (
    "samples {n:<9.1f} training_loss {loss:<7.2f} training_loss_running_mean {loss:<7.2f}"
    " learning_rate 0.00020000 total_sec {s:<7.1f} sec_per_tick 0.9     sec_per_sample 0.01"
)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (LINE.format(n=5120, loss=0.97, s=158.5), (5120, 0.97, 2e-4, 158.5)),
        ("samples 169.0k, training_loss: 0.179, learning_rate: 2.0e-04, total_sec: 1394.1",
         (169_000, 0.179, 2e-4, 1394.1)),
        ("samples 12 training_loss nan total_sec 9.5", None),
        ("samples of training_loss 0.9", None),
        ("validation samples: 400 training_loss 0.9", None),
    ],
    ids=["its own", "a fork's", "no number", "words", "samples of something else"],
)  # fmt: skip
def test_a_line_of_progress(line: str, told: tuple[float, ...] | None) -> None:
    values = [*corrdiff.Reader().feed(line)]

    if told is None:
        assert all(one.loss is None or one.loss != one.loss for one in values)
        return
    assert [(one.step, one.loss, one.lr, one.since_s) for one in values] == [told]


def test_a_run_that_comes_to_its_plan(tmp_path: Path) -> None:
    rows = ["[04:00:12 - train - INFO] Training for 20480 images..."]
    for n in range(1, 41):
        at = f"[04:{n // 60:02d}:{n % 60:02d} - train - INFO] "
        rows.append(at + LINE.format(n=512 * n, loss=0.2 + 1 / n, s=float(n)))
    rows.append("[04:01:00 - train - INFO] Training Completed.")
    (tmp_path / "train.log").write_text("\n".join(rows) + "\n")
    facts = collect(Request((str(tmp_path),)))

    assert (facts.last_step, facts.planned_steps, facts.reached_plan) == (20_480, 20_480, True)
    assert facts.end_seen
