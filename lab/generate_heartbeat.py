"""
Logs of a JAX run that the coordination service ended though the accused task was working.

    python lab/generate_heartbeat.py FOLDER

Four processes make a step every 2 s and say so with the time.  At 10:20:30 the coordinator
declares task 2 dead after 100 s without a heartbeat; task 2 had gone on stepping with the others
until then.  The shapes of the service's lines are those jaxlib prints; the numbers are made up.
"""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from pathlib import Path

START = datetime(2026, 11, 20, 10, 10, 0)  # noqa: DTZ001 - logs print local time without a zone
DECLARED = START + timedelta(minutes=10, seconds=30)
STEP_S = 2.0
WHY = (
    "UNAVAILABLE: Task 2 heartbeat timeout. This indicates that the remote task has failed, got"
    " preempted, or crashed unexpectedly."
)


def log(process: int) -> str:
    lines = []
    steps = int((DECLARED - START).total_seconds() / STEP_S)
    for n in range(0, steps, 10):
        at = START + timedelta(seconds=n * STEP_S, milliseconds=7 * process)
        lines.append(
            f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d} INFO train: step {n}/20000"
            f" loss={6.0 - n * 0.011:.5f} steps/s=0.5"
        )
    glog = f"{DECLARED:%m%d %H:%M:%S}.141{process:03d}"
    if process == 0:
        lines.append(f"E{glog}   12841 coordination_service.cc:1520] Shutdown barrier has failed:")
        lines.append(f"INTERNAL: Barrier failed because: task is set to ERROR: {WHY}")
    lines.append(f"E{glog}   12854 coordination_service_agent.cc:289] Polled an error.")
    lines.append(
        f"F{glog}   12854 client.h:80] Terminating process because the JAX distributed service"
        f" detected fatal errors. absl::Status: {WHY}"
    )
    return "\n".join(lines) + "\n"


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for process in range(4):
        (folder / f"process_{process}.log").write_text(log(process), "utf-8")


if __name__ == "__main__":
    main()
