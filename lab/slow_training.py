"""More worlds of `generate_slow.py`: what the training itself, its input or its settings slow."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from generate_slow import Metric, World, counter, steps
from slow_runs import TWELVE, around, maxtext, maxtext_log, pace_of

Labels = Mapping[str, str]
LAST = 13_500


def sliding(at: float) -> float:
    """Full speed until step 250, then down by an eighth within twenty minutes."""
    return 1.0 - 0.125 * min(1.0, max(0.0, (at - 7500) / 1200))


def experts(
    name: str,
    spike: float,
    clock: Callable[[float], float] = lambda at: 2350.0,
    speed: Callable[[float], float] = sliding,
    sockets: float | None = None,
) -> World:
    """A mixture of experts whose balance loss jumps at a moment and stays high for a while.  Where
    `sockets` is given no counter of the RDMA adapters was read, and TCP resends so much more a
    second once it is slow."""

    def balance(at: float) -> float:
        return 0.012 if at < spike else 0.012 + 0.045 * max(0.3, 1 - (at - spike) / 2500)

    pace = pace_of(speed)
    sclk = Metric(
        "hw_gpu_clock_mhz",
        ("host", "gpu"),
        lambda noise, labels, at: noise.gauss(clock(at), 8),
        fixed={"type": "sclk"},
    )
    heat = Metric("hw_gpu_temperature_celsius", ("host", "gpu"), around(71, 1.5))
    hosts = TWELVE[:6]
    read = maxtext(pace, lambda labels, at: 0.0, balance)
    if sockets is not None:
        tcp = counter(lambda labels, at: 0.4 + (sockets if speed(at) < 0.99 else 0.0))
        read = (*(one for one in read if "rdma" not in one.name and "_tcp_" not in one.name),
                Metric("hw_tcp_retransmits_total", ("host",), tcp, "counter"))  # fmt: skip
    return World(
        name,
        hosts,
        (*read, sclk, heat),
        LAST, 60, 2, log=maxtext_log(pace, LAST),
    )  # fmt: skip


DYNAMICS = (
    experts("experts_out_of_balance_as_pace_falls", 7500),
    experts("experts_out_of_balance_long_before_pace_falls", 2400),
    experts("clocks_fall_as_experts_lose_balance", 7500,
            lambda at: 2350.0 if at < 7500 else 1700.0),
    experts("experts_lose_balance_and_pace_holds", 7500, speed=lambda at: 1.0),
    experts("experts_out_of_balance_and_network_not_read", 7500, sockets=0.0),
    experts("experts_out_of_balance_and_sockets_resend", 7500, sockets=40.0),
)  # fmt: skip


# --- the input, the saves, the transport, and a process that waits -------------------------------


def fed(name: str, waits: float, finished: bool) -> World:
    """GPUs on which something runs a quarter of the time, and hosts that wait so much for their
    storage."""

    def bursts(noise: random.Random, labels: Labels, at: float) -> float:
        return noise.choice((0.0, 0.0, 0.0, 96.0)) if 20 < at < 2400 else 0.0

    host = ("host",)
    return World(
        name,
        ("node01", "node02", "node03"),
        (
            Metric("DCGM_FI_DEV_GPU_UTIL", ("host", "gpu"), bursts),
            Metric("DCGM_FI_DEV_POWER_USAGE", ("host", "gpu"), around(160, 20)),
            Metric("node_procs_running", host, around(12, 1.5), host_label="instance"),
            Metric("node_pressure_cpu_waiting_seconds_total", host,
                   lambda noise, labels, at: 0.01 * at, "counter", host_label="instance"),
            Metric("node_pressure_io_waiting_seconds_total", host,
                   lambda noise, labels, at: waits * at, "counter", host_label="instance"),
        ),
        2400,
        host_label="Hostname",
        log=steps(name, lambda at: 4.0, until_s=2390, planned=590 if finished else 4000, every=5,
                  finished=finished),
    )  # fmt: skip


def saving(name: str, each_s: float, finished: bool) -> World:
    """A checkpoint every twenty steps, each of which takes so long."""
    lines = [(20.0, "world size 8, 900 steps planned")]
    at, step = 20.0, 0
    noise = random.Random(name)
    while step < 300:
        at, step = at + noise.gauss(1.5, 0.02), step + 1
        if step % 5 == 0:
            loss = 2.0 + 7.5 * 0.985**step + noise.gauss(0, 0.015)
            lines.append((at, f"step {step}/{300 if finished else 900} loss {loss:.4f} lr"
                              " 3.00e-04"))  # fmt: skip
        if step % 20 == 0:
            at += each_s * noise.gauss(1, 0.05)
            lines.append((at, f"Saved checkpoint to out/step_{step}.pt"))
    if finished:
        lines.append((at, "training finished: 300 steps, final loss 2.08"))
    return World(
        name,
        ("node01",),
        (Metric("DCGM_FI_DEV_POWER_USAGE", ("host", "gpu"), around(350, 15)),),
        at,
        host_label="Hostname",
        log=tuple(lines),
    )


def transports(name: str, rdma: float, plain: float, finished: bool) -> World:
    """Bytes a second over the RDMA adapters, which are up, and over the plain network."""
    port = ("host", "device")
    return World(
        name,
        ("node01", "node02", "node03", "node04"),
        (
            Metric("hw_rdma_tx_bytes_total", port, counter(lambda labels, at: rdma), "counter"),
            Metric("hw_rdma_tx_retx_pkts_total", port, counter(lambda labels, at: 0.0), "counter"),
            Metric("hw_rdma_port_state", port, lambda noise, labels, at: 1.0),
            Metric("hw_net_tx_bytes_total", ("host",), counter(lambda labels, at: plain),
                   "counter", fixed={"device": "eth0"}),
            Metric("hw_gpu_power_watts", ("host", "gpu"), around(400, 20)),
            Metric("hw_procs_running", ("host",), around(18, 2)),
        ),
        3600,
        log=steps(name, lambda at: 20.0, until_s=3590, planned=178 if finished else 4000, every=2,
                  finished=finished),
    )  # fmt: skip


def held(name: str, gpus: int, ends: float, power: float = 71.0) -> World:
    """Memory is held on the GPUs and nothing runs; the log ends at a moment."""
    on = ("host", "gpu")
    return World(
        name,
        ("node07",),
        (
            Metric("DCGM_FI_DEV_GPU_UTIL", on, lambda noise, labels, at: 97.0 if at < ends else 0.0),
            Metric("DCGM_FI_DEV_FB_USED", on, lambda noise, labels, at: 31_744.0),
            Metric("DCGM_FI_DEV_POWER_USAGE", on,
                   lambda noise, labels, at: noise.gauss(310 if at < ends else power, 0.8)),
        ),
        4200,
        gpus=gpus,
        host_label="Hostname",
        log=steps(name, lambda at: 1.0, until_s=ends, planned=20_000, finished=False, world=gpus),
    )  # fmt: skip


def launching(
    name: str, said: str, power: float | None, *, finished: bool, ran: float | None = None
) -> World:
    """Eight GPUs whose log says something of how kernels are launched; of their power of 700 W,
    where it is measured, they draw so much.  Or the share of time in which something ran on them
    is all that is measured."""
    on = ("host", "gpu")
    activity = () if ran is None else (
        Metric("DCGM_FI_PROF_GR_ENGINE_ACTIVE", on,
               lambda noise, labels, at: min(1.0, ran * noise.gauss(1, 0.02))),
        Metric("DCGM_FI_DEV_POWER_USAGE", on, around(430, 9)),
    )  # fmt: skip
    metrics = () if power is None else (
        Metric("DCGM_FI_DEV_POWER_USAGE", on, around(power, 9)),
        Metric("DCGM_FI_DEV_POWER_MGMT_LIMIT", on, around(700, 0)),
        Metric("DCGM_FI_DEV_GPU_UTIL", on, around(93, 1.5)),
    )  # fmt: skip
    log = steps(name, lambda at: 1.6, until_s=1500, planned=900 if finished else 2000,
                finished=finished, world=8)  # fmt: skip
    return World(name, ("node01",), metrics or activity, 1500, gpus=8, host_label="Hostname",
                 log=((1.0, said), *log))  # fmt: skip


ADVICE = (
    "UserWarning: CUDA kernel errors might be asynchronously reported at some other API call. "
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1"
)
LAUNCHES = (
    launching("launches_wait_and_power_is_low", "+ export CUDA_LAUNCH_BLOCKING=1", 245.0,
              finished=False),
    launching("launches_wait_and_kernels_are_long", "+ export CUDA_LAUNCH_BLOCKING=1", 640.0,
              finished=True),
    launching("launches_wait_and_nothing_was_measured", "environ({'CUDA_LAUNCH_BLOCKING': '1'})",
              None, finished=True),
    launching("launches_wait_and_gpus_have_gaps", "+ export CUDA_LAUNCH_BLOCKING=1", None,
              finished=False, ran=0.63),
    launching("launches_wait_and_gaps_are_few", "+ export CUDA_LAUNCH_BLOCKING=1", None,
              finished=True, ran=0.8),
    launching("launches_wait_and_gpus_are_busy", "+ export CUDA_LAUNCH_BLOCKING=1", None,
              finished=True, ran=0.95),
    launching("advice_to_block_launches_is_no_setting", ADVICE, 245.0, finished=True),
)  # fmt: skip


OTHERS = (
    fed("gpus_wait_for_storage_on_every_host", 0.62, finished=False),
    fed("small_model_on_large_gpus", 0.003, finished=True),
    saving("checkpoint_every_twenty_steps_is_slow", 26.0, finished=False),
    saving("checkpoint_every_twenty_steps_is_cheap", 1.0, finished=True),
    transports("collectives_on_plain_network", 0.0, 640e6, finished=False),
    transports("both_networks_in_use", 9e9, 640e6, finished=True),
    held("one_gpu_held_and_idle", 1, 900),
    held("eight_gpus_held_and_idle", 8, 900),
    held("one_gpu_at_work_to_the_end", 1, 4190),
)
WORLDS = (*DYNAMICS, *OTHERS, *LAUNCHES)
