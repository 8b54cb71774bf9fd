"""Near misses: runs that look like a failure and are none, and failures of the record itself."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from lab.record.case import Case, listed
from lab.record.data import write_records
from lab.record.play import pretrain, torchrun
from lab.record.stage import HOME, Stage, descendants

CASES: list[Case] = []
PROJECT = HOME / "proj"


@listed(
    CASES, origin="python", about=("G1", "A2", "C5", "E1"), state="healthy", attribution="none",
    demo="frightening-but-sound",
    title="A sound run whose log is full of frightening lines: a caught traceback, a reset connection, a restarted worker, a nan.",
)  # fmt: skip
def frightening_but_sound(stage: Stage) -> None:
    """A run that survives everything: it ends at its planned last step with a falling loss.

    Really happening: the shard server starts late and resets the first two connections (retried);
    the metrics gateway does not exist (a caught traceback); the prefetch worker gets SIGKILL from
    outside and is restarted; one group of the evaluation is empty, so its error rate is nan; and
    a destructor fails at exit.
    """
    write_records(PROJECT / "data" / "train.jsonl", 4000)
    stage.own()
    cell = stage.cell()
    child = stage.start(cell, ["python", "stream_train.py"], "train.log")
    stage.line("train.log", r"retry 2/")
    server = stage.start(cell, ["python", "shard_server.py"], ".server")
    stage.line("train.log", r"step 200/")
    stage.kill(min(descendants(child.pid)), signal.SIGKILL, "the prefetch worker")
    stage.end(child)
    server.kill()
    server.wait()
    (stage.run / ".server").unlink()


@listed(CASES, origin="python", about=("A2", "A3"), state="undetermined")
def stopped_with_ctrl_c(stage: Stage) -> None:
    """A user presses Ctrl-C in a sound run (SIGINT to the process): nothing was wrong with it."""
    child = pretrain(stage, stage.cell(), ["--max-iters", "100000"])
    stage.line("train.log", r"iter 900:")
    stage.kill(child.pid, signal.SIGINT, "the process, as Ctrl-C does")
    stage.end(child)


@listed(CASES, origin="torchrun", about=("A2", "A3"), state="undetermined")
def torchrun_stopped_with_ctrl_c(stage: Stage) -> None:
    """As stopped_with_ctrl_c, with torchrun and four ranks: SIGINT goes to the whole group."""
    child = torchrun(stage, stage.cell(), ["--steps", "5000"])
    stage.line("job.log", r"step 160/")
    for pid in (child.pid, *descendants(child.pid)):
        os.kill(pid, signal.SIGINT)
    stage.note("SIGINT sent to the launcher and the ranks, as Ctrl-C does")
    stage.end(child)


@listed(CASES, origin="torchrun", about=("A2", "F2"), state=("undetermined", "found"), code="A2")
def launcher_told_to_stop(stage: Stage) -> None:
    """The torchrun launcher gets SIGTERM from outside in a sound run; nothing says from whom or why."""
    child = torchrun(stage, stage.cell(), ["--steps", "5000"])
    stage.line("job.log", r"step 160/")
    stage.kill(child.pid, signal.SIGTERM, "the launcher")
    stage.end(child)


@listed(
    CASES, origin="torchrun", about=("G1",), state="undetermined", demo="log-cut-off",
    title="A sound log that stops in the middle of a line: what became of the run cannot be told.",
)  # fmt: skip
def log_cut_off(stage: Stage) -> None:
    """A healthy run of 300 steps, of whose log only the first part was collected.

    The file ends in the middle of a line at about step 170; the run itself went on to its end.
    """
    child = torchrun(stage, stage.cell(), ["--steps", "300"])
    stage.end(child)
    path = stage.run / "job.log"
    raw = path.read_bytes()
    cut = raw.index(b"step 170/") + 31
    path.write_bytes(raw[:cut])
    stage.note(f"job.log was cut to its first {cut} bytes")


@listed(
    CASES,
    origin="python",
    about=("B1", "G1"),
    state="healthy",
    attribution="none",
    provenance="simulated",
)
def oom_caught_and_retried(stage: Stage) -> None:
    """A batch-size finder catches two out-of-memory errors, halves the batch and trains to the end.

    The OutOfMemoryError is raised by the program's own stand-in for the device allocator with the
    wording of PyTorch's CUDA allocator; there is no GPU.  Everything after it really runs.
    """
    stage.end(stage.start(stage.cell(), ["python", "fit_batch.py", "--find"], "train.log"))


@listed(
    CASES, origin="python", about=("B1",), code="B1", attribution="job", provenance="simulated"
)
def oom_on_first_batch(stage: Stage) -> None:
    """As oom_caught_and_retried without the finder: the error is not caught and ends the program.

    Simulated as there: the message is the stand-in's, the traceback is the program's.
    """
    path = PROJECT / "fit_batch.py"
    text = path.read_text().replace(
        "    model = Net()\n", "    reserve(batch)\n    model = Net()\n"
    )
    path.write_text(text)
    stage.end(stage.start(stage.cell(), ["python", "fit_batch.py"], "train.log"))


@listed(CASES, origin="python", about=("E1", "G1"), state="healthy", attribution="none")
def loss_scale_overflows_at_start(stage: Stage) -> None:
    """The loss scaler starts at 2^127: its first steps overflow, are skipped and halve it, as meant."""
    args = ["--init-scale", str(2.0**127), "--steps", "400"]
    stage.end(stage.start(stage.cell(), ["python", "fit_batch.py", *args], "train.log"))


@listed(
    CASES,
    origin="python",
    about=("G1", "A3"),
    state=("healthy", "undetermined"),
    attribution=("none", "unknown"),
)
def failure_messages_are_the_data(stage: Stage) -> None:
    """A character model is trained on lines of other programs' errors and prints samples of its data.

    The printed samples are error messages; none of them happened here.
    """
    path = PROJECT / "pretrain.py"
    show = '            print("sample:", text[it * 7 % 9000 :][:160].replace("\\n", " / "), flush=True)\n'
    marker = "            if it > start:\n"
    path.write_text(path.read_text().replace(marker, show + marker, 1))
    lines = [
        "RuntimeError: CUDA error: device-side assert triggered",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=77.0",
        "NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory",
        "KeyError: 'input_ids'",
        "Segmentation fault (core dumped)",
        "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
    ]
    cell = stage.cell()
    pretrain(stage, cell, ["--help"], log=".help").wait()
    (stage.run / ".help").unlink()
    (PROJECT / "data" / "corpus.txt").write_text(
        "\n".join(lines[i * 5 % 7] for i in range(400)) + "\n"
    )
    stage.end(stage.start(cell, ["python", "pretrain.py"], "train.log"))


@listed(
    CASES,
    origin="torchrun",
    about=("G1", "A1"),
    state=("healthy", "undetermined"),
    attribution=("none", "unknown"),
)
def earlier_failure_in_the_same_file(stage: Stage) -> None:
    """The first start failed on a mistyped data path; the second, appended to the same log, is sound."""
    cell = stage.cell()
    torchrun(stage, cell, ["--data", "data/trian.jsonl"]).wait()
    time.sleep(2)
    child = torchrun(stage, cell, ["--steps", "300"], append=True)
    stage.end(child)


@listed(
    CASES,
    origin="torchrun",
    about=("D3", "G1"),
    state=("healthy", "undetermined"),
    attribution=("none", "unknown"),
)
def one_rank_short_of_cpu(stage: Stage) -> None:
    """Rank 3 is held to a tenth of a core by a CPU cgroup; every rank waits for it at each step.

    The run reaches its planned end.  Nothing in the log names the slow rank, and nothing there
    says that the steps could have been shorter.
    """
    group = Path("/sys/fs/cgroup/cpu/job_20911")
    group.mkdir(exist_ok=True)
    cell = stage.cell()
    child = torchrun(stage, cell, ["--steps", "300"])
    found = stage.line("job.log", r"\[rank 3\] pid (\d+) on")
    (group / "cpu.cfs_quota_us").write_text("10000")
    (group / "cgroup.procs").write_text(found[1])
    stage.note(f"the process of rank 3 (pid {found[1]}) was held to 0.1 of a core")
    stage.end(child)
    time.sleep(1)
    group.rmdir()
