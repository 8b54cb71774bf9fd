"""
A host of a few beside its own past: its CPUs came under pressure as the run became slower.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 3, 4, 5, tzinfo=UTC)
SACCT = (
    "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList|AllocTRES\n"
    "92|seg|RUNNING|0:0|2026-03-04T05:00:00|Unknown|1|kx7|gres/gpu=2,node=1\n"
)
FAST_S, SLOW_S, EPOCHS, TURN = 60, 90, 48, 20


def epochs(turn: int | None, fine: int = 1) -> tuple[str, float, float]:
    """nnU-Net's lines, which count epochs alone, when it turned slow, and when the log ends; with
    so many times as many of them."""
    at, lines, turned = BEGAN + timedelta(seconds=30), [], 0.0
    for n in range(EPOCHS * fine):
        slow = turn is not None and n >= turn * fine
        turned = turned or ((at - BEGAN).total_seconds() if slow else 0.0)
        lines.append(f"{at:%Y-%m-%d %H:%M:%S}.000000: Epoch {n} \n")
        at += timedelta(seconds=(SLOW_S if slow else FAST_S) / fine)
        lines.append(f"{at:%Y-%m-%d %H:%M:%S}.000000: train_loss {-0.2 - n / fine / 100:.4f} \n")
    return "".join(lines), turned, (at - BEGAN).total_seconds()


def record(others: int) -> str:
    more = f"|{others + 1}|kx[7-{7 + others}]|gres/gpu={2 * others + 2},node={others + 1}"
    return SACCT.replace("|1|kx7|gres/gpu=2,node=1", more) if others else SACCT


def judged(
    folder: Path,
    *,
    others: int = 0,
    turn: int | None = TURN,
    queue: float = 90,
    waits: float = 0.8,
    off_s: float = 0,
    left: float = 120,
    short: float = 0.0,
    fine: int = 1,
) -> Verdict:
    """A queue and a share of waiting that begin as the run turned slow, or so much later; so many
    GiB that are left then, and the share of waiting for memory."""
    log, turned, ends = epochs(turn, fine)
    since = (turned or 1200.0) + off_s
    rows, waited, lacked = [], 0.0, 0.0
    scrape_s = 15 if fine == 1 else 30
    for at in range(0, int(ends), scrape_s):
        on = at >= since
        waited += scrape_s * (waits if on else 0.04)
        lacked += scrape_s * short if on else 0.0
        stamp = int((BEGAN.timestamp() + at) * 1000)
        rows += [
            f'node_procs_running{{instance="kx7:9100"}} {queue if on else 12 + at % 4} {stamp}',
            f'node_pressure_cpu_waiting_seconds_total{{instance="kx7:9100"}} {waited:.2f} {stamp}',
            f'node_memory_MemAvailable_bytes{{instance="kx7:9100"}}'
            f" {(left if on else 120) * 2**30:.0f} {stamp}",
            f'node_pressure_memory_waiting_seconds_total{{instance="kx7:9100"}} {lacked:.2f}'
            f" {stamp}",
            f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",Hostname="kx7"}} 250 {stamp}',
        ]
        own = rows[-5:]
        for n in range(8, 8 + others):
            calm = [row.replace("kx7", f"kx{n}") for row in own if "pressure_cpu" not in row]
            rows += [re.sub(r" \S+ (\d+)$", rf" {12 + at % 4} \1", row)
                     if "procs_running" in row else row for row in calm]  # fmt: skip
            rows.append(f'node_pressure_cpu_waiting_seconds_total{{instance="kx{n}:9100"}}'
                        f" {at * 0.04:.2f} {stamp}")  # fmt: skip
    (folder / "node.prom").write_text("\n".join(rows) + "\n")
    (folder / "slurm-92.out").write_text(log)
    (folder / "sacct.psv").write_text(record(others))
    return diagnose(collect(Request((str(folder),))))


def test_the_queue_grew_as_the_run_became_slower(tmp_path: Path) -> None:
    """Told, and not with confidence: its own loaders make a queue as well."""
    verdict = judged(tmp_path)

    assert verdict.code == "D5"
    assert [place.host for place in verdict.culprits] == ["kx7"]
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    ("changed", "sound"),
    [
        ({"queue": 14, "waits": 0.04}, False),
        ({"queue": 25}, False),
        ({"waits": 0.1}, False),
        ({"off_s": 900}, False),
        ({"off_s": -600}, False),
        ({"turn": None}, True),
    ],
    ids=["no queue", "a little longer", "nobody waited", "later", "before", "as fast as ever"],
)
def test_near_misses(tmp_path: Path, changed: dict[str, float], sound: bool) -> None:
    """What goes on being slow for no reason known is not called sound either."""
    verdict = judged(tmp_path, **changed)  # type: ignore[arg-type]

    assert verdict.code == ("G1" if sound else None)


@pytest.mark.parametrize(("off_s", "code"), [(0, "D5"), (900, None), (-600, None)])
def test_lines_that_come_faster_than_readings(
    tmp_path: Path, off_s: float, code: str | None
) -> None:
    """Some points of the pace are over before a rate can be told."""
    assert judged(tmp_path, off_s=off_s, fine=15).code == code


@pytest.mark.parametrize("off_s", [0, 1500])
@pytest.mark.parametrize("others", [1, 3])
def test_the_queue_of_one_of_a_few_grew(tmp_path: Path, others: int, off_s: float) -> None:
    """It is that host's, and never every host's: the middle of two is half the loaded one's."""
    verdict = judged(tmp_path, others=others, queue=300, off_s=off_s)

    assert [place.host for place in verdict.culprits] == ([] if off_s else ["kx7"])
    assert verdict.code == (None if off_s else "D5")


CALM = {"queue": 14, "waits": 0.04}


def test_the_memory_was_filled_as_the_run_became_slower(tmp_path: Path) -> None:
    """Told, and not with confidence: the run itself may have filled it."""
    verdict = judged(tmp_path, left=3, short=0.35, **CALM)

    assert (verdict.code, verdict.fault_class) == ("D5", "memory-pressure")
    assert [place.host for place in verdict.culprits] == ["kx7"]
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    "changed",
    [{"left": 90, "short": 0.35}, {"left": 3, "short": 0.05},
     {"left": 3, "short": 0.35, "off_s": 900}, {"left": 3, "short": 0.35, "off_s": -600}],
    ids=["a limit of its own", "nobody waited", "later", "before"],
)  # fmt: skip
def test_memory_that_slowed_nothing(tmp_path: Path, changed: dict[str, float]) -> None:
    verdict = judged(tmp_path, **CALM, **changed)  # type: ignore[arg-type]

    assert verdict.code is None
