"""
How long a folder of rank logs takes, as a big job leaves it, beside reading its bytes.

    python bench/ranks.py [--ranks 1024] [--every 100]

Each rank writes a log of 1 MB of its own, one line of `--every` a training step; one rank dies of
a failing kernel, its neighbours see their collectives time out.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

QUIET = (
    "2026-11-20 15:{m:02d}:{s:02d},{u:03d} [rank{r}] DEBUG fetched data-{n:06d}.tar in 12.1 ms",
    "node{h:03d}:{n}:{n} [{g}] NCCL INFO Channel {g:02d}/0 : {r}[{g}] -> {r}[{g}] via P2P/IPC",
    "2026-11-20 15:{m:02d}:{s:02d},{u:03d} [rank{r}] INFO worker {g} drained its queue of {n}",
)
STEP = (
    "2026-11-20 15:{m:02d}:{s:02d},{u:03d} [rank{r}] INFO step {step}/9000 loss {loss:.4f}"
    " grad_norm 0.390"
)
DIED = (
    "[rank{r}]: Traceback (most recent call last):\n"
    '[rank{r}]:   File "train.py", line 88, in <module>\n'
    "[rank{r}]:     loss.backward()\n"
    "[rank{r}]: torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n"
)
WAITED = (
    "[rank{r}]:[E1120 15:59:59.000000000 ProcessGroupNCCL.cpp:632] [Rank {r}] Watchdog caught"
    " collective operation timeout: WorkNCCL(SeqNum=7001, OpType=ALLREDUCE, NumelIn=1, NumelOut=1,"
    " Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
)
INSTALLED = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
"""An installed package is compiled once, not in every command."""


def write(folder: Path, ranks: int, every: int) -> int:
    """The bytes of all logs."""
    total = 0
    for rank in range(ranks):
        dice, rows, size, n = random.Random(rank), [], 0, 0
        while size < 1_000_000:
            n += 1
            at = size * 3500 // 1_000_000
            step = n % every == 0
            row = (STEP if step else dice.choice(QUIET)).format(
                m=at // 60, s=at % 60, u=n % 1000, r=rank, n=dice.randrange(99_999),
                h=rank // 8, g=rank % 8, step=n // every, loss=5 - n / 20_000,
            )  # fmt: skip
            rows.append(row)
            size += len(row) + 1
        text = "\n".join(rows) + "\n" + (DIED if rank == ranks // 3 else WAITED).format(r=rank)
        total += (folder / f"rank_{rank}.log").write_bytes(text.encode())
    return total


def took(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--every", type=int, default=100)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = write(folder, asked.ranks, asked.every)
        read = took(lambda: [path.read_bytes().count(b"\n") for path in folder.iterdir()])
        command = [sys.executable, "-m", "flatline", "diagnose", name, "--quiet"]
        wall = min(
            took(lambda: subprocess.run(command, capture_output=True, env=INSTALLED))
            for _ in range(3)
        )
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(
            f"{asked.ranks} rank logs, {size / 1e9:.2f} GB: diagnosed in {wall:.1f} s, "
            f"{wall / read:.0f} x reading and counting lines ({read:.2f} s); "
            f"{1e3 * wall / asked.ranks:.1f} ms a log, {peak:.0f} MiB in the largest process"
        )


if __name__ == "__main__":
    main()
