"""Processes ended by a signal, under torchrun and plain python."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

from lab.record.case import Case, listed
from lab.record.data import dump_records, index_for, write_records
from lab.record.play import image_run, rank_pid, torchrun
from lab.record.stage import (
    HOME,
    Stage,
    descendants,
    kernel_lines,
    memory_limit,
)

CASES: list[Case] = []
OTHERS = tuple({"rank": r} for r in (0, 1, 3))


@listed(
    CASES, origin="torchrun", about=("A2", "C2"), code="A2", culprits=({"rank": 2},),
    not_culprits=OTHERS, demo="rank-killed",
    title="One of four ranks was killed with SIGKILL in the middle of training; the others died of the broken connection.",
)  # fmt: skip
def one_rank_sigkilled(stage: Stage) -> None:
    """Four gloo ranks train; the process of rank 2 gets SIGKILL from outside in mid-run.

    The launcher's log (with the ranks' output teed into it) and the ranks' own logs are left.
    Nothing left behind says who sent the signal.
    """
    cell = stage.cell()
    child = torchrun(stage, cell, ["--steps", "2000"])
    stage.line("job.log", r"step 120/")
    stage.kill(rank_pid(child, 2), signal.SIGKILL, "the process of rank 2")
    stage.end(child)
    stage.keep(HOME / "proj" / "logs", "logs")


@listed(
    CASES, origin="torchrun", about=("A2",), code="A2", culprits=({"rank": 3},),
    not_culprits=({"rank": 0}, {"rank": 1}, {"rank": 2}),
)  # fmt: skip
def sigkill_without_tee(stage: Stage) -> None:
    """Rank 3 gets SIGKILL from outside; the ranks write to their own files only.

    job.log holds the launcher's words alone; progress stands in logs/*/attempt_0/0/stdout.log.
    """
    cell = stage.cell()
    child = torchrun(stage, cell, ["--steps", "2000"], tee=False, redirects=True)
    log = HOME / "proj" / "logs"
    for _ in range(600):
        if any("step 90/" in p.read_text() for p in log.rglob("stdout.log")):
            break
        time.sleep(0.1)
    stage.kill(rank_pid(child, 3), signal.SIGKILL, "the process of rank 3")
    stage.end(child)
    stage.keep(log, "logs")


@listed(
    CASES, origin="torchrun", about=("A2",), code="A2", fault_class="segv", attribution="job",
    culprits=({"rank": 1},), not_culprits=({"rank": 0}, {"rank": 2}, {"rank": 3}), demo="native-code-segfault",
    title="A C extension read past its buffer on one bad record, and that rank died of a segmentation fault.",
)  # fmt: skip
def native_code_segfault(stage: Stage) -> None:
    """The data loader packs text in C through ctypes and trusts the length in each record.

    The record that rank 1 reads at step 57 claims 1,900,000,000 bytes, so the C loop runs off its
    buffer.  Python's faulthandler is on (PYTHONFAULTHANDLER=1); the ranks' output is not prefixed.
    """
    packed(stage, rank=1, step=57, claimed=1_900_000_000)


@listed(
    CASES, origin="torchrun", about=("A2",), code="A2", fault_class="abort", attribution="job",
    culprits=({"rank": 3},), not_culprits=({"rank": 0}, {"rank": 1}, {"rank": 2}),
)  # fmt: skip
def heap_corruption_abort(stage: Stage) -> None:
    """The same C packer as in native_code_segfault, with a smaller lie.

    The record that rank 3 reads at step 41 claims 400 bytes for a buffer of 64, so the heap is
    overwritten and glibc calls abort(); faulthandler is off.
    """
    packed(stage, rank=3, step=41, claimed=400, env={})


def packed(
    stage: Stage, rank: int, step: int, claimed: int, env: dict[str, str] | None = None
) -> None:
    project = HOME / "proj"
    command = ["gcc", "-O1", "-shared", "-fPIC", "-o", "libfastpack.so", "fastpack.c"]
    subprocess.run(command, cwd=project, check=True)
    records = write_records(project / "data" / "train.jsonl", 12_000)
    records[index_for(rank, step, 4, 8)]["n"] = claimed
    dump_records(project / "data" / "train.jsonl", records)
    stage.note(f"the record that rank {rank} reads at step {step} was given n = {claimed}")
    cell = stage.cell()
    args = ["--steps", "400", "--packer", "./libfastpack.so"]
    env = {"PYTHONFAULTHANDLER": "1"} if env is None else env
    child = torchrun(stage, cell, args, tee=False, env=env, data=False)
    stage.end(child)


@listed(
    CASES, origin="torchrun", about=("A2",), code="A2", fault_class="cgroup-oom", attribution="job",
    culprits=({"rank": 1},), not_culprits=({"rank": 0}, {"rank": 2}, {"rank": 3}), demo="memory-limit",
    title="One rank grew past the memory limit of its control group and the kernel killed it.",
    cited=(("dmesg.txt", r"Memory cgroup out of memory: Killed process", 0),),
)  # fmt: skip
def rank_over_memory_limit(stage: Stage) -> None:
    """The whole job runs in a memory cgroup of 1700 MB; the cache of rank 1 grows without bound.

    The training program keeps every decoded record; rank 1's shard has records of 4 MB.  The
    kernel kills it at the limit.  dmesg.txt is the kernel's log of that moment.
    """
    over_memory(stage)
    stage.note("the lines of the kernel log since the start were kept as dmesg.txt")


@listed(
    CASES, origin="torchrun", about=("A2",), code="A2", culprits=({"rank": 1},),
    not_culprits=({"rank": 0}, {"rank": 2}, {"rank": 3}),
)  # fmt: skip
def memory_limit_without_kernel_log(stage: Stage) -> None:
    """The run of rank_over_memory_limit again, without its kernel log.

    The log alone shows a SIGKILL and not its sender: no class of memory kill may be claimed as
    certain.
    """
    over_memory(stage)
    (stage.run / "dmesg.txt").unlink()


def over_memory(stage: Stage) -> None:
    project = HOME / "proj"
    records = write_records(project / "data" / "train.jsonl", 12_000)
    for step in range(30, 300):
        heavy = records[index_for(1, step, 4, 8)]
        heavy["text"] = str(heavy["text"]) * 24
        heavy["attachment_mb"] = 4
    dump_records(project / "data" / "train.jsonl", records)
    before = len(kernel_lines())
    cell = stage.cell()
    with memory_limit("job_20817", 1700 << 20) as group:
        wrap = ["bash", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "_"]
        child = torchrun(stage, cell, ["--steps", "600", "--cache"], data=False, wrap=wrap)
        stage.end(child)
        time.sleep(1)
    (stage.run / "dmesg.txt").write_text("\n".join(kernel_lines()[before:]) + "\n")


@listed(
    CASES, origin="python", about=("A2",), code=("A2", "A3"),
    cited=(("train.log", r"is killed by signal: Killed", 0),),
)  # fmt: skip
def dataloader_worker_killed(stage: Stage) -> None:
    """One process trains on images with two DataLoader workers; one worker gets SIGKILL from outside.

    The main process raises PyTorch's own RuntimeError about it.  There are no ranks.
    """
    cell = stage.cell()
    child = image_run(stage, cell, ["--epochs", "6", "--augment", "60"])
    stage.line("train.log", r"Epoch: \[1\]\[ *20/")
    worker = min(descendants(child.pid))
    stage.kill(worker, signal.SIGKILL, "a DataLoader worker")
    stage.end(child)


@listed(
    CASES, origin="python", about=("A2", "C6"), code="A2", fault_class="bus", attribution="job",
    cited=(("train.log", r"Bus error", 0),), demo="small-shm",
    title="A cache in shared memory outgrew a small /dev/shm, and a data-loader worker died of a bus error.",
)  # fmt: skip
def shm_bus_error(stage: Stage) -> None:
    """Image training with DataLoader workers in a mount namespace whose /dev/shm holds 64 MB.

    The workers share a cache of decoded images in /dev/shm that needs 671 MB.  Creating it only
    sets its length, so the program starts; a worker dies of SIGBUS when the file system is full.
    """
    cell = stage.cell(shm="64m")
    child = image_run(stage, cell, ["--decoded-cache", "512", "--batch-size", "4"])
    stage.end(child)


@listed(
    CASES, origin="python", about=("A1", "A2", "C6"), code=("A1", "A2"), attribution="job",
    cited=(("train.log", r"^RuntimeError: unable to allocate shared memory", 0),),
)  # fmt: skip
def shm_too_small_for_a_batch(stage: Stage) -> None:
    """Image training with DataLoader workers in a mount namespace whose /dev/shm holds 1 MB.

    The first batch is 4.9 MB.  PyTorch reserves the space before writing, so there is no bus
    error here: the worker raises "No space left on device", which is not about a disk.
    """
    cell = stage.cell(shm="1m")
    child = image_run(stage, cell, ["--size", "160"])
    stage.end(child)


@listed(
    CASES, origin="python", about=("A2",), code="A2",
)  # fmt: skip
def plain_kill_of_single_process(stage: Stage) -> None:
    """One process without a launcher gets SIGKILL from outside; its shell prints one word.

    The log is that of `bash run.sh > train.log`: progress, then bash's line about the killed
    child, then nothing.
    """
    cell = stage.cell()
    project = HOME / "proj"
    (project / "run.sh").write_text("python train_images.py --epochs 6 --augment 30\n")
    child = image_run(stage, cell, [], command=["bash", "run.sh"])
    stage.line("train.log", r"Epoch: \[1\]\[ *30/")
    main = next(
        p
        for p in descendants(child.pid)
        if "train_images" in Path(f"/proc/{p}/cmdline").read_text()
    )
    stage.kill(main, signal.SIGKILL, "the training process")
    stage.end(child)
