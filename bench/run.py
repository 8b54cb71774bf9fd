"""
All figures of the docs: the scanner beside ripgrep, whole commands beside bare Python, the
columnar store, PromQL beside Prometheus where that is installed.

    python bench/run.py [--megabytes 512]

Every figure is a ratio to something measured in the same run: machines differ, ratios less so.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
LINE = "2026-11-20 15:47:55,{ms:03d} [rank{r}] DEBUG fetched shard data-{n:06d}.tar in 12.1 ms\n"
STEP = (
    "2026-11-20 15:47:55,{ms:03d} [rank{r}] INFO step {n}/9000 loss {loss:.4f} grad_norm 0.390\n"
)


def fastest(command: list[str], repeat: int = 7) -> float:
    """Seconds of the fastest run: what the command needs, without what else the machine does."""
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        subprocess.run(command, check=False, capture_output=True)
        best = min(best, time.perf_counter() - start)
    return best


def megabyte(path: Path, every: int) -> None:
    """A log of 1 MB in which one line of `every` is a training step."""
    lines, size, n = [], 0, 0
    while size < 1_000_000:
        n += 1
        template = STEP if n % every == 0 else LINE
        line = template.format(ms=n % 1000, r=n % 4, n=n // every, loss=5 - n / 20000)
        lines.append(line)
        size += len(line)
    path.write_text("".join(lines), "utf-8")


def commands() -> None:
    bare = fastest([sys.executable, "-c", "pass"])
    flatline = [sys.executable, "-m", "flatline"]
    print(f"bare Python                        {bare:6.2f} s")
    with tempfile.TemporaryDirectory() as folder:
        rows = [("flatline --help", [*flatline, "--help"])]
        for every in (100, 10, 1):
            log = Path(folder) / f"job{every}.log"
            megabyte(log, every)
            name = f"diagnose 1 MB, {100 // every:3d} % step lines"
            rows.append((name, [*flatline, "diagnose", str(log), "--quiet"]))
        for name, command in rows:
            took = fastest(command)
            print(f"{name:34s} {took:6.2f} s  {took / bare:5.1f} x bare Python")


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    reader.add_argument("--megabytes", type=int, default=512)
    asked = reader.parse_args()
    commands()
    print(flush=True)
    subprocess.run(
        [sys.executable, str(HERE / "scan.py"), "--megabytes", str(asked.megabytes)], check=True
    )
    print(flush=True)
    subprocess.run([sys.executable, str(HERE / "ranks.py"), "--ranks", "256"], check=True)
    print(flush=True)
    subprocess.run([sys.executable, str(HERE / "store.py"), "--seconds", "30"], check=True)
    if shutil.which("prometheus"):
        print(flush=True)
        small = ["--metrics", "8", "--hours", "6"]
        subprocess.run([sys.executable, str(HERE / "promql.py"), *small], check=True)


if __name__ == "__main__":
    main()
