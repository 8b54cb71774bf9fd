"""The worlds of `generate_slow.py` that ended in a fault whose place another source tells."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import timedelta

from generate_slow import BEGIN, Metric, World, steps
from slow_runs import Labels, around
from undated_runs import metrics, nemo, record

FOUR = tuple(f"pod{n:02d}" for n in range(1, 5))
Lines = tuple[tuple[float | None, str], ...]

# --- a task that was declared dead ----------------------------------------------------------------

DECLARED, STEP_S = 1300.0, 10.0


def declared_dead(steps_until: float) -> Lines:
    """MaxText's undated steps of process 0, and at DECLARED what every process says of task 2."""
    steps = int((steps_until - 60) / STEP_S)
    lines = [f"{n}: [jax-preinit] nprocs=4 rank={n} heartbeat_timeout_s=100" for n in range(4)]
    lines += [
        f"0: completed step: {n}, seconds: {STEP_S:.3f}, TFLOP/s/device: 347.1,"
        f" Tokens/s/device: 1198.0, total_weights: 1048576, loss: {2 + 7 * 0.97**n:.3f}"
        for n in range(steps)
    ]
    glog = f"{BEGIN + timedelta(seconds=DECLARED):%m%d %H:%M:%S}"
    for n in range(4):
        lines += [
            f"{n}: E{glog}.{n}40773 310{n} coordination_service_agent.cc:310] Polled error from"
            " coordination service (this can be an error from this or another task).",
            f"{n}: UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):",
            f"{n}: /job:jax_worker/replica:0/task:2",
            f"{n}: The tasks have crashed. Check the task logs for an earlier error, or scheduler"
            " events (e.g. preemption, eviction) to debug further.",
        ]
    return tuple((None, line) for line in lines)


def accused(name: str, stopped: float) -> World:
    """Task 2, on pod03, sends no heartbeat for the last 100 s.  All work until `stopped`; where
    that comes first, its cards idle then and those of the others wait."""

    def power(labels: Labels, at: float) -> float:
        if not 60 < at < DECLARED + 3:
            return 120
        waits = 130 if labels["Hostname"] == "pod03" else 290
        return 640 if at < stopped else waits

    def busy(labels: Labels, at: float) -> float:
        idle = at >= stopped and labels["Hostname"] == "pod03"
        return 99 if 60 < at < DECLARED + 3 and not idle else 0

    return World(
        name, FOUR,
        metrics(power, busy, lambda labels, at: 1755, lambda labels, at: 60),
        1500, 15.0, host_label="Hostname", log=declared_dead(stopped),
        files={"sacct.txt": record("FAILED", 1320)},
    )  # fmt: skip


# --- ports that went down -------------------------------------------------------------------------

GAVE_UP = 1200.0


def gave_up(teller: str, peer: str) -> tuple[None, str]:
    return None, (
        f"{teller}:7100:7400 [1] NCCL WARN NET/IB : Got completion from peer {peer}<41000> with"
        " status=IBV_WC_RETRY_EXC_ERR(12) opcode=0 len=0 vendor err 129 (Send) hca mlx5_1"
    )


def ports(name: str, downs: Mapping[tuple[str, str], float]) -> World:
    """Three ranks give up after GAVE_UP, each naming its peer; these ports go down at these times and
    come up again after half a minute.  Others went down before the run."""

    def at(labels: Mapping[str, str]) -> float:
        return downs.get((labels["instance"], labels["device"]), 1e9)

    def downed(noise: random.Random, labels: Mapping[str, str], now: float) -> float:
        return {"pod02": 3.0}.get(labels["instance"], 0.0) + (now > at(labels))

    def state(noise: random.Random, labels: Mapping[str, str], now: float) -> float:
        return 1.0 if 0 < now - at(labels) < 30 else 4.0

    port, ends = ("host", "device"), GAVE_UP - 20
    series = {"fixed": {"job": "node"}, "host_label": "instance"}
    return World(
        name, FOUR,
        (
            Metric("DCGM_FI_DEV_POWER_USAGE", ("host", "gpu"), around(500, 9)),
            Metric("node_infiniband_link_downed_total", port, downed, "counter", **series),
            Metric("node_infiniband_state_id", port, state, **series),
            Metric("node_infiniband_symbol_error_total", port, around(4, 0), "counter", **series),
        ),
        1300, 15.0, devices=("mlx5_0", "mlx5_1"), host_label="Hostname",
        log=(*steps(name, lambda at: 2.5, until_s=ends, planned=9000, finished=False, world=16),
             gave_up("pod01", "10.4.3.3"), gave_up("pod04", "10.4.3.3"),
             gave_up("pod03", "10.4.3.1")),
        files={"sacct.txt": record("FAILED", 1260)},
    )  # fmt: skip


# --- a rank that never came -----------------------------------------------------------------------

STOOD, TIMED_OUT, SILENT = 900.0, 1500.0, 10


def timed_out(rank: int) -> tuple[None, str]:
    at = BEGIN + timedelta(seconds=TIMED_OUT, milliseconds=20 * rank)
    return None, (
        f"[rank{rank}]:[E{at:%m%d %H:%M:%S.%f}000 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog"
        " caught collective operation timeout: WorkNCCL(SeqNum=4821, OpType=ALLREDUCE,"
        " NumelIn=26214400, NumelOut=26214400, Timeout(ms)=600000) ran for 600023 milliseconds"
        " before timing out."
    )


def never_came(name: str, host: str, gpu: str) -> World:
    """After STOOD all ranks but SILENT wait in a collective, until their watchdogs end them.  This
    card draws on as at work."""

    def power(labels: Labels, at: float) -> float:
        if not 20 < at < TIMED_OUT + 10:
            return 80
        works = at < STOOD or (labels["Hostname"], labels["gpu"]) == (host, gpu)
        return 380 if works else 140

    ended = ("pod01: tasks 0-3", "pod02: tasks 4-7", "pod04: tasks 12-15", "pod03: tasks 8-9,11")
    return World(
        name, FOUR,
        metrics(power, lambda labels, at: 99 if 20 < at < TIMED_OUT + 10 else 0,
                lambda labels, at: 1410, lambda labels, at: 55),
        1600, 20.0, host_label="Hostname",
        log=(*steps(name, lambda at: 2.5, until_s=STOOD, planned=9000, finished=False, world=16),
             *(timed_out(rank) for rank in range(16) if rank != SILENT),
             *((None, f"srun: error: {what}: Aborted (core dumped)") for what in ended)),
        files={"sacct.txt": record("FAILED", 1560)},
    )  # fmt: skip


# --- a GPU that failed, by its address or by its counters -----------------------------------------

OFF = 900.0
BUSES = ("1B", "3D", "BD", "DB")


def off_the_bus(name: str, labelled: tuple[str, ...]) -> World:
    """The kernel of pod03 loses the GPU at BD:00, which on these hosts stands in a label; the other
    hosts have a GPU at that address too."""

    def bus(labels: Mapping[str, str]) -> Mapping[str, str]:
        told = {"pci_bus_id": f"00000000:{BUSES[int(labels['gpu'])]}:00.0"}
        return told if labels["Hostname"] in labelled else {}

    stamp = f"{BEGIN + timedelta(seconds=OFF):%Y-%m-%dT%H:%M:%S}"
    kernel = (
        f"{stamp}.100000+00:00 pod03 kernel: NVRM: Xid (PCI:0000:bd:00): 79, pid='<unknown>',"
        " name=<unknown>, GPU has fallen off the bus.\n"
        f"{stamp}.200000+00:00 pod03 kernel: NVRM: GPU 0000:bd:00.0: GPU has fallen off the bus.\n"
    )
    return World(
        name, FOUR,
        (Metric("DCGM_FI_DEV_POWER_USAGE", ("host", "gpu"), around(500, 9), also=bus),),
        960, host_label="Hostname",
        log=steps(name, lambda at: 2.5, until_s=OFF, planned=9000, finished=False, world=16),
        files={"sacct.txt": record("FAILED", 960), "dmesg-pod03.txt": kernel},
    )  # fmt: skip


def uncorrectable(name: str, rises: float) -> World:
    """Rank 10, on pod03, meets an uncorrectable error at OFF, in a log whose steps carry no times;
    the counter of one of that host's cards rises at a moment."""
    when = BEGIN + timedelta(seconds=OFF)

    def errors(noise: random.Random, labels: Mapping[str, str], at: float) -> float:
        return float(at > rises and (labels["Hostname"], labels["gpu"]) == ("pod03", "2"))

    end = (
        "[rank10]: Traceback (most recent call last):",
        '[rank10]:   File "train.py", line 88, in step',
        "[rank10]: RuntimeError: CUDA error: uncorrectable ECC error encountered",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        "Root Cause (first observed failure):",
        "[0]:",
        f"  time      : {when:%Y-%m-%d_%H:%M:%S}",
        "  host      : pod03",
        "  rank      : 10 (local_rank: 2)",
        "  exitcode  : 1 (pid: 5535)",
        "  error_file: <N/A>",
    )
    labels = {"job": "dcgm", "modelName": "NVIDIA A100-SXM4-80GB"}
    return World(
        name, FOUR,
        (
            Metric("DCGM_FI_DEV_POWER_USAGE", ("host", "gpu"), around(380, 9), fixed=labels),
            Metric("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", ("host", "gpu"), errors, "counter", labels),
        ),
        960, 15.0, host_label="Hostname",
        log=(*nemo(name, lambda at: 5.0, OFF), *((None, line) for line in end)),
        files={"sacct.txt": record("FAILED", 960)},
    )  # fmt: skip


WORLDS = (
    off_the_bus("gpu_off_the_bus_by_its_address", FOUR),
    off_the_bus("gpu_address_told_of_other_hosts_alone", ("pod01", "pod02", "pod04")),
    uncorrectable("gpu_memory_error_as_undated_run_stopped", OFF - 5),
    uncorrectable("gpu_memory_error_long_before_undated_run_stopped", 300),
    never_came("one_rank_computes_on_as_others_wait", "pod03", "2"),
    never_came("card_of_another_host_computes_on", "pod01", "2"),
    ports("port_down_as_peers_gave_up", {("pod03", "mlx5_1"): GAVE_UP - 40}),
    ports("port_down_long_before_peers_gave_up", {("pod03", "mlx5_1"): 400}),
    ports("ports_down_on_two_hosts_as_peers_gave_up",
          {(host, "mlx5_1"): GAVE_UP - 40 for host in ("pod03", "pod04")}),
    accused("declared_dead_at_full_power", DECLARED),
    accused("declared_dead_after_it_stopped", DECLARED - 101),
)  # fmt: skip
