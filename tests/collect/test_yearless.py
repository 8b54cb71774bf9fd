"""Program logs whose stamps have no year, beside metrics or other logs that have one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flatline.collect import Request, collect

STEPS = "".join(
    f"I0820 04:{n:02d}:10.000000 4242 train.py:88] step {n} loss {3 - n / 50:.4f}\n"
    for n in range(10, 50)
)


def scraped(folder: Path, begins: datetime, count: int) -> None:
    """So many scrapes of one host, half a minute apart."""
    ms = int(begins.timestamp() * 1000)
    rows = (f'up{{instance="n1:9100"}} 1 {ms + 30_000 * n}\n' for n in range(count))
    (folder / "metrics.prom").write_text("".join(rows))


def first_time(folder: Path) -> datetime | None:
    """When the first step was made, as far as that is known."""
    track = collect(Request((str(folder),))).main_track()
    assert track is not None
    return track.time(0)


def first_step(folder: Path, metrics_at: datetime | None, other: str = "") -> datetime | None:
    (folder / "train.log").write_text(STEPS)
    if metrics_at is not None:
        scraped(folder, metrics_at, 90)
    if other:
        (folder / "other.log").write_text(other)
    return first_time(folder)


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


CLOCK = "".join(f"{{}}{n // 60:02d}:{n % 60:02d}:10{{}} step {n - 600} loss {3 - n / 900:.4f}\n"
                for n in range(601, 660))  # fmt: skip


def times_alone(
    folder: Path,
    text: str,
    *,
    metrics_at: datetime | None = None,
    record: str = "",
    other: str = "",
) -> datetime | None:
    """When the first step was made of a log whose lines bear no date."""
    (folder / "train.log").write_text(text)
    if metrics_at is not None:
        scraped(folder, metrics_at, 150)
    if record:
        start, end = record.split()
        (folder / "sacct.txt").write_text(
            f"JobID|JobName|State|ExitCode|Start|End|NodeList\n7|x|FAILED|1:0|{start}|{end}|n1\n"
        )
    if other:
        (folder / "other.log").write_text(other)
    return first_time(folder)


@pytest.mark.parametrize(("before", "behind"), [("", ""), ("[", "]"), ("0: ", ""), ("", ",123")])
@pytest.mark.parametrize(
    "known",
    [
        {"metrics_at": datetime(2025, 8, 20, 9, 50, tzinfo=UTC)},
        {"record": "2025-08-20T09:58:00 2025-08-20T11:05:00"},
        {
            "other": "2025-08-20 09:59:00 INFO up\nslurmstepd: error: *** JOB 5 ON n1 CANCELLED AT"
            " 2025-08-20T11:00:00 ***\n"
        },
    ],
    ids=["metrics", "record", "other log"],
)
def test_the_day_of_times_alone(
    tmp_path: Path, known: dict[str, Any], before: str, behind: str
) -> None:
    """Of the run's record, its metrics or the logs beside it, where all of them lie within."""
    at = times_alone(tmp_path, CLOCK.format(*(before, behind) * 59), **known)

    assert at is not None
    assert at.replace(microsecond=0) == datetime(2025, 8, 20, 10, 1, 10, tzinfo=UTC)


def test_times_alone_over_midnight(tmp_path: Path) -> None:
    """They go on into the next day."""
    text = "".join(
        f"{at // 60 % 24:02d}:{at % 60:02d}:10 step {n} loss {3 - n / 900:.4f}\n"
        for n, at in enumerate(range(22 * 60, 26 * 60, 2), 1)
    )
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
        "7|x|FAILED|1:0|2025-08-20T21:58:00|2025-08-21T02:05:00|n1\n"
    )
    (tmp_path / "train.log").write_text(text)
    track = collect(Request((str(tmp_path),))).main_track()

    assert track is not None
    assert track.time(0) == datetime(2025, 8, 20, 22, 0, 10, tzinfo=UTC)
    assert track.time(len(track) - 1) == datetime(2025, 8, 21, 1, 58, 10, tzinfo=UTC)


ELAPSED = "".join(f"00:{n:02d}:10 step {n} loss {3 - n / 90:.4f}\n" for n in range(1, 59))


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (CLOCK.replace("{}", ""), {}),
        (CLOCK.replace("{}", ""), {"metrics_at": datetime(2025, 8, 20, 15, tzinfo=UTC)}),
        (CLOCK.replace("{}", ""), {"record": "2025-08-20T10:30:00 2025-08-20T11:05:00"}),
        (ELAPSED, {"record": "2025-08-20T00:00:00 2025-08-20T01:05:00"}),
        (ELAPSED, {"metrics_at": datetime(2025, 8, 20, 0, 0, tzinfo=UTC)}),
        ("2025-08-20 00:30:00 INFO up\n" + ELAPSED, {}),
        ("2025-08-20 09:30:00 INFO up\n" + ELAPSED, {}),
        (ELAPSED, {"record": "2025-08-20T00:20:00 2025-08-20T01:25:00"}),
        ("[00:09:10] step 0 loss 4\n" + ELAPSED,
         {"record": "2025-08-20T00:20:00 2025-08-20T01:25:00"}),
        (CLOCK.replace("{}", ""), {"record": "2025-08-18T09:58:00 2025-08-20T11:05:00"}),
        (CLOCK.replace("{}", "")
         + "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-08-20T11:01:00 ***\n", {}),
        (CLOCK.replace("{}", "").replace(":10 ", ":75 "),
         {"record": "2025-08-20T09:58:00 2025-08-20T11:05:00"}),
    ],
    ids=["no day known", "hours beside", "begins before the job", "from nothing", "near midnight",
         "back by half an hour", "back by hours", "elapsed after midnight",
         "loading after midnight", "longer than a day", "a date at the end alone", "no times"],
)  # fmt: skip
def test_what_is_no_time_of_a_day(tmp_path: Path, text: str, known: dict[str, Any]) -> None:
    """Time that has passed, a zone of its own, another run's: left undated."""
    assert times_alone(tmp_path, text, **known) is None
