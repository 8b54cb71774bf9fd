"""C4 of a container that the kubelet ended for its liveness probe."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 2, 9, 6, 0, tzinfo=UTC)
STEPS, STEP_S = 90, 7
FAILED = (
    "  Normal   Killing    {}   kubelet  Container main failed liveness probe, will be restarted"
)


def probed(
    folder: Path, *, quiet_s: int = 3, told: str = "got SIGTERM, leaving", ended: str = FAILED
) -> Verdict:
    """A trainer that prints each step, is told to leave `quiet_s` after the last one, and the
    events of its pod."""
    lines = []
    for n in range(STEPS):
        at = BEGAN + timedelta(seconds=n * STEP_S)
        lines.append(f"{at:%Y-%m-%d %H:%M:%S} INFO step {n} loss {4 - n / 60:.3f}")
    at += timedelta(seconds=quiet_s)
    lines.append(f"{at:%Y-%m-%d %H:%M:%S} WARN {told}")
    (folder / "pod.log").write_text("\n".join(lines) + "\n")
    (folder / "events.log").write_text(
        "Events:\n"
        "  Warning  Unhealthy  95s (x3 over 2m15s)  kubelet  Liveness probe failed: timeout\n"
        + ended.format("95s") + "\n"
    )  # fmt: skip
    return diagnose(collect(Request((str(folder),))))


def test_a_trainer_that_went_on(tmp_path: Path) -> None:
    verdict = probed(tmp_path)

    assert (verdict.code, verdict.confidence < 0.8) == ("C4", True)


@pytest.mark.parametrize(
    "other",
    [
        {"quiet_s": 300},
        {"told": "leaving"},
        {"ended": "  Normal   Killing   {}   kubelet  Stopping container main"},
        {"told": "RuntimeError: CUDA error: an illegal memory access was encountered"},
    ],
    ids=["it stood still", "no signal", "the pod was deleted", "it crashed"],
)
def test_what_a_probe_may_be_right_about(tmp_path: Path, other: dict[str, object]) -> None:
    assert probed(tmp_path, **other).code != "C4"  # type: ignore[arg-type]
