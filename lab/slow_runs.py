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


HARDWARE = (memory_failed(), fell_off(), old_errors(), exporter_died(), all_clean(),
            rose_and_went_on())  # fmt: skip
WORLDS = HARDWARE
__all__ = ["WORLDS", "counter"]
