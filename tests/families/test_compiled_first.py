"""Undated steps behind a dated line that was printed while the first of them was compiled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

WARNED = datetime(2026, 4, 14, 5, 35, 31, tzinfo=UTC)
STEPS, EACH_S = 180, 15.0


def looked_at(
    folder: Path, first_s: float, after_s: float, *, glog: bool = False, ran: str = "00:51:22"
) -> str | None:
    """So long after what the steps took since the warning, the first of them left out."""
    stamp = f"{WARNED:%Y-%m-%d %H:%M:%S}"
    lines = [
        f"{stamp}.110112: W external/xla/xla/service/gpu/gpu_hlo_cost_analysis.cc:123] Unknown",
        f"{stamp}.881230: E external/xla/xla/stream_executor/cuda/cuda_timer.cc:86] Delay kernel"
        " timed out: measured time has sub-optimal accuracy.",
    ]
    if glog:
        lines = [f"E{WARNED:%m%d %H:%M:%S}.881230  4711 slow_operation_alarm.cc:140] Slow"]
    lines += [
        f"completed step: {n}, seconds: {EACH_S if n else first_s:.3f}, TFLOP/s/device: 610.1,"
        f" Tokens/s/device: 4097.1, total_weights: 4194304, loss: {4 + 8 * 0.99**n:.3f}"
        for n in range(STEPS + 1)
    ]
    (folder / "slurm-20.out").write_text("\n".join(lines) + "\n")
    now = WARNED + timedelta(seconds=STEPS * EACH_S + after_s)
    (folder / "queue.txt").write_text(
        f"{now:%Y-%m-%d %H:%M:%S} UTC\n20 gpu lm mira R {ran} 2 n[1-2]\n"
    )
    return diagnose(collect(Request((str(folder),)))).code


@pytest.mark.parametrize(
    ("first_s", "after_s", "code"),
    [(95.0, 110.0, "G1"), (95.0, 200.0, None), (15.0, 110.0, None), (2000.0, 400.0, None)],
    ids=["within it", "long after it", "compiled before", "however long it was"],
)
def test_what_was_compiled_may_have_gone_on_behind_the_line(
    tmp_path: Path, first_s: float, after_s: float, code: str | None
) -> None:
    told = looked_at(tmp_path, first_s, after_s)
    assert (told == "G1") is (code == "G1")


@pytest.mark.parametrize(
    ("after_s", "ran", "code"),
    [(110.0, "00:51:22", "G1"), (900.0, "00:51:22", None), (110.0, "02:51:22", None)],
    ids=["lately", "long ago", "of another zone"],
)
def test_a_date_without_a_year_is_of_the_jobs(
    tmp_path: Path, after_s: float, ran: str, code: str | None
) -> None:
    """As glog prints it; dates that begin hours behind the job may be of another zone's time."""
    assert looked_at(tmp_path, 95.0, after_s, glog=True, ran=ran) == code
