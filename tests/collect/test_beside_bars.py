"""What a bar without a label says that a loop took, for the losses that are written beside it."""

from __future__ import annotations

from math import isfinite
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.tracks import Track


def bar(n: int, seconds: int) -> str:
    clock = f"{seconds // 60:02d}:{seconds % 60:02d}"
    return f"{n * 100 // 3000:3d}%|█▏        | {n}/3000 [{clock}<55:10,  1.31s/it]"


def track(folder: Path, text: str) -> Track:
    (folder / "train.log").write_text(text, newline="")
    (found,) = collect(Request((str(folder),))).tracks
    return found


def loss(step: int) -> str:
    return f"Step {step}: grad_norm=1.4473, loss={2 - step / 1000:.4f}, param_norm=1803.45\n"


@pytest.mark.parametrize("ahead", [0, 1], ids=["before it counts", "after"])
@pytest.mark.parametrize(
    "shape", ["{bar}\n{loss}", "{loss}{bar}\n", "{bar}\r{loss}", "  0%| | 0/3000\r{bar}\r{loss}"]
)
def test_a_curve_without_times_has_those_of_its_bar(
    tmp_path: Path, ahead: int, shape: str
) -> None:
    found = track(tmp_path, "".join(
        shape.format(bar=bar(step + ahead, 40 + step), loss=loss(step))
        for step in range(0, 1000, 100)
    ))  # fmt: skip
    assert list(found.steps) == [*range(0, 1000, 100)]
    assert list(found.since_s) == [40.0 + step for step in range(0, 1000, 100)]
    assert set(found.step_s) == {1.31}


@pytest.mark.parametrize(
    "beside", [lambda step: 7 + step * 3, lambda step: step if step < 800 else step + 50]
)
def test_bars_of_something_else_tell_nothing(tmp_path: Path, beside: object) -> None:
    assert callable(beside)
    found = track(tmp_path, "".join(
        f"{bar(beside(step), 40 + step)}\n{loss(step)}" for step in range(0, 1000, 100)
    ))  # fmt: skip
    assert not any(map(isfinite, found.since_s))


def test_times_of_its_own_are_kept(tmp_path: Path) -> None:
    found = track(tmp_path, "".join(
        f"{bar(step, 40 + step)}\n2026-03-04 08:{step // 100:02d}:00 {loss(step)}"
        for step in range(0, 1000, 100)
    ))  # fmt: skip
    assert all(map(isfinite, found.at))
    assert not any(map(isfinite, found.since_s))
