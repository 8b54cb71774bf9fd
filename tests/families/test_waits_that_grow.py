"""D1 by waits that grow, beside what ran on the GPUs meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from families.fleet import sample
from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 5, 11, 6, tzinfo=UTC)
SLOW = 200


def run(folder: Path, *, waited: float, took: float, busy: Callable[[str], float]) -> Verdict:
    """400 steps of 4 s, of `took` seconds from step 200 on; eight GPUs of two hosts, with what ran
    on each then."""
    at, lines, since = BEGAN, [], BEGAN
    for step in range(1, 401):
        slow = step > SLOW
        at += timedelta(seconds=took if slow else 4.0)
        since = since if slow else at
        lines.append(
            f"{at:%Y-%m-%dT%H:%M:%S}Z INFO step={step} loss={2 + 9 / step:.4f}"
            f" step_time={took if slow else 4.0:.3f}s"
            f" data_time={waited if slow else 0.05 + 0.01 * (step % 3):.3f}"
        )
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    base, read = 1_700_000_000, []
    for second in range(0, int((at - BEGAN).total_seconds()), 30):
        now = BEGAN + timedelta(seconds=second)
        for host in "ab":
            for gpu in range(4):
                value = 97 if now <= since else busy(f"{host}{gpu}")
                read.append(sample("DCGM_FI_DEV_GPU_UTIL", f'Hostname="n{host}",gpu="{gpu}"',
                                   value, now.timestamp() - base))  # fmt: skip
    (folder / "metrics.prom").write_text("\n".join(read) + "\n")
    return diagnose(collect(Request((str(folder),))))


def test_every_gpu_idles_as_the_steps_wait(tmp_path: Path) -> None:
    verdict = run(tmp_path, waited=2.6, took=6.5, busy=lambda gpu: 60)

    assert (verdict.code, verdict.fault_class, verdict.scope) == ("D1", "loader", "all")
    assert not any("every host" in one for one in verdict.cannot_decide)


def test_the_others_wait_in_a_collective_for_the_one(tmp_path: Path) -> None:
    """Their GPUs run its kernel meanwhile."""
    verdict = run(tmp_path, waited=2.6, took=6.5, busy=lambda gpu: 60 if gpu == "a0" else 98)

    assert (verdict.code, verdict.scope) == ("D1", "none")
    assert any("every host" in one for one in verdict.cannot_decide)


@pytest.mark.parametrize(
    ("waited", "took"), [(2.6, 6.5), (2.6, 4.0)], ids=["longer", "as long as before"]
)
def test_waits_that_the_gpus_compute_through(tmp_path: Path, waited: float, took: float) -> None:
    """What is fetched ahead by a thread of its own is timed and costs nothing."""
    assert run(tmp_path, waited=waited, took=took, busy=lambda gpu: 97).code != "D1"
