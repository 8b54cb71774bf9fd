"""Program logs whose stamps have no year, beside metrics or other logs that have one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect

STEPS = "".join(
    f"I0820 04:{n:02d}:10.000000 4242 train.py:88] step {n} loss {3 - n / 50:.4f}\n"
    for n in range(10, 50)
)


def first_step(folder: Path, metrics_at: datetime | None, other: str = "") -> datetime | None:
    (folder / "train.log").write_text(STEPS)
    if metrics_at is not None:
        ms = int(metrics_at.timestamp() * 1000)
        rows = (f'up{{instance="n1:9100"}} 1 {ms + 30_000 * n}\n' for n in range(90))
        (folder / "metrics.prom").write_text("".join(rows))
    if other:
        (folder / "other.log").write_text(other)
    track = collect(Request((str(folder),))).main_track()
    assert track is not None
    return track.time(0)


def test_the_year_of_its_metrics(tmp_path: Path) -> None:
    """They were scraped while it ran."""
    at = first_step(tmp_path, datetime(2025, 8, 20, 4, 5, tzinfo=UTC))

    assert at == datetime(2025, 8, 20, 4, 10, 10, tzinfo=UTC)


def test_the_year_of_a_log_beside_it(tmp_path: Path) -> None:
    """Of the same day."""
    ended = "slurmstepd: error: *** JOB 5 ON n1 CANCELLED AT 2024-08-20T04:50:00 ***\n"
    at = first_step(tmp_path, None, ended)

    assert at == datetime(2024, 8, 20, 4, 10, 10, tzinfo=UTC)


@pytest.mark.parametrize("month", [2, 6, 11])
def test_metrics_of_another_time_tell_none(tmp_path: Path, month: int) -> None:
    """They are not of this run."""
    assert first_step(tmp_path, datetime(2025, month, 3, 4, 5, tzinfo=UTC)) is None


@pytest.mark.parametrize("hours", [-5, 2, 8])
def test_metrics_of_hours_beside_it_tell_none(tmp_path: Path, hours: int) -> None:
    """Its clock may be of another zone, and then each of its lines would stand at a wrong time."""
    at = datetime(2025, 8, 20, 4, 5, tzinfo=UTC) + timedelta(hours=hours)

    assert first_step(tmp_path, at) is None
