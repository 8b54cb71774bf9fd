"""The worlds of `generate_slow.py`: what went wrong in each, as functions of place and time."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from generate_slow import BEGIN, Metric, Value, World, counter, steps

Labels = Mapping[str, str]
HOSTS = ("node01", "node02", "node03")


def around(level: float, spread: float) -> Value:
    """A reading with noise."""
    return lambda noise, labels, at: level + noise.gauss(0, spread)


def gpu(
    power: Callable[[Labels, float], float | None],
    util: Callable[[Labels, float], float | None],
    **counters: Value,
) -> tuple[Metric, ...]:
    """dcgm-exporter: power, activity, and counters by their field's name."""

    def noisy(level: Callable[[Labels, float], float | None], part: float) -> Value:
        def value(noise: random.Random, labels: Labels, at: float) -> float | None:
            now = level(labels, at)
            return None if now is None else max(0.0, now * noise.gauss(1, part))

        return value

    on = ("host", "gpu")
    return (
        Metric("DCGM_FI_DEV_POWER_USAGE", on, noisy(power, 0.02)),
        Metric("DCGM_FI_DEV_GPU_UTIL", on, noisy(util, 0.004)),
        *(Metric(f"DCGM_FI_DEV_{name}", on, value, "counter") for name, value in counters.items()),
    )


def flat(level: float = 0.0) -> Value:
    return lambda noise, labels, at: level


def lamp(labels: Labels, host: str, number: str) -> bool:
    return labels.get("Hostname") == host and labels.get("gpu") == number


CLEAN = {
    "XID_ERRORS": flat(),
    "ECC_DBE_VOL_TOTAL": flat(),
    "UNCORRECTABLE_REMAPPED_ROWS": flat(),
    "ROW_REMAP_FAILURE": flat(),
    "NVLINK_RECOVERY_ERROR_COUNT_TOTAL": flat(),
}


def until(end: float, work: float, rest: float) -> Callable[[Labels, float], float]:
    """A level while the job works, another once it has stopped."""
    return lambda labels, at: work if 20 < at < end else rest


# --- a part of the hardware fails ---------------------------------------------------------------


def rising(host: str, number: str, begins: float, each_s: float, old: float = 0.0) -> Value:
    """Errors of one GPU from a moment on, so many seconds apart."""

    def value(noise: random.Random, labels: Labels, at: float) -> float:
        if not lamp(labels, host, number) or at < begins:
            return old if lamp(labels, host, number) else 0.0
        return old + 1 + int((at - begins) / each_s)

    return value


def memory_failed() -> World:
    """Uncorrectable errors on one GPU as the run stops; no kernel log was kept."""
    return World(
        "gpu_memory_errors_rose_as_run_stopped",
        HOSTS,
        gpu(
            until(900, 410, 75),
            until(900, 99, 0),
            **{**CLEAN, "ECC_DBE_VOL_TOTAL": rising("node02", "3", 880, 1e9)},
        ),
        1500,
        host_label="Hostname",
        log=steps("memory", lambda at: 1.4, until_s=890, planned=4000, finished=False),
    )


def fell_off() -> World:
    """One GPU is not read any more from the moment at which the run stops."""

    def gone(level: Callable[[Labels, float], float]) -> Callable[[Labels, float], float | None]:
        def value(labels: Labels, at: float) -> float | None:
            return None if lamp(labels, "node01", "2") and at > 1010 else level(labels, at)

        return value

    return World(
        "gpu_no_longer_read_as_run_stopped",
        HOSTS,
        gpu(gone(until(1020, 395, 70)), gone(until(1020, 99, 0))),
        1600,
        host_label="Hostname",
        log=steps("bus", lambda at: 1.1, until_s=1008, planned=5000, finished=False),
    )


def old_errors() -> World:
    """Errors and an Xid from long ago stand where they stood; the run reaches its end."""
    return World(
        "gpu_errors_older_than_the_run",
        HOSTS,
        gpu(
            until(880, 400, 72),
            until(880, 98, 0),
            **{
                **CLEAN,
                "ECC_DBE_VOL_TOTAL": rising("node03", "0", 1e9, 1, old=4),
                "XID_ERRORS": lambda noise, labels, at: (
                    48.0 if lamp(labels, "node03", "0") else 0.0
                ),
            },
        ),
        1000,
        host_label="Hostname",
        log=steps("old", lambda at: 1.2, until_s=1000, planned=700),
    )


def exporter_died() -> World:
    """Nothing of one host is read any more; the run goes on and ends as planned."""

    def read(level: Callable[[Labels, float], float]) -> Callable[[Labels, float], float | None]:
        def value(labels: Labels, at: float) -> float | None:
            return None if labels["Hostname"] == "node02" and at > 400 else level(labels, at)

        return value

    def quiet(noise: random.Random, labels: Labels, at: float) -> float | None:
        return None if labels["Hostname"] == "node02" and at > 400 else 0.0

    return World(
        "exporter_of_one_host_died",
        HOSTS,
        gpu(read(until(880, 400, 72)), read(until(880, 98, 0)), **dict.fromkeys(CLEAN, quiet)),
        1000,
        host_label="Hostname",
        log=steps("exporter", lambda at: 1.2, until_s=1000, planned=700),
    )


def all_clean() -> World:
    """Every counter at zero, a kernel log without a fault, the planned end."""
    seconds = BEGIN.timestamp() % 100_000
    dmesg = "".join(
        f"[{seconds + n * 97:.6f}] {line}\n"
        for n, line in enumerate(
            (
                "eth0: link becomes ready",
                "perf: interrupt took too long (2511 > 2500), lowering"
                " kernel.perf_event_max_sample_rate to 79500",
                "systemd-journald[812]: Time jumped backwards, rotating.",
            )
        )
    )
    return World(
        "gpu_counters_and_kernel_log_clean",
        HOSTS,
        gpu(until(880, 400, 72), until(880, 98, 0), **CLEAN),
        1000,
        host_label="Hostname",
        log=steps("clean", lambda at: 1.2, until_s=1000, planned=700),
        files={"dmesg.txt": dmesg},
    )


def rose_and_went_on() -> World:
    """Links between GPUs were trained again early in a run that reached its end."""
    return World(
        "gpu_link_recovered_and_run_went_on",
        HOSTS,
        gpu(
            until(880, 400, 72),
            until(880, 98, 0),
            **{**CLEAN, "NVLINK_RECOVERY_ERROR_COUNT_TOTAL": rising("node01", "1", 250, 1e9)},
        ),
        1000,
        host_label="Hostname",
        log=steps("link", lambda at: 1.2, until_s=1000, planned=700),
    )


def link_pace(at: float) -> float:
    """Seconds a step: a third slower twice."""
    return 1.6 if 900 < at < 1500 or 2100 < at < 2900 else 1.2


def replays(host: str, number: str, when: Callable[[float], bool]) -> World:
    """One GPU's NVLink sends again in some stretches; every link does so now and then."""

    def each(labels: Labels, at: float) -> float:
        return 45.0 if lamp(labels, host, number) and when(at) else 0.004

    return World(
        "gpu_link_replays_in_slow_phases" if when(1000) else "gpu_link_replays_beside_slow_phases",
        HOSTS,
        gpu(
            until(3400, 400, 72),
            until(3400, 98, 0),
            **{
                **CLEAN,
                "NVLINK_REPLAY_ERROR_COUNT_TOTAL": counter(each, 12.0),
                "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": counter(lambda labels, at: 0.01, 80.0),
            },
        ),
        3400,
        host_label="Hostname",
        log=steps("worn", link_pace, until_s=3390, planned=9000, finished=False),
    )


HARDWARE = (memory_failed(), fell_off(), old_errors(), exporter_died(), all_clean(),
            rose_and_went_on(), replays("node02", "1", lambda at: link_pace(at) > 1.5),
            replays("node03", "2", lambda at: at % 700 < 250))  # fmt: skip


# --- the network loses packets ------------------------------------------------------------------

TWELVE = tuple(f"chi{n}" for n in range(41, 53))


def pace_of(slow: Callable[[float], float]) -> Callable[[float], float]:
    """Tokens a second and device where 1.0 is full speed."""
    return lambda at: 3290.0 * slow(at)


def maxtext(
    pace: Callable[[float], float],
    retransmits: Callable[[Labels, float], float],
    balance: Callable[[float], float] = lambda at: 0.012,
    running: Callable[[Labels, float], float] = lambda labels, at: 18.0,
) -> tuple[Metric, ...]:
    """maxtext-slurm's exporter: GPUs, adapters, hosts, and rank 0's TensorBoard scalars."""
    host, port = ("host",), ("host", "device")
    step = counter(lambda labels, at: pace(at) / 3290.0 / 30.0)
    return (
        Metric("hw_gpu_power_watts", ("host", "gpu"), around(915, 9)),
        Metric("hw_rdma_tx_retx_pkts_total", port, counter(retransmits, 40.0), "counter"),
        Metric("hw_rdma_tx_ack_timeout_total", port,
               counter(lambda labels, at: retransmits(labels, at) / 90), "counter"),
        Metric("hw_rdma_port_state", port, flat(1)),
        Metric("hw_tcp_retransmits_total", host, counter(lambda labels, at: 0.4), "counter"),
        Metric("hw_procs_running", host,
               lambda noise, labels, at: max(1.0, noise.gauss(running(labels, at), 2.5))),
        Metric("hw_procs_blocked", host, flat()),
        Metric("hw_context_switches_total", host, counter(lambda labels, at: 91000.0), "counter"),
        Metric("hw_io_pressure_some_pct", host, around(0.4, 0.1)),
        Metric("tb_step", ("first",), step),
        Metric("tb_perf_per_device_tokens_per_sec", ("first",),
               lambda noise, labels, at: pace(at) * noise.gauss(1, 0.004)),
        Metric("tb_learning_loss", ("first",),
               lambda noise, labels, at: 2 + 6 * 0.9997**at + noise.gauss(0, 0.01)),
        Metric("tb_learning_moe_lb_loss", ("first",),
               lambda noise, labels, at: balance(at) * noise.gauss(1, 0.03)),
        Metric("tb_learning_grad_norm", ("first",), around(0.6, 0.03)),
    )  # fmt: skip


def maxtext_log(pace: Callable[[float], float], until_s: float) -> tuple[tuple[None, str], ...]:
    """Step lines without times, as MaxText prints them; the plan stands in the configuration."""
    noise = random.Random("maxtext")
    lines, at, step = ["Config param steps: 100000"], 0.0, 0
    while at < until_s:
        seconds = 30.0 * 3290.0 / pace(at) * noise.gauss(1, 0.004)
        lines.append(
            f"completed step: {step}, seconds: {seconds:.3f}, TFLOP/s/device:"
            f" {6303.0 / seconds:.3f}, Tokens/s/device: {98700.0 / seconds:.1f}, total_weights:"
            f" 6291456, loss: {2 + 6 * 0.99**step + noise.gauss(0, 0.01):.3f}"
        )
        at, step = at + seconds, step + 1
    return tuple((None, f"0: {line}") for line in lines)


def phased(at: float) -> float:
    """Full speed, a fifth less, full again, a quarter less."""
    if 2900 < at < 6500:
        return 0.796
    return 0.766 if at > 7600 else 1.0


def three_links() -> World:
    """One host loses packets in the first slow phase, two others in the second."""

    def lost(labels: Labels, at: float) -> float:
        if labels["device"] != "rdma1":
            return 0.0
        if labels["host"] == "chi44":
            return 420.0 if 2900 < at < 6500 else 0.0
        return 260.0 if labels["host"] in ("chi47", "chi51") and at > 7600 else 0.0

    pace = pace_of(phased)
    return World("rdma_loss_on_three_hosts_in_phases", TWELVE, maxtext(pace, lost), 11000, 60, 2,
                 log=maxtext_log(pace, 11000))  # fmt: skip


def loss_elsewhere() -> World:
    """A host loses packets now and then, whether the run is fast or slow."""

    def lost(labels: Labels, at: float) -> float:
        return 300.0 if labels["host"] == "chi46" and at % 1800 < 500 else 0.0

    pace = pace_of(phased)
    return World("rdma_loss_apart_from_slow_phases", TWELVE, maxtext(pace, lost), 11000, 60, 2,
                 log=maxtext_log(pace, 11000))  # fmt: skip


def loss_always() -> World:
    """A host loses packets all the time, and the pace never changes."""

    def lost(labels: Labels, at: float) -> float:
        return 80.0 if labels["host"] == "chi46" else 0.0

    pace = pace_of(lambda at: 1.0)
    return World("rdma_loss_all_the_time", TWELVE, maxtext(pace, lost), 9000, 60, 2,
                 log=maxtext_log(pace, 9000))  # fmt: skip


def addressed(labels: Labels) -> int:
    return int(labels["instance"].split(":")[0].rsplit(".", 1)[1])


def node(
    tcp: Callable[[Labels, float], float],
    running: Callable[[Labels, float], float],
    waiting: Callable[[Labels, float], float],
    hosts: tuple[str, ...],
) -> tuple[Metric, ...]:
    """node_exporter: hosts by address, their names in `node_uname_info`."""
    host, port = ("host",), ("host", "device")
    nil = counter(lambda labels, at: 0.0, 7.0)
    return (
        *(Metric("node_uname_info", ("host",), lambda noise, labels, at, n=n:
                 1.0 if addressed(labels) == n + 10 else None, fixed={"nodename": name})
          for n, name in enumerate(hosts)),
        Metric("node_infiniband_local_ack_timeout_errors_total", port, nil, "counter"),
        Metric("node_infiniband_packet_sequence_errors_total", port, nil, "counter"),
        Metric("node_infiniband_link_downed_total", port, nil, "counter"),
        Metric("node_infiniband_port_data_transmitted_bytes_total", port,
               counter(lambda labels, at: 2.1e9), "counter"),
        Metric("node_netstat_Tcp_RetransSegs", host, counter(tcp, 900.0), "counter"),
        Metric("node_procs_running", host,
               lambda noise, labels, at: max(1.0, noise.gauss(running(labels, at), 2.0))),
        Metric("node_context_switches_total", host, counter(lambda labels, at: 6e4), "counter"),
        Metric("node_pressure_cpu_waiting_seconds_total", host, lambda noise, labels, at:
               at * 0.01 + waiting(labels, at), "counter"),
        Metric("node_pressure_io_waiting_seconds_total", host, lambda noise, labels, at:
               at * 0.002, "counter"),
    )  # fmt: skip


SIX = tuple(f"gpu-node-{n}" for n in range(10, 16))
ADDRESSES = tuple(f"10.4.0.{n}:9100" for n in range(10, 16))


def tcp_only() -> World:
    """TCP segments are resent in the slow phase; the collectives' adapters count nothing."""
    slow = lambda at: 1.0 if 1800 < at < 3600 else 0.0  # noqa: E731
    return World(
        "tcp_retransmits_in_slow_phase",
        ADDRESSES,
        node(
            lambda labels, at: 0.3 + (90 * slow(at) if addressed(labels) == 12 else 0),
            lambda labels, at: 14.0,
            lambda labels, at: 0.0,
            SIX,
        ),
        5400,
        host_label="instance",
        log=steps("tcp", lambda at: 2.0 + 0.5 * slow(at), until_s=5400, planned=2300, every=5),
    )


def slow_middle(at: float) -> float:
    return 1.0 if 1800 < at < 3600 else 0.0


def left_threads() -> World:
    """On one host sixty threads of something else run in the slow phase."""
    there = lambda labels, at: slow_middle(at) if addressed(labels) == 13 else 0.0  # noqa: E731
    return World(
        "threads_of_another_on_one_host",
        ADDRESSES,
        node(
            lambda labels, at: 0.3,
            lambda labels, at: 14.0 + 61.0 * there(labels, at),
            lambda labels, at: 0.5 * max(0.0, min(at, 3600) - 1800)
            if addressed(labels) == 13 else 0.0,
            SIX,
        ),
        5400,
        host_label="instance",
        log=steps("threads", lambda at: 2.0 + 0.35 * slow_middle(at), until_s=5400,
                  planned=5000, every=5, finished=False),
    )  # fmt: skip


def busy_head() -> World:
    """The head node runs more than the others all the time, and the pace is steady."""
    return World(
        "head_node_always_runs_more",
        ADDRESSES,
        node(
            lambda labels, at: 0.3,
            lambda labels, at: 34.0 if addressed(labels) == 10 else 14.0,
            lambda labels, at: 0.0,
            SIX,
        ),
        3600,
        host_label="instance",
        log=steps("head", lambda at: 2.0, until_s=3600, planned=1700, every=5),
    )


def leaked_everywhere() -> World:
    """Every host carries seventeen threads more from a moment on, and the pace falls with it."""
    pace = pace_of(lambda at: 0.93 if at > 5000 else 1.0)
    return World(
        "threads_leaked_on_every_host",
        TWELVE,
        maxtext(pace, lambda labels, at: 0.0,
                running=lambda labels, at: 35.0 if at > 5000 else 18.0),
        10000, 60, 2, log=maxtext_log(pace, 10000),
    )  # fmt: skip


# --- one rank holds the others back --------------------------------------------------------------


def active(share: Callable[[Labels, float], float]) -> tuple[Metric, ...]:
    """dcgm-exporter with profiling: SM activity beside the coarse utilisation, and power."""
    return (
        *gpu(lambda labels, at: 180 + 260 * share(labels, at), lambda labels, at: 99.0),
        Metric("DCGM_FI_DEV_SM_CLOCK", ("host", "gpu"), flat(1980)),
        Metric(
            "DCGM_FI_PROF_SM_ACTIVE",
            ("host", "gpu"),
            lambda noise, labels, at: min(1.0, share(labels, at) * noise.gauss(1, 0.015)),
        ),
    )


def one_slow_device() -> World:
    """In the slow phase one GPU computes all the time and the others wait for it."""

    def share(labels: Labels, at: float) -> float:
        if not slow_middle(at):
            return 0.80
        return 0.90 if lamp(labels, "node03", "1") else 0.61

    return World("one_gpu_slow_at_full_clock", HOSTS, active(share), 5400, 30, 4,
                 host_label="Hostname",
                 log=steps("device", lambda at: 2.0 + 0.62 * slow_middle(at), until_s=5400,
                           planned=6000, every=5, finished=False))  # fmt: skip


def uneven_stages() -> World:
    """The last stage of the pipeline has more to do from the first step on; the slow phase is
    everyone's."""

    def share(labels: Labels, at: float) -> float:
        level = 0.88 if labels["gpu"] == "3" and labels["Hostname"] == "node03" else 0.70
        return level * (0.78 if slow_middle(at) else 1.0)

    return World("uneven_stages_and_a_slow_phase", HOSTS, active(share), 5400, 30, 4,
                 host_label="Hostname",
                 log=steps("stages", lambda at: 2.0 + 0.62 * slow_middle(at), until_s=5400,
                           planned=6000, every=5, finished=False))  # fmt: skip


STRAGGLERS = (one_slow_device(), uneven_stages())
CONTENTION = (left_threads(), busy_head(), leaked_everywhere())
NETWORK = (three_links(), loss_elsewhere(), loss_always(), tcp_only())
WORLDS = (*HARDWARE, *NETWORK, *CONTENTION, *STRAGGLERS)
__all__ = ["WORLDS"]
