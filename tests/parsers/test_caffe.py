"""Caffe: how far the solver was where no loss stands beside it."""

from __future__ import annotations

from pathlib import Path

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

RATE = "I0420 22:48:18.898177  7233 sgd_solver.cpp:138] Iteration {}, lr = 0.001\n"
FAILED = (
    "F0421 09:02:45.161278  7233 math_functions.cu:52] Check failed: status =="
    " CUBLAS_STATUS_SUCCESS (13 vs. 0)  CUBLAS_STATUS_EXECUTION_FAILED\n"
    "*** Check failure stack trace: ***\nAborted (core dumped)\n"
)


def test_the_rate_of_an_iteration_tells_how_far_it_was(tmp_path: Path) -> None:
    """A kernel that failed after thousands of them failed in training."""
    (tmp_path / "caffe.log").write_text(RATE.format(2500) + RATE.format(2520) + FAILED)
    facts = collect(Request((str(tmp_path),)))

    assert facts.last_step == 2520
    assert diagnose(facts).code == "A3"


def test_points_with_and_without_a_loss_are_one(tmp_path: Path) -> None:
    """The solver prints an iteration twice: with its loss, and with its rate."""
    lines = [
        f"I0413 06:{n // 60:02d}:{n % 60:02d}.388000 22206 solver.cpp:242] Iteration {40 * n}"
        f" (0.26 iter/s, 149.5s/40 iter), loss = {3 - n / 30:.4f}\n" + RATE.format(40 * n)
        for n in range(1, 50)
    ]
    (tmp_path / "caffe.log").write_text("".join(lines))
    track = collect(Request((str(tmp_path),))).main_track()

    assert track is not None
    assert [*track.steps] == [40 * n for n in range(1, 50)]
    assert all(track.has_loss)
