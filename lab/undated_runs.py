"""The worlds of `generate_slow.py` whose steps carry no times, or whose GPUs differ by little."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta

from generate_slow import BEGIN, Metric, World, steps
from slow_runs import Labels, lamp

FOUR = tuple(f"pod{n:02d}" for n in range(1, 5))
Level = Callable[[Labels, float], float]


def metrics(power: Level, busy: Level, clock: Level, heat: Level) -> tuple[Metric, ...]:
    """dcgm-exporter: what a card draws, how busy it is, its clock (MHz) and its heat (°C)."""

    def noisy(level: Level, spread: float) -> Callable[..., float]:
        return lambda noise, labels, at: max(0.0, level(labels, at) + noise.gauss(0, spread))

    on = ("host", "gpu")
    return (
        Metric("DCGM_FI_DEV_POWER_USAGE", on, noisy(power, 6)),
        Metric("DCGM_FI_DEV_GPU_UTIL", on, noisy(busy, 0.4)),
        Metric("DCGM_FI_DEV_SM_CLOCK", on, noisy(clock, 3)),
        Metric("DCGM_FI_DEV_GPU_TEMP", on, noisy(heat, 0.7)),
    )


def nemo(
    name: str, took: Callable[[float], float], until_s: float
) -> tuple[tuple[None, str], ...]:
    """NeMo's lines, which say how long a step took and not when it was."""
    noise = random.Random(name)
    lines, at, step = [], 240.0, 0
    while at < until_s:
        seconds = took(at) * noise.gauss(1, 0.006) + (22 if step == 0 else 0)
        at += seconds
        if at < until_s:
            lines.append(
                f"Training epoch 0, iteration {step}/19999 | lr: 3.000e-04 | global_batch_size:"
                f" 1024 | global_step: {step} | reduced_train_loss: {2 + 8 * 0.98**step:.4g}"
                f" | train_step_timing in s: {seconds:.4g}"
            )
        step += 1
    return tuple((None, line) for line in lines)


def record(state: str, span_s: float) -> str:
    """The job's row, as `sacct -P` prints it."""
    begin, end = (f"{BEGIN + timedelta(seconds=s):%Y-%m-%dT%H:%M:%S}" for s in (0, span_s))
    head = "JobID|JobName|State|ExitCode|NNodes|NodeList|Submit|Start|End|Elapsed|Timelimit"
    hours = f"{int(span_s // 3600):02d}:{int(span_s % 3600 // 60):02d}:00"
    row = f"700321|train|{state}|0:0|4|pod[01-04]|{begin}|{begin}|{end}|{hours}|{hours}"
    return f"{head}\n{row}\n"


def waits_at_the_end() -> World:
    """After 80 minutes every card keeps its kernel running and draws a quarter; 40 more pass."""
    return World(
        "undated_steps_end_long_before_the_limit", FOUR,
        metrics(lambda labels, at: 600 if 230 < at < 5000 else 165 if at >= 5000 else 90,
                lambda labels, at: 99 if at > 230 else 0,
                lambda labels, at: 1755 if 230 < at < 5000 else 1950,
                lambda labels, at: 62 if 230 < at < 5000 else 45),
        7200, host_label="Hostname",
        log=nemo("waits", lambda at: 10.4, 5000), files={"sacct.txt": record("TIMEOUT", 7200)},
    )  # fmt: skip


def capped_at_the_end() -> World:
    """After 80 minutes a cap takes a third of every card's power; steps take longer and go on."""
    return World(
        "undated_steps_slower_up_to_the_limit", FOUR,
        metrics(lambda labels, at: 600 if 230 < at < 5000 else 410 if at >= 5000 else 90,
                lambda labels, at: 99 if at > 230 else 0,
                lambda labels, at: 1755 if at < 5000 else 1480,
                lambda labels, at: 62 if at < 5000 else 52),
        7200, host_label="Hostname",
        log=nemo("capped", lambda at: 10.4 if at < 5000 else 12.4, 7190),
        files={"sacct.txt": record("TIMEOUT", 7200)},
    )  # fmt: skip


def warmer(begins: float) -> World:
    """One card is hotter and its clock 8 % lower from a moment on; the run is slower from its
    fiftieth minute on."""
    name = "gpu_clock_falls_as_pace_falls" if begins > 0 else "gpu_clock_lower_all_the_time"

    def slow(labels: Labels, at: float) -> bool:
        return lamp(labels, "pod03", "1") and at > begins

    return World(
        name, FOUR,
        metrics(lambda labels, at: 395,
                lambda labels, at: 97,
                lambda labels, at: 1297 if slow(labels, at) else 1410,
                lambda labels, at: 84 if slow(labels, at) else 61),
        6600, host_label="Hostname",
        log=steps(name, lambda at: 2.5 if at < 3000 else 2.67, until_s=6590, planned=9000,
                  finished=False, world=16),
    )  # fmt: skip


def boosted() -> World:
    """The run is slower from its fiftieth minute on; all cards but one clock higher from then on,
    as cards do that wait."""
    name = "others_clock_higher_while_they_wait"
    return World(
        name, FOUR,
        metrics(lambda labels, at: 395 if at < 3000 or lamp(labels, "pod03", "1") else 350,
                lambda labels, at: 97,
                lambda labels, at: 1410 if at < 3000 or lamp(labels, "pod03", "1") else 1545,
                lambda labels, at: 61),
        6600, host_label="Hostname",
        log=steps(name, lambda at: 2.5 if at < 3000 else 2.8, until_s=6590, planned=9000,
                  finished=False, world=16),
    )  # fmt: skip


def half_rate(begins: float) -> World:
    """One port trains anew at half its rate; the run is slower from its fiftieth minute on."""
    name = "port_at_half_rate_as_pace_falls" if begins > 0 else "port_at_half_rate_long_before"
    if begins == 0:
        begins = 900

    def rate(noise: random.Random, labels: Labels, at: float) -> float:
        low = (labels["instance"], labels["device"]) == ("pod02", "mlx5_3") and at > begins
        return 2.5e10 if low else 5e10

    return World(
        name, FOUR, (Metric("node_infiniband_rate_bytes_per_second", ("host", "device"), rate),),
        6600, host_label="instance", devices=tuple(f"mlx5_{n}" for n in range(4)),
        log=steps(name, lambda at: 2.5 if at < 3000 else 2.9, until_s=6590, planned=9000,
                  finished=False, world=16),
    )  # fmt: skip


WORLDS = (
    half_rate(3000),
    half_rate(0),
    boosted(),
    waits_at_the_end(),
    capped_at_the_end(),
    warmer(3000),
    warmer(0),
)
