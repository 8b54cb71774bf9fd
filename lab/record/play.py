"""How the programs are started: the command lines that the cases share."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

from lab.record.data import write_corpus, write_records
from lab.record.stage import HOME, Cell, Stage, process_where

Child = subprocess.Popen[bytes]


def torchrun(
    stage: Stage,
    cell: Cell,
    args: Sequence[str],
    *,
    log: str = "job.log",
    launch: Sequence[str] = ("--nproc-per-node=4", "--master-port=29500"),
    program: str = "train.py",
    tee: bool = True,
    redirects: bool = False,
    data: bool = True,
    env: Mapping[str, str] | None = None,
    wrap: Sequence[str] = (),
    append: bool = False,
) -> Child:
    """torchrun of train.py; `tee` copies the ranks' output, prefixed, into the launcher's log."""
    if data:
        write_records(HOME / "proj" / "data" / "train.jsonl", 12_000)
    stage.own()
    shown = ["--log-dir=logs", "--tee=3"] if tee else []
    if redirects:
        shown = ["--log-dir=logs", "--redirects=3"]
    command = ["torchrun", *launch, *shown, program, *args]
    return stage.start(cell, command, log, env=env, wrap=wrap, append=append)


def rank_pid(child: Child, rank: int, program: str = "train.py") -> int:
    return process_where(child.pid, "RANK", str(rank), program)


def image_run(
    stage: Stage,
    cell: Cell,
    args: Sequence[str],
    command: Sequence[str] | None = None,
    log: str = "train.log",
) -> Child:
    """One process of train_images.py on the made-up images."""
    make = ["python", "make_images.py", "data/images"]
    stage.own()
    stage.start(cell, make, ".images").wait()
    (stage.run / ".images").unlink()
    return stage.start(cell, command or ["python", "train_images.py", *args], log)


def pretrain(
    stage: Stage, cell: Cell, args: Sequence[str], log: str = "train.log", *, append: bool = False
) -> Child:
    """One process of pretrain.py on the made-up corpus."""
    write_corpus(HOME / "proj" / "data" / "corpus.txt", 3000)
    stage.own()
    return stage.start(cell, ["python", "pretrain.py", *args], log, append=append)
