"""D6 where samples become longer and the tokens a second, which the log prints as well, hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose


@pytest.mark.parametrize(("then", "held"), [(46_000, True), (23_000, False)])
@pytest.mark.parametrize("state", ["RUNNING", "COMPLETED"])
def test_longer_samples_beside_an_engine_that_dates_its_steps(
    tmp_path: Path, state: str, then: int, held: bool
) -> None:
    """The dict counts nothing and has no date; the engine's own line above it has both."""
    at, lines = datetime(2026, 9, 3, 7, tzinfo=UTC), []
    for n in range(5, 605, 5):
        late = n > 300
        at += timedelta(seconds=5 * (4.6 if late else 2.3) + n % 3 * 0.1)
        lines += (
            f"[{at:%Y-%m-%d %H:%M:%S},118] [INFO] [logging.py:96:log_dist] [Rank 0] step={n},"
            " skipped=0, lr=[2e-05], mom=[(0.9, 0.999)]",
            f"{{'loss': {2 * 0.999**n:.4f},"
            f" 'tokens_per_sample': {(820 if late else 410) + n % 9}.5,"
            f" 'tokens_per_sec': {then if late else 46_000}, 'epoch': {n / 6000:.2f}}}",
        )  # fmt: skip
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    began = datetime(2026, 9, 3, 6, 59, tzinfo=UTC)
    ended = "Unknown" if state == "RUNNING" else f"{at:%FT%T}"
    elapsed = str(timedelta(seconds=int((at - began).total_seconds()))).zfill(8)
    (tmp_path / "sacct.txt").write_text(
        f"JobID|State|ExitCode|Start|End|Elapsed\n3|{state}|0:0|{began:%FT%T}|{ended}|{elapsed}\n"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))
    found = [one.role for one in verdict.findings if one.finding.code == "D6"]

    assert verdict.code == ("G1" if held and state == "COMPLETED" else "D6")
    assert found == ["warning" if held and state == "COMPLETED" else "cause"]
