"""
Runs that slow down, stand still or lose a part, made up sample by sample.

    python lab/generate_slow.py tests/scenarios [NAME...]

writes `run/metrics.prom.gz` (and a job log where the run has one) of every scenario in
`slow_runs.py`, `slow_training.py`, `undated_runs.py`, `workload_runs.py`, `anchored_runs.py`,
`fault_runs.py`, `paused_runs.py`, `storage_runs.py` and `compared_runs.py`, where a scenario has a
`baseline/` as well.  A world is a set of hosts with GPUs and adapters, a clock, and one function a
metric; what goes wrong is written there as a function of place and time, in the units of the
exporter.  Nothing here is taken from the families that judge it.
"""

from __future__ import annotations

import gzip
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

BEGIN = datetime(2026, 3, 4, 8, 0, tzinfo=UTC)
Value = Callable[[random.Random, Mapping[str, str], float], float | None]
"""(noise, labels, seconds since the beginning) -> what is read, or None where nothing is."""


@dataclass(frozen=True)
class Metric:
    """One metric of an exporter: over which labels it runs, and its value."""

    name: str
    over: tuple[str, ...]
    value: Value
    kind: str = "gauge"
    fixed: Mapping[str, str] = field(default_factory=dict)
    host_label: str | None = None
    """Where this metric's exporter calls the host otherwise than the world's others."""
    also: Callable[[Mapping[str, str]], Mapping[str, str]] | None = None
    """More labels of a series, by those it has."""


@dataclass(frozen=True)
class World:
    """A scenario: places, clock, metrics, and the job log's lines (time, text)."""

    name: str
    hosts: tuple[str, ...]
    metrics: tuple[Metric, ...]
    span_s: float
    scrape_s: float = 30.0
    gpus: int = 4
    devices: tuple[str, ...] = ("rdma0", "rdma1")
    host_label: str = "host"
    log: tuple[tuple[float | None, str], ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    folder: str = "run"
    """Another name for what a run is compared with: it has its own noise."""

    @property
    def seed(self) -> str:
        return self.name if self.folder == "run" else f"{self.name} {self.folder}"


def counter(rate: Callable[[Mapping[str, str], float], float], start: float = 0.0) -> Value:
    """A counter since boot: `start`, and what a rate a second adds up to, scrape by scrape."""
    held: dict[tuple[tuple[str, str], ...], tuple[float, float]] = {}

    def value(noise: random.Random, labels: Mapping[str, str], at: float) -> float:
        key = tuple(sorted(labels.items()))
        total, last = held.get(key, (start, 0.0))
        total += max(0.0, rate(labels, at)) * (at - last)
        held[key] = total, at
        return float(int(total))

    return value


def places(world: World, metric: Metric) -> Iterator[dict[str, str]]:
    """Every set of labels a metric has."""
    hosts = world.hosts if "host" in metric.over else world.hosts[:1]
    for host in hosts:
        label = metric.host_label or world.host_label
        base = {label: host} if "host" in metric.over or "first" in metric.over else {}
        rows = [base]
        if "gpu" in metric.over:
            rows = [{**row, "gpu": str(n)} for row in rows for n in range(world.gpus)]
        if "device" in metric.over:
            rows = [{**row, "device": d, "port": "1"} for row in rows for d in world.devices]
        for row in rows:
            yield {**row, **metric.fixed, **(metric.also(row) if metric.also else {})}


def exposition(world: World) -> Iterator[str]:
    """Prometheus text, a series after the other, with a timestamp on every sample."""
    for metric in world.metrics:
        yield f"# TYPE {metric.name} {metric.kind}"
        for labels in places(world, metric):
            noise = random.Random(f"{world.seed}{metric.name}{sorted(labels.items())}")
            written = ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()))
            late = random.Random(labels.get(world.host_label, "")).randrange(int(world.scrape_s))
            at = float(late)
            while at < world.span_s:
                value = metric.value(noise, labels, at)
                if value is not None:
                    when = int((BEGIN.timestamp() + at) * 1000)
                    yield f"{metric.name}{{{written}}} {value:.6g} {when}"
                at += world.scrape_s


def stamped(at: float, text: str) -> str:
    when = BEGIN + timedelta(seconds=at)
    return f"{when:%Y-%m-%d %H:%M:%S},{when.microsecond // 1000:03d} INFO [rank 0] {text}"


def steps(
    name: str,
    took: Callable[[float], float],
    *,
    until_s: float,
    planned: int,
    every: int = 10,
    begin_s: float = 20.0,
    finished: bool = True,
    world: int = 32,
) -> tuple[tuple[float, str], ...]:
    """A plain rank-0 log: a line every so many steps, each as long as `took` says at its time."""
    noise = random.Random(name + " log")
    out = [(begin_s, f"world size {world}, {planned} steps planned")]
    at, step, loss = begin_s, 0, 0.0
    while at < until_s and step < planned:
        seconds = took(at) * noise.gauss(1, 0.008)
        at, step = at + seconds, step + 1
        if step == 1 or step % every == 0:
            loss = 2.0 + 7.5 * 0.985**step + noise.gauss(0, 0.015)
            out.append((at, f"step {step}/{planned} loss {loss:.4f} grad_norm"
                            f" {0.5 + noise.uniform(0, 0.2):.3f} lr 3.00e-04"
                            f" step_time {seconds * 1000:.1f} ms"))  # fmt: skip
    if finished:
        out.append((at, f"training finished: {step} steps in {at - begin_s:.1f} s, final loss"
                        f" {loss:.4f}"))  # fmt: skip
    return tuple(out)


def write(world: World, root: Path) -> None:
    folder = root / world.name / world.folder
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(exposition(world)) + "\n"
    if world.metrics:
        with (
            (folder / "metrics.prom.gz").open("wb") as raw,
            gzip.GzipFile("", "wb", 9, raw, mtime=0) as file,
        ):
            file.write(text.encode())
    if world.log:
        lines = [text if at is None else stamped(at, text) for at, text in world.log]
        (folder / "job.log").write_text("\n".join(lines) + "\n", "utf-8")
    for name, content in world.files.items():
        (folder / name).write_text(content, "utf-8")


def main() -> None:
    import anchored_runs
    import compared_runs
    import fault_runs
    import paused_runs
    import slow_runs
    import slow_training
    import storage_runs
    import undated_runs
    import workload_runs

    root, wanted = Path(sys.argv[1]), sys.argv[2:]
    every = (slow_runs, slow_training, compared_runs, undated_runs, workload_runs, anchored_runs,
             fault_runs, paused_runs, storage_runs)  # fmt: skip
    for world in (world for module in every for world in module.WORLDS):
        if not wanted or world.name in wanted:
            write(world, root)


if __name__ == "__main__":
    main()
