"""Local times are put where the run's metrics, or its record, show them to belong, or left."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.facts import Facts
from flatline.model import Job, RecordCite, Records

BEGAN = datetime(2026, 1, 14, 17, 4, tzinfo=UTC)
"""In fact."""
LASTED = timedelta(hours=2)
ROW = (
    "JobID|JobName|State|ExitCode|Submit|Start|End|Elapsed|NNodes|NodeList\n"
    "8308|gpt|COMPLETED|0:0|{0:%FT%T}|{0:%FT%T}|{1:%FT%T}|02:00:00|1|node1\n"
)


def log(off_h: float, lasted: timedelta = LASTED) -> str:
    at = [BEGAN + timedelta(hours=off_h) + n * lasted / 99 for n in range(1, 99)]
    return "".join(
        f"[{when:%F %T}] iteration {n:8d}/ 98 | lm loss: {9 - n / 20:.3f} |\n"
        for n, when in enumerate(at, 1)
    )


def metrics(first_h: float, last_h: float) -> str:
    """From hours after it began to hours after it ended."""
    first, last = BEGAN + timedelta(hours=first_h), BEGAN + LASTED + timedelta(hours=last_h)
    times = range(int(first.timestamp()), int(last.timestamp()), 30)
    return "# TYPE node_procs_running gauge\n" + "".join(
        f'node_procs_running{{instance="node1:9100",job="node"}} 4 {at}\n' for at in times
    ) + "# EOF\n"  # fmt: skip


def facts(folder: Path, off_h: float, window: tuple[float, float]) -> Facts:
    began = BEGAN + timedelta(hours=off_h)
    (folder / "train.log").write_text(log(off_h))
    (folder / "sacct.txt").write_text(ROW.format(began, began + LASTED))
    (folder / "metrics.om").write_text(metrics(*window))
    return collect(Request((str(folder),)))


@pytest.mark.parametrize("off_h", [-6, 2, 5.5])
def test_a_run_is_where_its_metrics_are(tmp_path: Path, off_h: float) -> None:
    read = facts(tmp_path, off_h, (-0.05, 0.1))
    track = read.main_track(0)

    assert read.last.started_at == BEGAN
    assert track is not None
    assert abs(track.at[-1] - (BEGAN + LASTED).timestamp()) < 120


@pytest.mark.parametrize(
    ("off_h", "window"),
    [(0, (-0.05, 0.1)), (-6, (-26, 1)), (-6, (-1, 1)), (0, (0.5, 1)), (-6, (0.5, 0.1))],
    ids=["in UTC", "days of metrics", "several zones fit", "the beginning missed", "too short"],
)
def test_else_it_stays_as_it_was_read(
    tmp_path: Path, off_h: float, window: tuple[float, float]
) -> None:
    read = facts(tmp_path, off_h, window)

    assert read.last.started_at == BEGAN + timedelta(hours=off_h)


@pytest.mark.parametrize(
    ("off_h", "lasted", "moved"),
    [
        (2, LASTED, True),
        (1, LASTED, True),
        (2, timedelta(minutes=30), False),
        (0, LASTED + timedelta(minutes=20), False),
    ],
)
def test_a_log_is_within_its_record(
    tmp_path: Path, off_h: float, lasted: timedelta, moved: bool
) -> None:
    """Whose times are in UTC; a log of its beginning alone fits several zones, and one that goes
    on for a while after the job's end is of no other."""
    (tmp_path / "train.log").write_text(log(off_h, lasted))
    cite = RecordCite("records", "/jobs/0", "8308", "JobID=8308")
    job = Job("8308", "gpt", "completed", "COMPLETED", cite, started_at=BEGAN,
              ended_at=BEGAN + LASTED, nodes=("node1",))  # fmt: skip
    read = collect(Request((str(tmp_path),)), given=[Records((job,))])
    track = read.main_track(0)

    assert read.last.started_at == BEGAN
    assert track is not None
    first = BEGAN + lasted / 99 + timedelta(hours=0 if moved else off_h)
    assert abs(track.at[0] - first.timestamp()) < 1
