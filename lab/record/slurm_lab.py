"""
A real Slurm of four nodes inside one cell, for the cases that need a scheduler.

Every node is a slurmd in a network and host-name namespace of its own; its GPUs are character
devices that stand in for them.  It comes up once (a few seconds) and serves all cases of a call.
"""

from __future__ import annotations

import atexit
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from lab.record.stage import HOME, PROJECT, ROOT, Cell, Stage, environment

FIELDS = (
    "JobID,JobName,User,Partition,State,ExitCode,DerivedExitCode,Submit,Start,End,Elapsed,Timelimit,"
    "NNodes,NTasks,NodeList,ReqTRES,AllocTRES,MaxRSS,MaxRSSNode,MaxRSSTask,Reason,WorkDir,SubmitLine"
)
SCRIPT = """#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:8
#SBATCH --mem=900
#SBATCH --time={limit}
{more}
echo "job $SLURM_JOB_ID on $SLURM_JOB_NODELIST started $(date -Is)"
{body}
"""
_UP: list[SlurmLab] = []


class SlurmLab:
    """The running scheduler. `cell` is the head node."""

    def __init__(self) -> None:
        (ROOT / "slurm").mkdir(parents=True, exist_ok=True)
        self.cell = Cell("head")
        script = Path(__file__).parent / "slurm_up.sh"
        self.root(f"mkdir -p /srv/slurm; mount --bind {ROOT}/slurm /srv/slurm; {script} 4")

    def root(self, script: str) -> str:
        command = [
            *self.cell.enter(root=True),
            "bash",
            "-c",
            f"PATH=$PATH:/usr/sbin:/sbin; {script}",
        ]
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        return done.stdout

    def user(self, *command: str) -> str:
        """Runs a command as the neutral user in the project."""
        words = [f"{k}={v}" for k, v in environment().items()]
        full = [*self.cell.enter(), "env", "-i", "-C", PROJECT, *words, *command]
        done = subprocess.run(
            full, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        return done.stdout.strip()

    def submit(
        self, stage: Stage, body: str, *options: str, name: str = "lm-small", nodes: int = 4,
        limit: str = "00:30:00", more: str = "", script: str = "job.sh",
    ) -> int:  # fmt: skip
        """Writes and submits a batch script; returns the job id."""
        text = SCRIPT.format(name=name, nodes=nodes, limit=limit, more=more, body=body)
        (HOME / "proj" / script).write_text(text)
        stage.own()
        return int(self.user("sbatch", "--parsable", *options, script))

    def state(self, job: int) -> str:
        return self.user("squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T")

    def until(self, job: int, states: Sequence[str], timeout_s: float = 240) -> str:
        end = time.monotonic() + timeout_s
        while (now := self.state(job)) not in states:
            if time.monotonic() > end:
                raise TimeoutError(f"job {job} is {now}, not {states}, after {timeout_s} s")
            time.sleep(0.5)
        return now

    def log(self, job: int) -> Path:
        return HOME / "proj" / f"slurm-{job}.out"

    def line(self, stage: Stage, job: int, pattern: str, timeout_s: float = 180) -> None:
        """Waits until the job's log has a line; the log is where the run wrote it, not under run/."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            if self.log(job).exists() and pattern in self.log(job).read_text(errors="replace"):
                return
            time.sleep(0.2)
        raise TimeoutError(f"job {job}: no {pattern!r} in its log after {timeout_s} s")

    def keep(
        self, stage: Stage, job: int, *, every_job: bool = False, nodes: bool = False
    ) -> None:
        """Keeps the log, the accounting rows and the controller's record of the job."""
        time.sleep(3)
        if self.log(job).exists():
            stage.keep(self.log(job), f"slurm-{job}.out")
        which = ["-S", "2026-01-01", "-a"] if every_job else ["-j", str(job)]
        rows = self.user("sacct", "-P", "-D", "-o", FIELDS, *which)
        (stage.run / "sacct.txt").write_text(rows + "\n")
        (stage.run / "job.txt").write_text(self.user("scontrol", "show", "job", str(job)) + "\n")
        if nodes:
            (stage.run / "node.txt").write_text(self.user("scontrol", "show", "node") + "\n")
        stage.note(f"job {job} is {self.state(job)} for Slurm")

    def idle(self) -> None:
        """Waits until all four nodes are free again."""
        for _ in range(240):
            if self.user("sinfo", "-h", "-p", "train", "-t", "idle", "-o", "%D") == "4":
                return
            time.sleep(0.5)
        raise TimeoutError("the nodes do not come back: " + self.user("sinfo", "-N"))

    def close(self) -> None:
        script = Path(__file__).parent / "slurm_down.sh"
        subprocess.run([*self.cell.enter(root=True), "bash", str(script)], check=False)
        self.cell.close()


def slurm() -> SlurmLab:
    """The lab, started on first use and ended with this program."""
    if not _UP:
        _UP.append(SlurmLab())
        atexit.register(_UP[0].close)
    _UP[0].idle()
    return _UP[0]


def task_pid(job: int, task: int, program: str = "train.py") -> int:
    """The process of a task, by the environment that Slurm gave it."""
    wanted = {f"SLURM_JOB_ID={job}".encode(), f"SLURM_PROCID={task}".encode()}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environ = set((folder / "environ").read_bytes().split(b"\0"))
            command = (folder / "cmdline").read_text()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if wanted <= environ and program in command and "bash" not in command:
            return int(folder.name)
    raise LookupError(f"task {task} of job {job} does not run {program}")
