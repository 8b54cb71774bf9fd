"""A log in local time beside a record in UTC, where neither states a zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.facts import Facts

BEGAN = datetime(2026, 1, 14, 17, 4, tzinfo=UTC)
LASTED = timedelta(hours=2)
ENDED = BEGAN + LASTED
OFF = timedelta(hours=-7)
ROW = (
    "JobID|JobName|State|ExitCode|Submit|Start|End|Elapsed|Timelimit|NNodes|NodeList\n"
    "8308|gpt|{2}|0:0|{0:%FT%T}|{0:%FT%T}|{1:%FT%T}|02:00:00|02:00:00|1|node1\n"
)


def log(off: timedelta = OFF, lasted: timedelta = LASTED) -> str:
    """Steps to the end of the job, or for as long as is said, of a plan that is longer."""
    at = [BEGAN + off + n * lasted / 120 for n in range(1, 120)]
    return "".join(
        f"[{when:%F %T}] iteration {n:8d}/ 600 | lm loss: {9 - n / 20:.3f} |\n"
        for n, when in enumerate(at, 1)
    )


def powers(
    off: timedelta = timedelta(0),
    host: str = "node1",
    up: timedelta = timedelta(minutes=3),
    down: timedelta = LASTED,
) -> str:
    """Of a card that takes `up` work so long after the job's beginning, and lays it `down`, in
    metrics of half an hour more at both ends; `off` puts the work elsewhere."""
    first, last = BEGAN - timedelta(minutes=30), ENDED + timedelta(minutes=30)
    begins, ends = BEGAN + off + up, BEGAN + off + down
    if off:
        first, last = min(first, first + off), max(last, last + off)
    return "# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n" + "".join(
        f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",UUID="GPU-0",Hostname="{host}"}}'
        f" {600 if begins.timestamp() <= at < ends.timestamp() else 90} {at}\n"
        for at in range(int(first.timestamp()), int(last.timestamp()), 30)
    ) + "# EOF\n"  # fmt: skip


SHORT = log(lasted=timedelta(minutes=30))
"""Of a job of two hours."""


def read(folder: Path, text: str, metrics: str | None, state: str = "TIMEOUT") -> Facts:
    (folder / "train.log").write_text(text)
    (folder / "sacct.txt").write_text(ROW.format(BEGAN, ENDED, state))
    if metrics is not None:
        (folder / "metrics.om").write_text(metrics)
    return collect(Request((str(folder),)))


def first_step(facts: Facts) -> datetime:
    track = facts.main_track(0)
    assert track is not None
    return datetime.fromtimestamp(track.at[0], UTC)


@pytest.mark.parametrize("off_h", [-7, 2, -3.5])
@pytest.mark.parametrize("measured", [True, False], ids=["with metrics", "alone"])
def test_the_log_is_laid_into_the_record(tmp_path: Path, off_h: float, measured: bool) -> None:
    """Which stays where it is, and its steps go on to the limit."""
    facts = read(tmp_path, log(timedelta(hours=off_h)), powers() if measured else None)
    verdict = diagnose(facts)
    zones = [gap.reason.rpartition(" ")[2] for gap in facts.gaps if gap.need == "time zone"]

    assert facts.last.started_at == BEGAN
    assert first_step(facts) == BEGAN + timedelta(minutes=1)
    assert len(zones) == 2
    assert "UTC" in zones
    assert (verdict.code, verdict.confidence >= 0.8) == ("F3", True)


@pytest.mark.parametrize(
    ("text", "metrics"),
    [
        pytest.param(SHORT, powers(), id="fits-several"),
        pytest.param(SHORT, None, id="fits-several-and-alone"),
        pytest.param(log(), powers(timedelta(hours=3)), id="work-elsewhere"),
        pytest.param(log(), powers(host="node7"), id="work-of-another-host"),
        pytest.param(log(), powers(up=timedelta(hours=1)), id="work-taken-up-long-after"),
        pytest.param(log(), powers(down=timedelta(hours=1)), id="work-laid-down-long-before"),
        pytest.param(log(timedelta(hours=-7.2)), powers(), id="no-offset-in-use"),
        pytest.param(log(timedelta(0)), powers(), id="in-utc"),
    ],
)
def test_near_misses(tmp_path: Path, text: str, metrics: str | None) -> None:
    """Nothing tells one zone of several, or the metrics speak against it: all stays as read."""
    facts = read(tmp_path, text, metrics)
    read_as = datetime.strptime(text[1:20], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)

    assert facts.last.started_at == BEGAN
    assert abs(first_step(facts) - read_as) < timedelta(seconds=1)


def test_work_beside_the_log_makes_the_record_local(tmp_path: Path) -> None:
    """A container keeps UTC where its node does not: the log stays where it is."""
    facts = read(tmp_path, log(), powers(OFF))

    assert facts.last.started_at == BEGAN + OFF
    assert first_step(facts) == BEGAN + OFF + timedelta(minutes=1)


def test_steps_that_end_long_before_the_limit_are_not_ended_by_it(tmp_path: Path) -> None:
    """The zone is told as well by what is printed later."""
    lines = log().splitlines(keepends=True)
    last = f"[{ENDED + OFF - timedelta(seconds=20):%F %T}] waiting for the loader\n"
    facts = read(tmp_path, "".join([*lines[:95], last]), powers())

    assert first_step(facts) == BEGAN + timedelta(minutes=1)
    assert diagnose(facts).code != "F3"
