"""The worlds of `generate_slow.py` that ended in a fault whose place another source tells."""

from __future__ import annotations

from datetime import timedelta

from generate_slow import BEGIN, World
from slow_runs import Labels
from undated_runs import metrics, record

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


WORLDS = (
    accused("declared_dead_at_full_power", DECLARED),
    accused("declared_dead_after_it_stopped", DECLARED - 101),
)
