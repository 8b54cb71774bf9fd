"""
How fast the scanner reads logs, beside ripgrep on the same files with the same patterns.

    python bench/scan.py [--megabytes 512] [--repeat 3] [--patterns 300]

Writes three logs of made-up training output into a temporary folder, in which 1, 10 and 50 % of
the lines hold something that a pattern matches, and scans each to structured hits: line number,
segment, text, pattern numbers.  ripgrep is asked for less: it only counts the lines.  Both take
the best of several runs, with the file in the page cache.  On two cores two such logs are read at
once, by a process each, as the logs of a folder are; ripgrep likewise.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from flatline import parsers, signatures
from flatline.errors import FlatlineError
from flatline.logs.labels import Labels
from flatline.logs.prefilter import prefilter
from flatline.logs.reading import clean, open_text
from flatline.logs.scan import Scanner

QUIET = (
    "2026-11-20 15:{m:02d}:{s:02d},{u:03d} [rank{r}] DEBUG fetched data-{n:06d}.tar {f:.1f} ms",
    "node{h:02d}:{n}:{n} [{g}] NCCL INFO Channel {g:02d}/0 : {r}[{g}] -> {g}[{g}] via P2P/IPC",
    "[2026-11-20 15:{m:02d}:{s:02d},{u:03d}] [INFO] [logging.py:128:log] worker {r} drained queue",
    "{r:>3}: wandb: uploading artifact chunk {n} of {n} at {f:.2f} MB/s",
    "  model.layers.{g}.self_attn.q_proj.weight  torch.bfloat16  [{n}, {n}]",
    "/opt/conda/lib/python3.11/site-packages/torch/utils/data/{g}/sampler.py:{n}: note {f:.4f}",
)
LOUD = (
    "[rank{r}]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate {f:.2f} GiB.",
    "kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid={n}, GPU has fallen off the bus.",
    "srun: error: node{h:02d}: task {r}: Killed",
    "{r:>3}: RuntimeError: CUDA error: an illegal memory access was encountered",
    "ConnectionResetError: [Errno 104] Connection reset by peer",
    "iteration {n:>8}/ 500000 | consumed samples: {n} | lm loss: {f:.6E} | grad norm: {f:.3f} |",
)
BUILT_IN = (
    r"CUDA out of memory\. Tried to allocate ([\d.]+) (GiB|MiB)",
    r"NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): (\d+)",
    r"srun: error: (\S+): tasks? ([\d,\-]+): (\w+)",
    r"RuntimeError: .*(NCCL|CUDA) error",
    r"Connection (reset by peer|refused|closed by remote host)",
    r"iteration +[0-9]+/ *[0-9]+ +\|",
    r"Traceback \(most recent call last\)",
    r"slurmstepd: error: \*\*\* (JOB|STEP) (\d+(\.\d+)?) ON (\S+) CANCELLED AT (\S+)",
)


def patterns() -> list[str]:
    """The catalogue's patterns and the parsers' triggers; some 300 made-up ones beside a short
    list where there is no catalogue."""
    try:
        known = [signature.pattern for signature in signatures.load()]
        known += [trigger for one in parsers.line_formats() for trigger in one.TRIGGERS]
    except (FlatlineError, ImportError, SyntaxError) as fault:
        print(f"catalogue not usable ({fault}), built-in patterns instead", file=sys.stderr)
        known = []
    known = list(dict.fromkeys([*known, *BUILT_IN]))
    made_up = (
        rf"(component|plugin)_{n:03d}[\w./-]*:? (failed|error|timed out) .{{0,40}}code[= ]?(\d+)"
        for n in itertools.count()
    )
    return known + list(itertools.islice(made_up, max(0, 300 - len(known))))


def lines(scanner: Scanner, folder: Path, templates: tuple[str, ...], hit: bool) -> list[str]:
    """The templates that patterns match, or those that none matches."""
    kept = []
    for template in templates:
        path = folder / "probe"
        path.write_text(fill(template, random.Random(1)) + "\n")
        with open_text(path, "probe") as file:
            if any(True for _ in scanner.scan(file)) == hit:
                kept.append(template)
    return kept


def fill(template: str, dice: random.Random) -> str:
    return template.format(
        m=dice.randrange(60), s=dice.randrange(60), u=dice.randrange(1000), r=dice.randrange(512),
        n=dice.randrange(99_999), h=dice.randrange(64), g=dice.randrange(8), f=dice.random() * 90,
    )  # fmt: skip


def write(path: Path, share: float, megabytes: int, quiet: list[str], loud: list[str]) -> None:
    """A log of about so many MB in which `share` of the lines is loud."""
    dice = random.Random(7)
    chunk = "".join(
        fill(dice.choice(loud if dice.random() < share else quiet), dice) + "\n"
        for _ in range(100_000)
    ).encode()
    with path.open("wb") as file:
        for _ in range(max(1, megabytes * 1_000_000 // len(chunk))):
            file.write(chunk)


def best(repeat: int, run: Callable[[], int]) -> tuple[float, float, int]:
    """(wall seconds, processor seconds, result) of the fastest of several runs."""
    found = []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        result = run()
        found.append((time.perf_counter() - wall, time.process_time() - cpu, result))
    return min(found)


def scan(scanner: Scanner, path: Path) -> int:
    with open_text(path, path.name) as file:
        return sum(1 for _ in scanner.scan(file))


def at_once(run: Callable[[], int]) -> int:
    """Two processes do the same."""
    fork = multiprocessing.get_context("fork")
    both = [fork.Process(target=run) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    return sum(one.exitcode or 0 for one in both)


def ripgrep(path: Path, listed: Path) -> int:
    limits = ["--regex-size-limit", "1G", "--dfa-size-limit", "1G"]
    command = ["rg", "--no-unicode", "-c", *limits, "-f", str(listed), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode > 1:
        raise SystemExit(f"rg: {done.stderr[-400:]}")
    return int(done.stdout.strip() or 0)


def for_ripgrep(folder: Path, chosen: list[str]) -> Path | None:
    """The same patterns, whole and in the syntax both understand: that a few plain texts tell
    most of them is the scanner's own finding."""
    if shutil.which("rg") is None:
        return None
    path = folder / "patterns"
    widened = [(one.caseless, one.pattern) for one in (prefilter(p, whole=True) for p in chosen)]
    path.write_text("".join(f"(?i:{p})\n" if caseless else f"{p}\n" for caseless, p in widened))
    return path


def small_log(folder: Path, quiet: list[str], loud: list[str], chosen: list[str]) -> float:
    """Seconds from nothing to labelled, cleaned hits of 1 MB, the database in the cache."""
    path = folder / "small.log"
    write(path, 0.02, 1, quiet, loud)
    path.write_bytes(path.read_bytes()[:1_000_000])
    start = time.perf_counter()
    scanner = Scanner(chosen, folder / "cache")
    with open_text(path, "small.log") as file:
        labels = Labels.learn(clean(line) for line in file.sample())
        for hit in scanner.scan(file):
            labels.split(clean(hit.text))
    return time.perf_counter() - start


def rows(
    scanner: Scanner, folder: Path, args: argparse.Namespace, chosen: list[str]
) -> Iterator[str]:
    quiet = lines(scanner, folder, QUIET, hit=False)
    loud = lines(scanner, folder, LOUD, hit=True)
    listed = for_ripgrep(folder, chosen)
    names = ("size", 7), ("hits", 9), ("GB/s", 6), ("GB/s cpu", 8), ("rg GB/s", 8), ("ratio", 5)
    names = *names, ("2 cores", 8), ("rg", 5), ("ratio", 5)
    yield "hit lines " + " ".join(f"{name:>{width}}" for name, width in names)
    for share in (0.01, 0.10, 0.50):
        path = folder / "log"
        write(path, share, args.megabytes, quiet, loud)
        size = path.stat().st_size / 1e9
        wall, cpu, hits = best(args.repeat, lambda path=path: scan(scanner, path))
        two, _, _ = best(args.repeat, lambda path=path: at_once(lambda: scan(scanner, path)))
        row = f"{share:>9.0%} {size:>5.2f}GB {hits:>9} {size / wall:>6.2f} {size / cpu:>8.2f}"
        if listed is None:
            row += f" {'':>8} {'':>5} {2 * size / two:>8.2f}"
        else:
            alone = partial(ripgrep, path, listed)
            taken, _, counted = best(args.repeat, alone)
            both, _, _ = best(args.repeat, lambda run=alone: at_once(run))
            row += f" {size / taken:>8.2f} {taken / wall:>5.2f}"
            row += f" {2 * size / two:>8.2f} {2 * size / both:>5.2f} {both / two:>5.2f}"
            row += "" if counted == hits else f"   rg counts {counted} lines"
        yield row
    taken = 1e3 * small_log(folder, quiet, loud, chosen)
    yield f"1 MB from the cached database to labelled hits: {taken:.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--megabytes", type=int, default=512)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--patterns", type=int, help="so many of the catalogue's, at random")
    args = parser.parse_args()
    chosen = patterns()
    if args.patterns is not None:
        chosen = random.Random(5).sample(chosen, min(args.patterns, len(chosen)))
        chosen = list(dict.fromkeys([*BUILT_IN, *chosen]))[: args.patterns]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.perf_counter()
        Scanner(chosen, folder / "cache")
        compiled = time.perf_counter() - start
        start = time.perf_counter()
        scanner = Scanner(chosen, folder / "cache")
        loaded = time.perf_counter() - start
        print(f"{len(chosen)} patterns: compiled {compiled:.2f} s, loaded {1e3 * loaded:.1f} ms")
        for row in rows(scanner, folder, args, chosen):
            print(row, flush=True)


if __name__ == "__main__":
    main()
