"""
Worlds in pairs for `generate_slow.py`: a run, and one that it is compared with.

`threads_leaked_since_restore` has the figures of AMD's third case (MaxText-Slurm, "Agentic
diagnosis"): 3,295 against 3,261 tokens a second and GPU, 18 against 35 tasks in every run queue.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from math import exp, sin

from generate_slow import Metric, World, counter
from slow_runs import SIX, Labels, around, flat

LARGE = tuple(f"mi{n}" for n in range(101, 125))
SMALL = LARGE[:6]
Pace = Callable[[float], float]
TOKENS = 98_304.0
"""Tokens a step and device."""


# --- MaxText on AMD -----------------------------------------------------------------------------


def logged(
    seed: str,
    pace: Pace,
    settings: Mapping[str, str],
    first: int,
    last: int,
    restored: bool = False,
    loss: Callable[[int], float] = lambda step: 2.2 + 8.0 * exp(-step / 70),
) -> tuple[tuple[tuple[None, str], ...], float]:
    """rank 0's lines and how long they took: settings, how it began, a line a step."""
    noise = random.Random(seed)
    lines = [f"Config param {name}: {value}" for name, value in settings.items()]
    if restored:
        lines.append(f"restoring from this run's directory step {first}")
    at = 40.0
    for step in range(first + restored, last):
        speed = pace(at) * noise.gauss(1, 0.003)
        took = TOKENS / speed * (4.0 if step < first + 2 + restored else 1.0)
        at += took
        lines.append(
            f"completed step: {step}, seconds: {took:.3f}, TFLOP/s/device: {6283.0 / took:.3f},"
            f" Tokens/s/device: {TOKENS / took:.3f}, total_weights: 3145728, loss:"
            f" {loss(step) + noise.gauss(0, 0.012):.3f}"
        )
    return tuple((None, f"0: {line}") for line in lines), at


def exported(
    pace: Pace,
    queue: float,
    balance: float = 0.0117,
    clock: float = 2340.0,
    sent: float = 1.9e10,
) -> tuple[Metric, ...]:
    """maxtext-slurm's exporter for one run."""
    host, port = ("host",), ("host", "device")
    return (
        Metric("hw_gpu_power_watts", ("host", "gpu"), around(916, 8)),
        Metric("hw_gpu_utilization_pct", ("host", "gpu"), around(99.4, 0.3)),
        Metric("hw_gpu_clock_mhz", ("host", "gpu"),
               lambda noise, labels, at: float(round(noise.gauss(clock, 9))),
               fixed={"type": "sclk"}),
        Metric("hw_rdma_tx_retx_pkts_total", port, counter(lambda labels, at: 0.0, 11.0), "counter"),
        Metric("hw_rdma_tx_bytes_total", port, counter(lambda labels, at: sent / 2), "counter"),
        Metric("hw_rdma_port_state", port, flat(1)),
        Metric("hw_tcp_retransmits_total", host, counter(lambda labels, at: 0.3), "counter"),
        Metric("hw_procs_running", host,
               lambda noise, labels, at: float(max(1, round(noise.gauss(queue, 2.2))))),
        Metric("hw_procs_blocked", host, flat()),
        Metric("hw_context_switches_total", host, counter(lambda labels, at: 9.2e4), "counter"),
        Metric("hw_io_pressure_some_pct", host, around(0.5, 0.1)),
        Metric("tb_perf_per_device_tokens_per_sec", ("first",),
               lambda noise, labels, at: pace(at) * noise.gauss(1, 0.003)),
        Metric("tb_learning_moe_lb_loss", ("first",),
               lambda noise, labels, at: balance * noise.gauss(1, 0.03)),
    )  # fmt: skip


PLAIN = {
    "base_emb_dim": "6144",
    "base_num_decoder_layers": "56",
    "dtype": "bfloat16",
    "max_target_length": "8192",
    "model_name": "moe-large",
    "num_experts": "8",
    "per_device_batch_size": "12.0",
}


def side(
    name: str, folder: str, hosts: tuple[str, ...], pace: Pace, queue: float, *,
    steps: tuple[int, int] = (0, 150), restored: bool = False, metrics: bool = True,
    settings: Mapping[str, str] = PLAIN, ended: bool = True, **more: float,
) -> World:  # fmt: skip
    planned = steps[1] if ended else 60_000
    log, ends = logged(f"{name} {folder}", pace, {**settings, "steps": str(planned)},
                       *steps, restored)  # fmt: skip
    made = exported(pace, queue, **more) if metrics else ()
    return World(name, hosts, made, ends + 30, 60.0, 2, log=log, folder=folder)


def steady(level: float) -> Pace:
    return lambda at: level


def wandering(level: float, turned: float) -> Pace:
    """A cluster whose speed drifts by two per cent, now up and now down."""
    return lambda at: level * (1 + 0.02 * sin(at / 260.0 + turned))


def contended() -> list[World]:
    """The leak, and what looks like it."""
    name, out = "threads_leaked_since_restore", []
    out += [
        side(name, "run", LARGE, steady(3261), 35.0, steps=(60, 200), restored=True, ended=False),
        side(name, "baseline", LARGE, steady(3295), 18.0, steps=(0, 200), ended=False),
    ]
    name = "queue_doubled_with_another_batch_size"
    smaller = {**PLAIN, "per_device_batch_size": "8.0"}
    out += [
        side(name, "run", SMALL, steady(3120), 35.0, settings=smaller),
        side(name, "baseline", SMALL, steady(3295), 18.0),
    ]
    name = "queue_doubled_on_other_node_count"
    out += [
        side(name, "run", LARGE[:8], steady(3230), 35.0),
        side(name, "baseline", LARGE[:6], steady(3295), 18.0),
    ]
    name = "queue_doubled_and_pace_holds"
    out += [
        side(name, "run", SMALL, steady(3294), 35.0),
        side(name, "baseline", SMALL, steady(3295), 18.0),
    ]
    name = "queue_doubled_and_pace_within_noise"
    out += [
        side(name, "run", SMALL, wandering(3270, 0.0), 35.0),
        side(name, "baseline", SMALL, wandering(3295, 2.0), 18.0),
    ]
    name = "baseline_without_metrics"
    out += [
        side(name, "run", SMALL, steady(3261), 35.0),
        side(name, "baseline", SMALL, steady(3295), 18.0, metrics=False),
    ]
    return out


def balanced() -> list[World]:
    """Experts out of balance from the first step on, against a run in which they were not."""
    name, near = "experts_less_balanced_than_in_baseline", "experts_less_balanced_at_same_pace"
    return [
        side(name, "run", SMALL, steady(3080), 18.0, balance=0.034, ended=False),
        side(name, "baseline", SMALL, steady(3295), 18.0, ended=False),
        side(near, "run", SMALL, steady(3291), 18.0, balance=0.034),
        side(near, "baseline", SMALL, steady(3295), 18.0),
    ]


# --- PyTorch on NVIDIA --------------------------------------------------------------------------


def printed(
    seed: str,
    step_s: float,
    settings: str,
    planned: int = 1400,
    loss: Callable[[int], float] = lambda step: 2.1 + 7.4 * 0.994**step,
) -> tuple[tuple[tuple[float, str], ...], float]:
    noise, steps = random.Random(seed), 1400
    out = [(15.0, f"arguments: Namespace({settings})"),
           (20.0, f"world size 24, {planned} steps planned")]  # fmt: skip
    at, last = 20.0, 0.0
    for step in range(1, steps + 1):
        took = step_s * noise.gauss(1, 0.006)
        at += took
        if step == 1 or step % 10 == 0:
            last = loss(step) + noise.gauss(0, 0.02)
            out.append((at, f"step {step}/{planned} loss {last:.4f} grad_norm"
                            f" {0.5 + noise.uniform(0, 0.2):.3f} lr 3.00e-04"
                            f" step_time {took * 1000:.1f} ms"))  # fmt: skip
    if planned == steps:
        out.append((at, f"training finished: {steps} steps in {at - 20:.1f} s, final loss"
                        f" {last:.4f}"))  # fmt: skip
    return tuple(out), at


def watched(
    *, power: float = 655.0, clock: float = 1830.0, limit: float = 700.0, busy: float = 97.0,
    waits: float = 0.01, rate: float = 5e10, model: str = "NVIDIA H100 80GB HBM3",
    memory: float = 81_559.0,
) -> tuple[Metric, ...]:  # fmt: skip
    """dcgm-exporter and node_exporter under the hosts' own names."""
    gpu, host, port = ("host", "gpu"), ("host",), ("host", "device")
    kind = {"modelName": model}

    def of_gpu(name: str, level: float, part: float, most: float = 1e12) -> Metric:
        def value(noise: random.Random, labels: Labels, at: float) -> float:
            return min(most, level * noise.gauss(1, part))

        return Metric(f"DCGM_FI_DEV_{name}", gpu, value, fixed=kind, host_label="Hostname")

    def of_host(name: str, over: tuple[str, ...], value: object, how: str = "gauge") -> Metric:
        return Metric(name, over, value, how)  # type: ignore[arg-type]

    return (
        of_gpu("POWER_USAGE", power, 0.01),
        of_gpu("GPU_UTIL", busy, 0.02, 100.0),
        of_gpu("SM_CLOCK", clock, 0.004),
        of_gpu("ENFORCED_POWER_LIMIT", limit, 0.0),
        of_gpu("FB_TOTAL", memory, 0.0),
        of_host("node_procs_running", host, around(14, 1.5)),
        of_host("node_context_switches_total", host, counter(lambda labels, at: 7e4), "counter"),
        of_host("node_pressure_io_waiting_seconds_total", host,
                lambda noise, labels, at: at * waits, "counter"),
        of_host("node_infiniband_rate_bytes_per_second", port, flat(rate)),
        of_host("node_infiniband_local_ack_timeout_errors_total", port,
                counter(lambda labels, at: 0.0), "counter"),
        of_host("node_infiniband_port_data_transmitted_bytes_total", port,
                counter(lambda labels, at: 1.1e9), "counter"),
    )  # fmt: skip


SETTINGS = "model='gpt-7b', micro_batch_size=4, seq_length=4096, bf16=True, lr=0.0003, seed=11"


def pair(
    name: str, run_s: float, base_s: float, run: Mapping[str, object], *,
    base: Mapping[str, object] | None = None, settings: str = SETTINGS,
    loss: Callable[[int], float] | None = None, planned: int = 1400,
) -> list[World]:  # fmt: skip
    out = []
    for folder, step_s, levels, set_to in (("run", run_s, run, settings),
                                           ("baseline", base_s, base or {}, SETTINGS)):  # fmt: skip
        curve = {"loss": loss} if loss is not None and folder == "run" else {}
        log, ends = printed(f"{name} {folder}", step_s, set_to, planned, **curve)  # type: ignore[arg-type]
        made = watched(**levels)  # type: ignore[arg-type]
        out.append(World(name, SIX, made, ends + 30, 60.0, 2, host_label="instance", log=log,
                         folder=folder))  # fmt: skip
    return out


def parted(step: int) -> float:
    """Learns as the other until step 620, and then more and more slowly than it."""
    sound = 2.1 + 7.4 * 0.994**step
    return sound + (0.62 * (1 - exp(-(step - 620) / 90)) if step > 620 else 0.0)


def reseeded(step: int) -> float:
    """The same level by another way: other batches, up and down."""
    return 2.1 + 7.4 * 0.994**step + 0.05 * sin(step / 37.0)


WORLDS = (
    *contended(),
    *balanced(),
    *pair("power_capped_on_every_node", 2.93, 2.5,
          {"power": 470.0, "clock": 1410.0, "limit": 480.0}, planned=90_000),
    *pair("clocks_lower_everywhere_and_pace_holds", 2.5, 2.5, {"power": 560.0, "clock": 1590.0}),
    *pair("baseline_of_other_hardware", 3.4, 2.5,
          {"model": "NVIDIA A100-SXM4-80GB", "clock": 1410.0, "power": 390.0, "limit": 400.0}),
    *pair("gpus_wait_more_than_in_baseline", 3.45, 2.5, {"busy": 63.0, "waits": 0.34}, planned=90_000),
    *pair("gpus_as_idle_as_in_baseline", 2.5, 2.5, {"busy": 63.0}, base={"busy": 63.0}),
    *pair("ports_at_a_lower_rate_on_every_host", 2.9, 2.5, {"rate": 1.25e10}, planned=90_000),
    *pair("ports_at_a_lower_rate_and_pace_holds", 2.5, 2.5, {"rate": 1.25e10}),
    *pair("loss_parts_from_baseline", 2.5, 2.5, {}, loss=parted, planned=90_000),
    *pair("loss_of_another_learning_rate", 2.5, 2.5, {},
          settings=SETTINGS.replace("lr=0.0003", "lr=0.0001"), loss=parted),
    *pair("loss_of_another_seed", 2.5, 2.5, {}, settings=SETTINGS.replace("seed=11", "seed=12"),
          loss=reseeded),
)  # fmt: skip
