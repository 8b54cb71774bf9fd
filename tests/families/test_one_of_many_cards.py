"""C3 on a host whose other GPUs are another's, and what a baseline's environment tells D2."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

T0 = datetime(2026, 2, 11, 20, 2, tzinfo=UTC).timestamp()
GIB = 1024
SACCT = (
    "JobID|JobName|State|ExitCode|Submit|Start|End|Elapsed|NNodes|NodeList\n"
    "267|ft|CANCELLED by 14|0:0|2026-02-11T20:01:19|2026-02-11T20:02:00|2026-02-11T21:32:10"
    "|01:30:10|1|cn25\n"
)
LOG = (
    "2026-02-11 20:02:24 INFO loading model\n2026-02-11 20:03:12 INFO starting training\n"
    "slurmstepd: error: *** JOB 267 ON cn25 CANCELLED AT 2026-02-11T21:32:09 ***\n"
)


def exposition(held: dict[int, tuple[float, float]], busy: float = 0.0, until: float = 1e9) -> str:
    """Four GPUs every half minute: of each from which second on it holds how many MiB, and how
    busy all are until when."""
    lines = []
    for at in range(-300, 5700, 30):
        ms = int((T0 + at) * 1000)
        for gpu in range(4):
            since, mib = held.get(gpu, (1e9, 0.0))
            labels = f'{{gpu="{gpu}",Hostname="cn25",modelName="NVIDIA A100"}}'
            used = mib if since <= at <= 5400 else 4
            active = busy if at <= until else 0.0
            lines += [
                f"DCGM_FI_DEV_FB_USED{labels} {used} {ms}",
                f"DCGM_FI_DEV_GPU_UTIL{labels} {100 * active} {ms}",
                f"DCGM_FI_PROF_SM_ACTIVE{labels} {active} {ms}",
                f"DCGM_FI_DEV_POWER_USAGE{labels} {(at // 30) % 2 + 86} {ms}",
            ]
    return "\n".join(lines) + "\n"


def judged(folder: Path, metrics: str, behind: str = "") -> Verdict:
    (folder / "job.log").write_text(LOG + behind)
    (folder / "sacct.txt").write_text(SACCT)
    (folder / "metrics.prom").write_text(metrics)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("behind", ["", LOG.splitlines()[-1].replace("JOB 267", "STEP 267.0")])
def test_the_card_that_took_memory_with_the_job_and_ran_nothing(
    tmp_path: Path, behind: str
) -> None:
    """The cancel, of the job and of its step, is the scheduler's, and no sign of life of the
    program."""
    verdict = judged(tmp_path, exposition({2: (60, 17 * GIB)}), behind)

    assert (verdict.code, verdict.confidence < 0.8) == ("C3", True)
    assert [(place.host, place.gpu) for place in verdict.culprits] == [("cn25", "2")]


def test_the_cancel_in_a_log_of_its_own(tmp_path: Path) -> None:
    """Standard error that holds nothing but the scheduler's words dates nothing of the program."""
    *own, cancel = LOG.splitlines(keepends=True)
    (tmp_path / "job.err").write_text(cancel)
    (tmp_path / "job.log").write_text("".join(own))
    (tmp_path / "sacct.txt").write_text(SACCT)
    (tmp_path / "metrics.prom").write_text(exposition({2: (60, 17 * GIB)}))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.confidence < 0.8) == ("C3", True)
    assert [(place.host, place.gpu) for place in verdict.culprits] == [("cn25", "2")]


@pytest.mark.parametrize(
    ("held", "busy"),
    [
        ({2: (-300, 17 * GIB)}, 0.0),  # held before the job began: another's
        ({1: (60, 17 * GIB), 2: (60, 17 * GIB)}, 0.0),  # two of them
        ({2: (60, 17 * GIB)}, 0.7),  # at work
        ({}, 0.0),
    ],
)
def test_near_misses_name_no_card(
    tmp_path: Path, held: dict[int, tuple[float, float]], busy: float
) -> None:
    """Which card was the job's is told by nothing else."""
    assert judged(tmp_path, exposition(held, busy)).code != "C3"


ENVIRONMENT = "+ env\nCUDA_HOME=/usr/local/cuda\nNCCL_IB_HCA=mlx5\nOMP_NUM_THREADS=8\n"


def run(folder: Path, extra: str, took_ms: float, ran: float) -> str:
    folder.mkdir()
    start = datetime(2026, 2, 11, 20, 2, tzinfo=UTC).timestamp()
    steps, lines = [], []
    for n in range(1, 301):
        at = datetime.fromtimestamp(start + n * took_ms / 1000, UTC)
        steps.append(f"{at:%Y-%m-%d %H:%M:%S} iter {n}: loss {7 - n / 100:.4f},"
                     f" time {took_ms + n % 7:.2f}ms")  # fmt: skip
    for at_s in range(0, int(300 * took_ms / 1000), 15):
        for gpu in range(4):
            labels = f'{{gpu="{gpu}",Hostname="cn25",modelName="NVIDIA A100"}}'
            ms = int((start + at_s) * 1000)
            lines += [f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{labels} {ran} {ms}",
                      f"DCGM_FI_DEV_GPU_UTIL{labels} {100 * ran} {ms}",
                      f"DCGM_FI_DEV_POWER_USAGE{labels} {300 * ran} {ms}"]  # fmt: skip
    (folder / "job.log").write_text(
        ENVIRONMENT + extra + "config: steps=300 batch=8 seq=2048 model=3b dtype=bf16\n"
        + "\n".join(steps) + "\n"
    )  # fmt: skip
    (folder / "metrics.prom").write_text("\n".join(lines) + "\n")
    return str(folder)


@pytest.mark.parametrize(("extra", "sure"), [("", True), ("CUDA_LAUNCH_BLOCKING=1\n", False)])
def test_a_debugging_setting_that_the_faster_baseline_lacks(
    tmp_path: Path, extra: str, sure: bool
) -> None:
    """Both print their environment: that it stands in one alone is the difference."""
    slow = run(tmp_path / "slow", "CUDA_LAUNCH_BLOCKING=1\n", 2000, 0.66)
    base = run(tmp_path / "base", extra, 1350, 0.97)
    verdict = diagnose(collect(Request((slow,), baseline=base)))

    assert (verdict.code, verdict.fault_class) == ("D2", "launch-blocking")
    assert (verdict.confidence >= 0.8) is sure
    assert verdict.comparison is not None
    named = {(one.name, one.ours, one.theirs) for one in verdict.comparison.settings}
    assert (("CUDA_LAUNCH_BLOCKING", "1", "not set") in named) is sure


def undated(folder: Path, log: str, metrics: str) -> Verdict:
    (folder / "sacct.txt").write_text(SACCT)
    (folder / "job.log").write_text(log + LOG.splitlines()[-1] + "\n")
    (folder / "metrics.prom").write_text(metrics)
    return diagnose(collect(Request((str(folder),))))


MORE = {
    "mapping": "Map: 198000 examples\nMap: 199000 examples\n",
    "amid a bar": "Tokenizing:  41%|####      | 410/1000 [10:03<14:21,  1.46s/it]\n",
    "a server": "INFO:     Uvicorn running on http://0.0.0.0:8000\nINFO waiting for requests\n",
    "done": "epoch 3 loss 0.3\nTraining finished, keeping the node\n",
}


@pytest.mark.parametrize("log", MORE.values(), ids=MORE)
def test_a_card_idles_while_its_program_does_something_else(tmp_path: Path, log: str) -> None:
    """Prepares data, serves, or is done."""
    verdict = undated(tmp_path, log, exposition({2: (60, 17 * GIB)}))

    assert verdict.code != "C3"


LOADED = "Loading checkpoint shards: 100%|##########| 7/7 [00:33<00:00,  4.8s/it]\n"


def test_a_card_that_idles_beside_a_log_without_times(tmp_path: Path) -> None:
    """It held memory and ran nothing for an hour and a half: when the log's last line was printed
    nothing says, so it is told with little confidence."""
    verdict = undated(tmp_path, LOADED, exposition({2: (60, 17 * GIB)}))

    assert (verdict.code, verdict.confidence <= 0.6) == ("C3", True)
    assert any("none bears a time" in text for text in verdict.cannot_decide)


@pytest.mark.parametrize(
    ("held", "busy"),
    [({2: (60, 17 * GIB)}, 0.4), ({2: (4000, 17 * GIB)}, 0.0), ({}, 0.0)],
    ids=["at work", "memory taken late", "none held"],
)
def test_a_log_without_times_alone_is_no_hang(
    tmp_path: Path, held: dict[int, tuple[float, float]], busy: float
) -> None:
    """Its host may have prepared data for all that was read."""
    assert undated(tmp_path, LOADED, exposition(held, busy)).code != "C3"


STEPS = "".join(f"step {n}/9000 loss {4 - n / 900:.4f}\n" for n in range(10, 1500, 5))


def test_a_card_that_stops_working_beside_a_log_without_times(tmp_path: Path) -> None:
    """Its steps were printed while it worked: since then the run stood still."""
    verdict = undated(tmp_path, STEPS, exposition({2: (60, 17 * GIB)}, 0.8, until=1800))

    assert (verdict.code, verdict.confidence < 0.8) == ("C3", True)
    assert [(place.host, place.gpu) for place in verdict.culprits] == [("cn25", "2")]
    assert verdict.onset is not None
    assert abs(verdict.onset.timestamp() - T0 - 1860) <= 60


def test_slurms_own_dates_are_not_the_runs(tmp_path: Path) -> None:
    """It dates its head alone, prints few steps, and Slurm when it ended it."""
    (tmp_path / "sacct.txt").write_text(SACCT)
    (tmp_path / "job.log").write_text(
        LOG.splitlines()[0] + "\n" + "".join(STEPS.splitlines(keepends=True)[:40])
        + LOG.splitlines()[-1].replace("JOB 267", "STEP 267.0") + "\n" + LOG.splitlines()[-1]
        + "\nsrun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
    )  # fmt: skip
    (tmp_path / "metrics.prom").write_text(exposition({2: (60, 17 * GIB)}, 0.8, until=1800))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.confidence < 0.8) == ("C3", True)
    assert [(place.host, place.gpu) for place in verdict.culprits] == [("cn25", "2")]


def table(rows: int, below: str = "took {:.1f}") -> str:
    """Rows of an unknown form, each with a line below it."""
    return "".join(f"~ fit {n} {1 / n:.4f} {2 / n:.3f}\n~ held {n} {1.2 / n:.4f} {2.1 / n:.3f}\n"
                   f"{below.format(n * 140.2)}\n" for n in range(1, rows + 1))  # fmt: skip


@pytest.mark.parametrize(
    ("log", "code"),
    [
        (table(12), "C3"),
        (table(12, "at {0:.1f} of {0:.0f}"), "C3"),
        (table(4), None),
        (table(12, "held"), None),
        (table(12) + "writing 3 of 9 exports\n", None),
    ],
    ids=["one number below", "two", "a few rows", "no number", "something else"],
)
def test_a_card_that_stops_beside_rows_without_times(
    tmp_path: Path, log: str, code: str | None
) -> None:
    """The line below each row ends the log as the rows themselves would."""
    verdict = undated(tmp_path, log, exposition({2: (60, 17 * GIB)}, 0.8, until=1800))

    assert (verdict.code if verdict.code == "C3" else None) == code
    assert verdict.code != "C3" or verdict.confidence < 0.8


@pytest.mark.parametrize(
    ("log", "until"),
    [
        (STEPS, 5400.0),
        (STEPS, 4800.0),
        (STEPS + "Training finished, keeping the node\n", 1800.0),
        (STEPS + "INFO:     Uvicorn running on http://0.0.0.0:8000\n", 1800.0),
        (STEPS + "".join(f"exporting row {n}\n" for n in range(40)), 1800.0),
    ],
    ids=["to the end", "minutes before it", "done", "serves", "went on with something else"],
)
def test_near_misses_of_a_card_that_stops(tmp_path: Path, log: str, until: float) -> None:
    """It worked on, or the program had come to its end."""
    metrics = exposition({2: (60, 17 * GIB)}, 0.8, until)

    assert undated(tmp_path, log, metrics).code != "C3"


def test_an_idle_card_among_several_of_one_job(tmp_path: Path) -> None:
    """The others may wait for it."""
    several = SACCT.replace("NodeList\n", "NodeList|AllocTRES\n").replace(
        "|cn25\n", "|cn25|cpu=32,gres/gpu=4,node=1\n"
    )
    (tmp_path / "sacct.txt").write_text(several)
    (tmp_path / "job.log").write_text(STEPS + LOG.splitlines()[-1] + "\n")
    (tmp_path / "metrics.prom").write_text(exposition({2: (60, 17 * GIB)}, 0.8, until=1800))

    assert diagnose(collect(Request((str(tmp_path),)))).code != "C3"


def test_the_limit_ends_it_as_well(tmp_path: Path) -> None:
    """A run that stood still to its time limit."""
    limit = SACCT.replace("CANCELLED by 14", "TIMEOUT")
    (tmp_path / "sacct.txt").write_text(limit)
    ended = LOG.splitlines()[-1].replace(" ***", " DUE TO TIME LIMIT ***")
    (tmp_path / "job.log").write_text(f"{STEPS}{ended.replace('***', '***', 1)}\n")
    (tmp_path / "metrics.prom").write_text(exposition({2: (60, 17 * GIB)}, 0.8, until=1800))

    assert diagnose(collect(Request((str(tmp_path),)))).code == "C3"


def host_of(stops: float, others: dict[int, tuple[float, float, float]]) -> str:
    """Four GPUs every half minute: GPU 2 holds memory from 60 s on, works up to `stops` and keeps
    its memory to 5,000 s; of others from, up to and how busy they hold memory and work."""
    lines = []
    held = {2: (60.0, 5000.0, 0.8), **others}
    for at in range(-300, 5700, 30):
        for gpu in range(4):
            since, until, busy = held.get(gpu, (1e9, 0.0, 0.0))
            has = since <= at <= until
            works = has and (gpu != 2 or at <= stops)
            labels = f'{{gpu="{gpu}",Hostname="cn25",modelName="NVIDIA A100"}}'
            told = {
                "FB_USED": 17 * GIB if has else 4,
                "POWER_USAGE": 200 if works else 60 + at // 30 % 2,
                "GPU_UTIL": 100 * busy * works,
            }
            for name, value in told.items():
                lines.append(f"DCGM_FI_DEV_{name}{labels} {value} {int((T0 + at) * 1000)}")
    return "\n".join(lines) + "\n"


def stamped(until: int) -> str:
    """A step every 15 s from 75 s on."""
    steps = range(75, until, 15)
    return "".join(
        f"{datetime.fromtimestamp(T0 + at, UTC):%Y-%m-%d %H:%M:%S} step {n}/9000 loss"
        f" {4 - n / 900:.4f}\n"
        for n, at in enumerate(steps, 1)
    )


def timed(ms: int, count: int) -> str:
    return "".join(
        f"| step {n * 10:5d} | loss {4 - n / 900:.4f} | {ms}.{n % 7} ms | 88.1k tok/s |\n"
        for n in range(1, count + 1)
    )


TENANTS = {0: (-300.0, 3000.0, 0.7), 1: (600.0, 1e9, 0.6)}


def without_record(folder: Path, log: str, metrics: str) -> Verdict:
    (folder / "job.log").write_text(log)
    (folder / "metrics.prom").write_text(metrics)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("log", [stamped(1800), timed(1740, 100)], ids=["dated", "undated"])
def test_the_card_that_stopped_as_the_log_did(tmp_path: Path, log: str) -> None:
    """Others of its host come and go; its memory was given back in the end.  Without times the
    steps' own add up to as long as it worked."""
    verdict = without_record(tmp_path, log, host_of(1800, TENANTS))

    assert (verdict.code, verdict.confidence < 0.8) == ("C3", True)
    assert [(place.host, place.gpu) for place in verdict.culprits] == [("cn25", "2")]


@pytest.mark.parametrize(
    ("log", "stops", "others"),
    [
        (stamped(1200), 1800.0, TENANTS),
        (stamped(3600), 1800.0, TENANTS),
        (timed(870, 100), 1800.0, TENANTS),
        (timed(1740, 100).replace(" ms", ""), 1800.0, TENANTS),
        (timed(1740, 100) + "Training finished, keeping the node\n", 1800.0, TENANTS),
        (stamped(1800), 4500.0, TENANTS),
    ],
    ids=["stopped later", "stopped before", "steps of half the time", "no times", "done",
         "briefly"],
)  # fmt: skip
def test_a_card_that_stopped_at_another_time_is_another_tenants(
    tmp_path: Path, log: str, stops: float, others: dict[int, tuple[float, float, float]]
) -> None:
    """A notebook may hold its memory as long as it likes."""
    assert without_record(tmp_path, log, host_of(stops, others)).code != "C3"


@pytest.mark.parametrize(
    ("until", "state", "found"),
    [(1800.0, "RUNNING", True), (5400.0, "RUNNING", False), (1800.0, "COMPLETED", False)],
    ids=["rests", "works on", "its end is known"],
)
def test_a_card_that_stopped_while_its_job_is_recorded_as_running(
    tmp_path: Path, until: float, state: str, found: bool
) -> None:
    """Its log bears no time: the card has rested for an hour when the record was taken."""
    rows = SACCT.replace("CANCELLED by 14", state).replace("2026-02-11T21:32:10", "Unknown")
    (tmp_path / "sacct.txt").write_text(rows)
    (tmp_path / "job.log").write_text(STEPS)
    (tmp_path / "metrics.prom").write_text(exposition({2: (60, 17 * GIB)}, 0.8, until))

    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert rows != SACCT
    assert (verdict.code == "C3") is found
    assert verdict.confidence < 0.8
