"""GPUs that idle more from a moment on, in a loop that says what it waits for data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

BEGAN = datetime(2026, 3, 1, 10, tzinfo=UTC)
SLOW_FROM = 400


@pytest.mark.parametrize(("said", "code"), [("", "D1"), (" data {data:.3f}s", "G1")])
def test_a_loop_that_times_its_loader(tmp_path: Path, said: str, code: str) -> None:
    """Where nothing tells they may wait for their data; where the loop says that it does not,
    something else keeps them waiting."""
    at, lines, busy = BEGAN, [], []
    for n in range(1, 801):
        took = 1.9 + (1.4 if n >= SLOW_FROM else 0.0) + 0.01 * (n % 3)
        at += timedelta(seconds=took)
        busy.append((at, n >= SLOW_FROM))
        if n % 5 == 0:
            waits = said.format(data=0.004 + 0.001 * (n % 2))
            lines.append(
                f"{at:%Y-%m-%d %H:%M:%S},000 INFO train: step {n}/800 loss {5 - n / 400:.4f}"
                f"{waits} step {took:.3f}s\n"
            )
    (tmp_path / "train.log").write_text("".join(lines) + "Training complete.\n")
    rows = []
    second = BEGAN - timedelta(seconds=120)
    while second < at + timedelta(seconds=120):
        slow = next((s for when, s in busy if when >= second), False)
        used = (57 if slow else 97) if BEGAN <= second <= at else 0
        rows += (
            f'DCGM_FI_DEV_GPU_UTIL{{Hostname="n1",gpu="{gpu}"}} {used}'
            f" {int(second.timestamp() * 1000)}\n"
            for gpu in range(2)
        )
        second += timedelta(seconds=20)
    (tmp_path / "metrics.prom").write_text("".join(sorted(rows, key=lambda r: r.split("}")[0])))
    (tmp_path / "sacct.psv").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
        f"4|t|COMPLETED|0:0|{BEGAN:%Y-%m-%dT%H:%M:%S}|{at:%Y-%m-%dT%H:%M:%S}|1|n1\n"
    )

    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == code
