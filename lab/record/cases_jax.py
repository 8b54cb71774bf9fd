"""jax.distributed on the CPU: three processes, one log each."""

from __future__ import annotations

import signal
import subprocess

from lab.record.case import Case, listed
from lab.record.stage import Cell, Stage

CASES: list[Case] = []
PYTHON = "/home/user/.venv-jax/bin/python"


def process(stage: Stage, cell: Cell, number: int, *args: str) -> subprocess.Popen[bytes]:
    command = [
        PYTHON,
        "jax_train.py",
        "--coordinator",
        "node01:8476",
        "--process",
        str(number),
        *args,
    ]
    return stage.start(cell, command, f"process_{number}.log", env={"JAX_PLATFORMS": "cpu"})


def three(stage: Stage, *args: str) -> list[subprocess.Popen[bytes]]:
    cell = stage.cell()
    return [process(stage, cell, i, *args) for i in range(3)]


def ends(stage: Stage, children: list[subprocess.Popen[bytes]]) -> None:
    codes = [child.wait(timeout=180) for child in children]
    stage.note(f"exit statuses, in order of the processes: {codes}")


@listed(CASES, origin="jax", about=("G1",), state="healthy", attribution="none")
def jax_reaches_planned_end(stage: Stage) -> None:
    """Three processes train a regression for the planned 300 steps; the loss falls."""
    ends(stage, three(stage))


@listed(
    CASES, origin="jax", about=("A2", "C2"), code=("A2", "C2"), not_culprits=({"task": 0}, {"task": 1}),
)  # fmt: skip
def jax_worker_killed(stage: Stage) -> None:
    """Process 2 gets SIGKILL from outside in mid-run; the coordinator misses its heartbeats."""
    children = three(stage, "--steps", "20000")
    stage.line("process_0.log", r"step 400/")
    stage.kill(children[2].pid, signal.SIGKILL, "process 2")
    ends(stage, children)


@listed(
    CASES, origin="jax", about=("C2", "C4"), code="C2", state=("found", "undetermined"),
    not_culprits=({"task": 0}, {"task": 2}),
)  # fmt: skip
def jax_worker_stopped(stage: Stage) -> None:
    """Process 1 gets SIGSTOP from outside in mid-run and is killed only after the others have died.

    It was declared dead and was indeed not working: not a false positive of the heartbeat.
    """
    children = three(stage, "--steps", "20000")
    stage.line("process_0.log", r"step 400/")
    stage.kill(children[1].pid, signal.SIGSTOP, "process 1")
    ends(stage, [children[0], children[2]])
    stage.kill(children[1].pid, signal.SIGKILL, "process 1, after the others had ended")
    children[1].wait()


@listed(
    CASES,
    origin="jax",
    about=("A2", "C2"),
    code=("A2", "C2", "C5"),
    not_culprits=({"task": 1}, {"task": 2}),
)
def jax_coordinator_killed(stage: Stage) -> None:
    """Process 0, which holds the coordination service, gets SIGKILL from outside in mid-run."""
    children = three(stage, "--steps", "20000")
    stage.line("process_1.log", r"step 400/")
    stage.kill(children[0].pid, signal.SIGKILL, "process 0")
    ends(stage, children)


@listed(CASES, origin="jax", about=("C1",), code="C1")
def jax_coordinator_missing(stage: Stage) -> None:
    """Processes 1 and 2 start and process 0, the coordinator, never does; they give up after 25 s."""
    cell = stage.cell()
    ends(stage, [process(stage, cell, i, "--init-timeout", "25") for i in (1, 2)])


@listed(
    CASES,
    origin="jax",
    about=("C1",),
    code="C1",
    culprits=({"task": 2},),
    not_culprits=({"task": 0}, {"task": 1}),
)
def jax_worker_never_started(stage: Stage) -> None:
    """Processes 0 and 1 of three start; process 2 never does."""
    cell = stage.cell()
    ends(stage, [process(stage, cell, i, "--init-timeout", "25") for i in (0, 1)])


@listed(CASES, origin="jax", about=("E1",), code="E1", attribution="training")
def jax_loss_goes_nan(stage: Stage) -> None:
    """The learning rate of Adam is absurd (1e10); the three processes run to their end with NaN."""
    ends(stage, three(stage, "--lr", "1e10"))
