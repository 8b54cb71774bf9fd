"""A record in local time beside a log and metrics in UTC, as of a container that keeps UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.facts import Facts

BEGAN = datetime(2026, 1, 14, 17, 4, tzinfo=UTC)
LASTED, BESIDE = timedelta(hours=2), timedelta(minutes=10)
ENDED = BEGAN + LASTED
ROW = (
    "JobID|JobName|State|ExitCode|Start|End|Timelimit|NNodes|NodeList\n"
    "8308|gpt|TIMEOUT|0:0|{:%FT%T}|{:%FT%T}|02:00:00|1|node1\n"
)


def read(
    folder: Path,
    off: timedelta,
    log_off: timedelta = timedelta(0),
    *,
    host: str = "node1",
) -> Facts:
    """The record is `off` from the metrics, which are in UTC, and the log `log_off` from them."""
    times = [BEGAN + log_off + n * LASTED / 120 for n in range(1, 120)]
    (folder / "train.log").write_text("".join(
        f"[{at:%F %T}] iteration {n:8d}/ 600 | lm loss: {9 - n / 20:.3f} |\n"
        for n, at in enumerate(times, 1)
    ))  # fmt: skip
    (folder / "sacct.txt").write_text(ROW.format(BEGAN + off, ENDED + off))
    first, last = int((BEGAN - BESIDE).timestamp()), int((ENDED + BESIDE).timestamp())
    works = range(int(BEGAN.timestamp()) + 180, int(ENDED.timestamp()))
    (folder / "metrics.prom").write_text("".join(
        f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",UUID="GPU-0",Hostname="{host}"}}'
        f" {600 if at in works else 90} {at * 1000}\n"
        for at in range(first, last, 30)
    ))  # fmt: skip
    return collect(Request((str(folder),)))


def told(facts: Facts) -> tuple[datetime | None, datetime, list[str]]:
    """When the run began by its record, its first step, and the zones that times are read in."""
    track = facts.main_track(0)
    assert track is not None
    zones = [gap.reason.rpartition(" ")[2] for gap in facts.gaps if gap.need == "time zone"]
    return facts.last.started_at, datetime.fromtimestamp(track.at[0], UTC), zones


def zone(off: timedelta) -> str:
    minutes = int(off.total_seconds() / 60)
    return f"UTC{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


HOURS = [timedelta(hours=hours) for hours in (2, -7, 5.5)]
IN_UTC = timedelta(0)


@pytest.mark.parametrize("off", HOURS, ids=zone)
def test_the_record_is_moved_and_the_log_stays(tmp_path: Path, off: timedelta) -> None:
    """Its steps lie within the record of that zone as they are, up to the limit."""
    facts = read(tmp_path, off)

    assert told(facts) == (BEGAN, BEGAN + timedelta(minutes=1), [zone(off), "UTC"])
    assert (facts.last.ended_at, diagnose(facts).code) == (ENDED, "F3")


@pytest.mark.parametrize("off", HOURS, ids=zone)
def test_a_log_in_the_records_zone_is_moved_with_it(tmp_path: Path, off: timedelta) -> None:
    facts = read(tmp_path, off, off)

    assert told(facts) == (BEGAN, BEGAN + timedelta(minutes=1), [zone(off)])
    assert diagnose(facts).code == "F3"


@pytest.mark.parametrize(
    ("off", "host"),
    [(timedelta(hours=2.2), "node1"), (timedelta(hours=2), "node7"), (IN_UTC, "node1")],
    ids=["no offset in use", "metrics of another host", "all in UTC"],
)
def test_near_misses(tmp_path: Path, off: timedelta, host: str) -> None:
    """All stays as it was read."""
    facts = read(tmp_path, off, host=host)

    assert told(facts) == (BEGAN + off, BEGAN + timedelta(minutes=1), ["UTC"])


RUNS = (
    "# {:%a %b %d %T} CET 2026\n"
    "   JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
    "    8308      a100      gpt    meier  R    {}:04:00      1 node1\n"
)


@pytest.mark.parametrize("log_off", [timedelta(hours=1), IN_UTC], ids=zone)
def test_a_job_that_runs_and_prints_no_more(tmp_path: Path, log_off: timedelta) -> None:
    """Its log is of the zone in which it begins as the job did: where it ends tells nothing."""
    here = timedelta(hours=1)
    read(tmp_path, here, log_off)
    (tmp_path / "sacct.txt").unlink()
    now = BEGAN + timedelta(hours=5)
    (tmp_path / "squeue.txt").write_text(RUNS.format(now + here, 5))
    with (tmp_path / "metrics.prom").open("a") as more:
        more.writelines(
            f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",UUID="GPU-0",Hostname="node1"}} 90 {at * 1000}\n'
            for at in range(int((ENDED + BESIDE).timestamp()), int(now.timestamp()), 30)
        )
    _, first, _ = told(collect(Request((str(tmp_path),))))

    assert first == BEGAN + timedelta(minutes=1)
