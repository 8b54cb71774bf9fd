"""Checkpoints that cannot be read, are not found, or cannot be written."""

from __future__ import annotations

import shutil
import subprocess
import time

from lab.record.case import Case, listed
from lab.record.play import pretrain, torchrun
from lab.record.stage import HOME, Cell, Stage, kernel_lines

CASES: list[Case] = []
PROJECT = HOME / "proj"


@listed(CASES, origin="torchrun", about=("E2",), code="E2", attribution="job")
def checkpoint_of_another_shape(stage: Stage) -> None:
    """A run of width 64 leaves a checkpoint; a run of width 96 is told to resume from it.

    Only the second run's log is kept.
    """
    cell = stage.cell()
    first = torchrun(stage, cell, ["--steps", "40", "--save-every", "40"], log=".first")
    first.wait()
    (stage.run / ".first").unlink()
    child = torchrun(stage, cell, ["--steps", "400", "--dim", "96", "--resume", "auto"])
    stage.end(child)


@listed(CASES, origin="torchrun", about=("E2",), code="E2", attribution="job")
def checkpoint_cut_short(stage: Stage) -> None:
    """A run leaves a checkpoint, the file is cut to 60 % of its length, and a run resumes from it."""
    cell = stage.cell()
    first = torchrun(stage, cell, ["--steps", "40", "--save-every", "40"], log=".first")
    first.wait()
    (stage.run / ".first").unlink()
    path = PROJECT / "ckpt" / "step_40.pt"
    raw = path.read_bytes()
    path.write_bytes(raw[: int(len(raw) * 0.6)])
    stage.note("step_40.pt was cut to 60 % of its length")
    child = torchrun(stage, cell, ["--steps", "400", "--resume", "auto"], tee=False)
    stage.end(child)


@listed(
    CASES, origin="torchrun", about=("E2", "G1"), code="E2", attribution="job", demo="resumed-from-nothing",
    another_run_without=("2/train.log",),
    cited=(("2/train.log", r"no checkpoint in .*starting from step 0", 0),),
    title="A run told to resume found no checkpoint where it looked and quietly began again at step 0.",
)  # fmt: skip
def resumed_from_nothing(stage: Stage) -> None:
    """A run of 200 steps saves to ckpt/; the next one is told to resume, but from ckpt-v2/.

    It finds nothing, says so in one line, and trains from step 1 to its planned end, 400.
    1/train.log is the parent run, 2/train.log the one in question.
    """
    cell = stage.cell()
    torchrun(stage, cell, ["--steps", "200"], tee=False, log="1/train.log").wait()
    stage.note("the second run was started with --resume auto --ckpt-dir ckpt-v2")
    args = ["--steps", "400", "--resume", "auto", "--ckpt-dir", "ckpt-v2"]
    child = torchrun(stage, cell, args, tee=False, log="2/train.log")
    stage.end(child)


@listed(
    CASES,
    origin="python",
    about=("E2",),
    code="E2",
    state=("found", "undetermined"),
    attribution=("job", "unknown"),
)
def resumed_from_nothing_without_a_word(stage: Stage) -> None:
    """One process saves to out/ and is started again to resume, but from another folder.

    The second command says `--init-from resume --out-dir out_b`; the program prints nothing when
    it finds no checkpoint.  Both commands append to one train.log, with the shell's own trace of
    them (`set -x`): what shows the restart is the trace, the saved checkpoint and `iter 0` again.
    """
    cell = stage.cell()
    pretrain(stage, cell, ["--help"], log=".help").wait()
    (stage.run / ".help").unlink()
    script = (
        "set -x\npython pretrain.py --max-iters 300 --out-dir out\n"
        "python pretrain.py --max-iters 600 --init-from resume --out-dir out_b\n"
    )
    (PROJECT / "run.sh").write_text(script)
    child = stage.start(cell, ["bash", "run.sh"], "train.log")
    stage.end(child)


@listed(
    CASES,
    origin="python",
    about=("G1", "E2"),
    state=("healthy", "undetermined"),
    attribution=("none", "unknown"),
)
def resumed_where_it_ended(stage: Stage) -> None:
    """The near miss of resumed_from_nothing_without_a_word: the checkpoint is there and is read.

    The plan stands only in the traced command; no line of the program says that it was reached.
    """
    cell = stage.cell()
    pretrain(stage, cell, ["--help"], log=".help").wait()
    (stage.run / ".help").unlink()
    script = (
        "set -x\npython pretrain.py --max-iters 300 --out-dir out\n"
        "python pretrain.py --max-iters 600 --init-from resume --out-dir out\n"
    )
    (PROJECT / "run.sh").write_text(script)
    child = stage.start(cell, ["bash", "run.sh"], "train.log")
    stage.end(child)


@listed(CASES, origin="torchrun", about=("C6", "A3"), code=("C6", "A3"))
def disk_full_saving_checkpoint(stage: Stage) -> None:
    """The checkpoint folder is a tmpfs of 3 MB; the second checkpoint does not fit."""
    cell = stage.cell()
    folder = "/home/user/proj/ckpt"
    cell.run_root(f"mkdir -p {folder} && mount -t tmpfs -o size=3m,mode=1777 tmpfs {folder}")
    args = ["--steps", "400", "--dim", "128", "--save-every", "60"]
    child = torchrun(stage, cell, args)
    stage.end(child)
    (stage.run / "df.txt").write_text(cell.run_root(f"df -h {folder}"))


@listed(
    CASES, origin="torchrun", about=("C6",), code=("C6", "C2"), state=("found", "undetermined"),
    not_culprits=({"rank": 1}, {"rank": 2}, {"rank": 3}),
)  # fmt: skip
def checkpoint_disk_stands_still(stage: Stage) -> None:
    """ckpt/ is an ext4 file system on a loop device that is frozen (fsfreeze) before the second save.

    Rank 0 stands in uninterruptible sleep in a write; the others time out in the next collective
    after 20 s.  ps.txt is `ps` of the ranks taken while they waited.  The disk is thawed at the end.
    """
    cell = stage.cell()
    folder = disk_for_checkpoints(cell)
    args = ["--steps", "2000", "--save-every", "100", "--timeout", "20"]
    child = torchrun(stage, cell, args)
    try:
        stage.line("job.log", r"step 150/")
        cell.run_root(f"fsfreeze -f {folder}")
        stage.note("ckpt/ was frozen with fsfreeze")
        stage.line("job.log", r"step 200/")
        time.sleep(8)
        (stage.run / "ps.txt").write_text(ranks_by_ps())
        stage.line("job.log", r"closing signal|SIGTERM|Timed out", 90)
        time.sleep(35)
    finally:
        cell.run_root(f"fsfreeze -u {folder}")
        stage.note("ckpt/ was thawed")
    stage.end(child)


@listed(
    CASES, origin="torchrun", about=("C6", "C2"), code="C6", demo="disk-stood-still",
    culprits=({"rank": 0}, {"host": "node01"}), not_culprits=({"rank": 1}, {"rank": 2}, {"rank": 3}),
    cited=(("dmesg.txt", r"blocked for more than \d+ seconds", 0),),
    title="The checkpoint disk stopped answering: one rank hung in a write and the others waited for it until the timeout.",
)  # fmt: skip
def checkpoint_disk_stands_still_by_kernel(stage: Stage) -> None:
    """As checkpoint_disk_stands_still, frozen for longer, with the kernel's own word on it.

    The collectives wait 280 s.  The kernel's hung-task watch, at its default of 120 s, names the
    process that stands in the write; dmesg.txt is the kernel's log since the start.
    """
    before = len(kernel_lines())
    cell = stage.cell()
    folder = disk_for_checkpoints(cell)
    args = ["--steps", "2000", "--save-every", "100", "--timeout", "280"]
    child = torchrun(stage, cell, args)
    try:
        stage.line("job.log", r"step 150/")
        cell.run_root(f"fsfreeze -f {folder}")
        stage.note("ckpt/ was frozen with fsfreeze")
        stage.line("job.log", r"closing signal|SIGTERM|Timed out", 400)
        time.sleep(33)
    finally:
        cell.run_root(f"fsfreeze -u {folder}")
        stage.note("ckpt/ was thawed")
    stage.end(child)
    (stage.run / "dmesg.txt").write_text("\n".join(kernel_lines()[before:]) + "\n")


def disk_for_checkpoints(cell: Cell) -> str:
    """Mounts an ext4 image on ckpt/ inside the cell and returns its path there."""
    image, folder = HOME.parent.parent / "disk.img", "/home/user/proj/ckpt"
    subprocess.run(["truncate", "-s", "64M", str(image)], check=True)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    shutil.rmtree(PROJECT / "ckpt", ignore_errors=True)
    cell.run_root(f"mkdir -p {folder}; mount -o loop,sync {image} {folder}; chmod 1777 {folder}")
    return folder


def ranks_by_ps() -> str:
    """`ps` of the processes of train.py."""
    command = ["ps", "-eo", "pid,stat,wchan:24,etimes,args"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    kept = [x for x in lines if "train.py" in x and "torchrun" not in x]
    return "\n".join([lines[0], *kept]) + "\n"
