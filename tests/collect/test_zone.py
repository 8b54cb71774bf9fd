"""Local times are put where the run's metrics, or its record, show them to belong, or left."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.facts import Facts
from flatline.model import Job, RecordCite, Records
from flatline.signals import CLOCK

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


def powers(
    first_h: float, last_h: float, off_h: float = 0.0, hung_h: float = 0.0, waits: int = 90
) -> str:
    """Of a GPU at work from three minutes after the run's beginning to its end; `off_h` puts the
    work elsewhere, `hung_h` ends it before the run's end, and it draws `waits` until then."""
    first, last = BEGAN + timedelta(hours=first_h), BEGAN + LASTED + timedelta(hours=last_h)
    begins = BEGAN + timedelta(hours=off_h, minutes=3)
    ends = BEGAN + LASTED + timedelta(hours=off_h - hung_h)
    times = range(int(first.timestamp()), int(last.timestamp()), 30)
    over = (ends + timedelta(hours=hung_h)).timestamp()

    def level(at: int) -> int:
        if not begins.timestamp() <= at < over:
            return 90
        return 600 if at < ends.timestamp() else waits

    return "# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n" + "".join(
        f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",UUID="GPU-0",Hostname="node1"}} {level(at)} {at}\n'
        for at in times
    ) + "# EOF\n"  # fmt: skip


@pytest.mark.parametrize(
    ("off_h", "window", "work_h", "moved"),
    [
        (5.5, (-0.3, 0.3), 0, True),
        (1, (-1.3, 0.3), 0, True),
        (5.5, (-0.3, 0.3), 0.4, False),
        (1, (0.06, 0.3), 0, False),
        (0, (-0.3, 0.3), 0, False),
        (1, (-1.3, -0.1), 0, False),
    ],
    ids=["half an hour beside", "mostly inside as read", "no work then", "beginning not seen",
         "in UTC", "end not seen"],
)  # fmt: skip
def test_the_work_of_its_gpus_tells_which_zone_of_several(
    tmp_path: Path, off_h: float, window: tuple[float, float], work_h: float, moved: bool
) -> None:
    began = BEGAN + timedelta(hours=off_h)
    (tmp_path / "train.log").write_text(log(off_h))
    (tmp_path / "sacct.txt").write_text(ROW.format(began, began + LASTED))
    (tmp_path / "metrics.om").write_text(powers(*window, work_h))
    read = collect(Request((str(tmp_path),)))

    assert read.last.started_at == (BEGAN if moved else began)


def test_a_run_that_hung_before_it_ended_is_where_its_metrics_are(tmp_path: Path) -> None:
    began = BEGAN + timedelta(hours=4)
    (tmp_path / "train.log").write_text(log(4))
    (tmp_path / "sacct.txt").write_text(ROW.format(began, began + LASTED))
    (tmp_path / "metrics.om").write_text(powers(-0.3, 0.3, hung_h=0.5))

    assert collect(Request((str(tmp_path),))).last.started_at == BEGAN


@pytest.mark.parametrize(("waits", "moved"), [(230, True), (90, False)])
def test_a_hung_run_that_held_its_gpus_tells_which_zone_of_several(
    tmp_path: Path, waits: int, moved: bool
) -> None:
    """A quarter of an hour beside it would fit as well: they fell idle as it ended, not before."""
    began = BEGAN + timedelta(hours=9)
    (tmp_path / "train.log").write_text(log(9))
    (tmp_path / "sacct.txt").write_text(ROW.format(began, began + LASTED))
    (tmp_path / "metrics.om").write_text(powers(-0.1, 0.4, hung_h=0.3, waits=waits))

    assert collect(Request((str(tmp_path),))).last.started_at == (BEGAN if moved else began)


@pytest.mark.parametrize(
    ("stated_h", "wanted_h"), [(2, 0), (0, 2), (3, -1), (9, 2)],
    ids=["theirs", "UTC", "another", "that of a container"],
)  # fmt: skip
def test_what_the_runs_log_states_its_records_have(
    tmp_path: Path, stated_h: int, wanted_h: int
) -> None:
    """As long as the log lies within them by it: that of a container may be elsewhere."""
    local = BEGAN + timedelta(hours=stated_h if stated_h == 9 else 2)
    lines = "".join(
        f"{local + timedelta(minutes=n):%FT%T}+0{stated_h}:00 step {n} loss {9 - n / 20}\n"
        for n in range(1, 99)
    )
    (tmp_path / "train.log").write_text(lines)
    began = BEGAN + timedelta(hours=2)
    (tmp_path / "sacct.txt").write_text(ROW.format(began, began + LASTED))
    read = collect(Request((str(tmp_path),)))

    assert read.last.started_at == BEGAN + timedelta(hours=wanted_h)


def beside(folder: Path, host: str, named: str, window: tuple[float, float], gpus: bool) -> Facts:
    """A run of five hours elsewhere as it is read, beside metrics of a host, and a log that names
    one or a record that does."""
    began = BEGAN + timedelta(hours=5)
    (folder / "train.log").write_text(log(5))
    if named.startswith("rank"):
        line = f"{named.split()[1]}:1:1 [0] NCCL WARN Cuda failure 'out of memory'\n"
        (folder / "rank0.log").write_text(line)
    elif named:
        (folder / "sacct.txt").write_text(
            ROW.format(began, began + LASTED).replace("node1", named)
        )
    text = powers(*window) if gpus else metrics(*window)
    (folder / "metrics.om").write_text(text.replace("node1", host))
    return collect(Request((str(folder),)))


@pytest.mark.parametrize(
    ("host", "named", "window", "gpus", "moved"),
    [
        ("node1", "node1", (-0.05, 0.1), False, True),
        ("node1.lan", "node1", (-0.05, 0.1), False, True),
        ("node7", "node1", (-0.05, 0.1), False, False),
        ("node7", "node1", (-0.05, 0.1), True, False),
        ("10.0.0.7", "node1", (-0.05, 0.1), False, False),
        ("node1", "rank node1", (-0.05, 0.1), False, True),
        ("node7", "rank node1", (-0.05, 0.1), False, False),
        ("node7", "", (-0.05, 0.1), False, False),
        ("node7", "", (-0.05, 0.1), True, True),
    ],
    ids=["its host", "with its domain", "another's", "another's GPUs", "an address",
         "a host of its log", "not that of its log", "no name", "both ends of the work"],
)  # fmt: skip
def test_the_metrics_that_move_a_run_are_known_to_be_its_own(
    tmp_path: Path, host: str, named: str, window: tuple[float, float], gpus: bool, moved: bool
) -> None:
    read = beside(tmp_path, host, named, window, gpus)
    track = read.main_track(0)
    told = [gap.need for gap in read.gaps if gap.need == CLOCK]

    assert track is not None
    there = abs(track.at[-1] - (BEGAN + LASTED).timestamp()) < 120
    assert there == moved
    assert bool(told) != moved
    assert moved or diagnose(read).confidence < 0.8


@pytest.mark.parametrize(
    ("off_h", "moved"),
    [(1, True), (5.5, True), (0, False), (0.3, False), (-3, False)],  # the last may hang
)
def test_a_running_jobs_log_is_not_of_the_future(
    tmp_path: Path, off_h: float, moved: bool
) -> None:
    """Its record counts seconds since 1970; its metrics end now, and its log an hour later."""
    cite = RecordCite("squeue.json", "8308", "State", "RUNNING")
    job = Job("8308", "gpt", "running", "RUNNING", cite, started_at=BEGAN - timedelta(hours=5),
              nodes=("node1",))  # fmt: skip
    (tmp_path / "train.log").write_text(log(off_h))
    (tmp_path / "metrics.om").write_text(metrics(-0.05, 0))
    read = collect(Request((str(tmp_path),)), None, (Records(jobs=(job,)),))
    track = read.main_track(0)
    assert track is not None
    assert (abs(track.at[-1] - (BEGAN + LASTED).timestamp()) < 120) == (moved or not off_h)


@pytest.mark.parametrize(
    ("zone", "moved"),
    [("EET", True), ("CET", False), ("", False)],
    ids=["that fits", "that does not", "none"],
)
def test_a_zone_that_the_log_names(tmp_path: Path, zone: str, moved: bool) -> None:
    """Of a run without a record, whose hosts nothing names."""
    began = BEGAN + timedelta(hours=2)
    head = f"{began:%a %b} {began.day:2d} {began:%T} {zone} {began:%Y}".replace("  2026", " 2026")
    (tmp_path / "train.log").write_text(f"{head}\n{log(2)}")
    (tmp_path / "metrics.om").write_text(metrics(-0.05, 0.1))
    track = collect(Request((str(tmp_path),))).main_track(0)

    assert track is not None
    off_s = track.at[-1] - (BEGAN + LASTED).timestamp()
    assert (abs(off_s) < 120) is moved
