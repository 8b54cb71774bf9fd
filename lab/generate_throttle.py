"""
Runs whose GPUs' clocks do something, made up sample by sample.

    python lab/generate_throttle.py tests/scenarios

writes `run/metrics.prom` and `run/job.log` of the scenarios `gpu_throttled_one_of_many`,
`gpu_soft_power_cap_everywhere` and `gpu_idle_after_job_end`.  Values are what vendors document
for the parts (A100: 1410 MHz, 400 W; H100: 1980 MHz, 700 W) with noise on top; nothing here is
taken from the family that judges them.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

HOSTS = ("node01", "node02", "node03", "node04")
GPUS = range(8)
SCRAPE_S = 30
SAMPLES = 41
BEGIN = datetime(2026, 1, 14, 9, 0, tzinfo=UTC)
FIELDS = (
    ("DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz)."),
    ("DCGM_FI_DEV_POWER_USAGE", "Power draw (in W)."),
    ("DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C)."),
    ("DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %)."),
    ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "Clock event reasons (bitmask)."),
)


@dataclass(frozen=True)
class Sample:
    """One GPU at one scrape, in the units of the exporter."""

    clock: float
    power: float
    heat: float
    util: float
    reasons: int = 0

    def values(self) -> tuple[str, ...]:
        return (
            f"{self.clock:.0f}",
            f"{self.power:.1f}",
            f"{self.heat:.0f}",
            f"{self.util:.0f}",
            str(self.reasons),
        )


Device = Callable[[random.Random, str, int, float], Sample]
"""(noise, host, gpu, seconds since the beginning) -> what is read."""


@dataclass(frozen=True)
class Run:
    """A scenario: its devices, how their exporter spells labels, and the job's pace."""

    name: str
    device: Device
    model: str
    host_label: str
    pace_s: Callable[[float], float]
    planned: int
    ends_s: float
    finished: bool


# --- what the devices do ------------------------------------------------------------------------


def one_braked(noise: random.Random, host: str, gpu: int, at: float) -> Sample:
    """From the sixth minute on the supply of GPU 5 of node03 asserts its power brake."""
    warmth = 52 + gpu % 4 + noise.uniform(-1, 1)
    if at < 360:
        return Sample(1410, 312 + noise.gauss(0, 9), warmth + 9, 99 + noise.choice((0, 1)))
    if (host, gpu) == ("node03", 5):
        return Sample(
            noise.choice((195, 200, 210)), 88 + noise.gauss(0, 2), warmth - 12, 100, 0x88
        )
    return Sample(1410, 158 + noise.gauss(0, 6), warmth - 3, 100)


def all_capped(noise: random.Random, host: str, gpu: int, at: float) -> Sample:
    """Every card runs into its 700 W; the last host has the lighter pipeline stage."""
    del at
    lot = random.Random(f"{host}/{gpu}").gauss(0, 45)
    if host == "node04":
        return Sample(1905 + noise.gauss(0, 25), 575 + noise.gauss(0, 15), 58, 97)
    clock = 1440 + lot + noise.gauss(0, 40)
    return Sample(clock, 694 + noise.gauss(0, 4), 66 + noise.gauss(0, 1.5), 100, 0x4)


def idle_later(noise: random.Random, host: str, gpu: int, at: float) -> Sample:
    """The job ends after eleven minutes; some cards keep their clocks, some drop them."""
    warmth = 50 + gpu % 4
    if at < 660:
        return Sample(1410, 330 + noise.gauss(0, 10), warmth + 10, 99)
    rests = (host, gpu) in (("node02", 3), ("node04", 0)) or gpu == 7
    return Sample(210 if rests else 1410, 61 if rests else 84, warmth - 14, 0, 0x1)


RUNS = (
    Run("gpu_throttled_one_of_many", one_braked, "NVIDIA A100-SXM4-80GB", "Hostname",
        lambda at: 1.21 if at < 360 else 3.62, 5000, 1215, finished=False),
    Run("gpu_soft_power_cap_everywhere", all_capped, "NVIDIA H100 80GB HBM3", "hostname",
        lambda at: 2.05, 570, 1180, finished=True),
    Run("gpu_idle_after_job_end", idle_later, "NVIDIA A100-SXM4-80GB", "Hostname",
        lambda at: 1.19, 540, 655, finished=True),
)  # fmt: skip


# --- files --------------------------------------------------------------------------------------


def exposition(run: Run) -> Iterator[str]:
    """Prometheus text, metric by metric, with a timestamp on every sample."""
    noise = random.Random(run.name)
    read: dict[tuple[str, int], list[Sample]] = {
        (host, gpu): [run.device(noise, host, gpu, n * SCRAPE_S) for n in range(SAMPLES)]
        for host in HOSTS
        for gpu in GPUS
    }
    for column, (metric, meaning) in enumerate(FIELDS):
        yield f"# HELP {metric} {meaning}"
        yield f"# TYPE {metric} gauge"
        for (host, gpu), samples in read.items():
            labels = f'gpu="{gpu}",modelName="{run.model}",{run.host_label}="{host}"'
            for n, sample in enumerate(samples):
                when = int((BEGIN.timestamp() + n * SCRAPE_S) * 1000) + gpu * 7
                yield f"{metric}{{{labels}}} {sample.values()[column]} {when}"


def log(run: Run) -> Iterator[str]:
    """Rank 0's own lines: a step every ten, as long as the run goes on."""
    noise = random.Random(run.name + " log")

    def stamped(at: float, text: str) -> str:
        when = BEGIN + timedelta(seconds=at)
        return f"{when:%Y-%m-%d %H:%M:%S},{when.microsecond // 1000:03d} INFO [rank 0] {text}"

    at, step = 4.0, 0
    yield stamped(at, f"world size {len(HOSTS) * len(GPUS)}, {run.planned} steps planned")
    while at < run.ends_s and step < run.planned:
        took_s = run.pace_s(at) * noise.gauss(1, 0.01)
        at, step = at + took_s, step + 1
        if step == 1 or step % 10 == 0:
            loss = 2.1 + 8.6 * math.exp(-step / 90) + noise.gauss(0, 0.02)
            yield stamped(at, f"step {step}/{run.planned} loss {loss:.4f} grad_norm"
                          f" {0.6 + noise.uniform(0, 0.2):.3f} lr 3.00e-04"
                          f" step_time {took_s * 1000:.1f} ms")  # fmt: skip
    if run.finished:
        yield stamped(
            at, f"training finished: {step} steps in {at - 4:.1f} s, final loss {loss:.4f}"
        )


def main() -> None:
    root = Path(sys.argv[1])
    for run in RUNS:
        folder = root / run.name / "run"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "metrics.prom").write_text("\n".join(exposition(run)) + "\n", "utf-8")
        (folder / "job.log").write_text("\n".join(log(run)) + "\n", "utf-8")


if __name__ == "__main__":
    main()
