"""What a target holds: a folder walked once, each file told by its content."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from flatline.errors import UsageError
from flatline.facts import DUMPS, KERNEL, LOG, METRICS, SCHEDULER
from flatline.logs.reading import is_text, read_head
from flatline.model import Gap
from flatline.parsers import record_formats
from flatline.parsers.flight_recorder import recognise_dump
from flatline.sources import metrics

MAX_FILES = 200_000
HEAD_BYTES = 65_536
OTHER, EMPTY, BINARY = "other", "empty", "binary"

_CODE = re.compile(
    r"\.(py|sh|sbatch|slurm|bash|c|cc|cpp|cu|h|hpp|rs|go|js|ts|java|md|rst|ya?ml|toml|ini|cfg|conf|"
    r"ipynb|html?|css|xml|svg|lock|patch|diff|pyc|so|a|o|bin|pt|pth|safetensors|npy|npz|arrow|"
    r"parquet|h5|ckpt|png|jpe?g|gif|pdf|csv|tsv|jsonl|whl|egg)$",
    re.IGNORECASE,
)  # programs, settings and data; their text is not what a run printed
_EVENTS = re.compile(r"(^|[./])events\.out\.tfevents\.")
_KERNEL = re.compile(
    rb"^(?:<\d+>|\w{3} +\d+ [\d:]{8} \S+ kernel: |\S+ \S+ kernel: |kern\s*:\w+\s*: )?"
    rb"\[ *\d+\.\d{6}\]|^\w{3} +\d+ [\d:]{8} \S+ kernel: |^\S+T\S+ \S+ kernel: ",
    re.MULTILINE,
)
_DAEMON = re.compile(
    rb"^\[\d{4}-\d\d-\d\dT[\d:.]+\] (?:error: |debug\d?: {1,2}|info: )?"
    rb"(?:slurmctld version|slurmd version|CPUs=\d|sched: |_slurm_rpc|Node configuration|"
    rb"slurmdbd version|Processing RPC|launch task|task/|topology|cons_|Considering|"
    rb"Accounting storage|select/|gres|AuthInfo|Registering|job_step|Recovered)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Found:
    """A file of a target: `source` is its path as citations spell it."""

    path: Path
    source: str
    kind: str
    size: int


def walk(targets: tuple[str, ...], gaps: list[Gap]) -> list[Found]:
    """Every regular file of the targets, told by content. Links that leave their target or lead
    in a circle are not followed; what cannot be read is a gap."""
    found: list[Found] = []
    for target in targets:
        root = Path(target)
        if not root.exists():
            raise UsageError(
                f"{target!r} does not exist; name a folder or a file the run left behind"
                " (or a Slurm job id, on a machine that has Slurm)"
            )
        prefix = "" if len(targets) == 1 else f"{root.name or target}/"
        pairs = [(root, root.name)] if root.is_file() else _below(root, gaps)
        for path, relative in pairs:
            if len(found) >= MAX_FILES:
                gaps.append(
                    Gap("every file", f"only the first {MAX_FILES} were looked at", target)
                )
                return found
            kind, size = classify(path, relative, gaps)
            found.append(Found(path, prefix + relative, kind, size))
    return found


def _below(root: Path, gaps: list[Gap]) -> Iterator[tuple[Path, str]]:
    def refused(fault: OSError) -> None:
        where = os.path.relpath(fault.filename or root, root)
        gaps.append(Gap("every folder", fault.strerror or str(fault), where))

    inside = root.resolve()
    for folder, folders, names in os.walk(root, onerror=refused):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            relative = path.relative_to(root).as_posix()
            if path.is_symlink():
                try:
                    real = path.resolve(strict=True)
                except (OSError, RuntimeError):
                    gaps.append(Gap("every file", "a link that leads nowhere", relative))
                    continue
                if real.is_relative_to(inside):
                    continue  # the file it points at is met on its own
                if not real.is_file():
                    continue
                gaps.append(Gap("every file", "a link out of the target, not followed", relative))
                continue
            if path.is_file():
                yield path, relative


def classify(path: Path, relative: str, gaps: list[Gap]) -> tuple[str, int]:
    """(kind, size in bytes). A file that cannot be read is "other", with a gap."""
    try:
        size = path.stat().st_size
        head = read_head(path, HEAD_BYTES)
    except OSError as fault:
        gaps.append(Gap("every file", fault.strerror or str(fault), relative))
        return OTHER, 0
    if not head:
        return EMPTY, size
    return _kind(relative, head), size


def _kind(relative: str, head: bytes) -> str:
    name = relative.rpartition("/")[2]
    if _EVENTS.search(relative):
        return METRICS
    if recognise_dump(name, head):
        return DUMPS
    for record_format in record_formats():
        if record_format.recognise(name, head):
            return SCHEDULER
    if metrics.recognise(name, head):
        return METRICS
    if not is_text(head):
        return BINARY
    if _CODE.search(name) or head.startswith(b"#!"):
        return OTHER
    if head.lstrip()[:1] in (b"{", b"[") and name.endswith(".json"):
        return OTHER
    if len(_DAEMON.findall(head)) >= 3:  # a daemon's own log speaks of every job on the node
        return OTHER
    lines = max(1, head.count(b"\n"))
    return KERNEL if len(_KERNEL.findall(head)) > lines / 2 else LOG


def of_job(found: list[Found], job: str, others: set[str]) -> list[Found]:
    """
    The files of one job where a folder holds several.

    Logs named after the job are its own; where none is, those not named after another job.
    Records and metrics are kept: their rows are told apart later.
    """

    def names(file: Found, job_id: str) -> bool:
        return re.search(rf"(?<!\d){re.escape(job_id)}(?!\d)", file.source) is not None

    logs = [file for file in found if file.kind in (LOG, KERNEL)]
    own = [file for file in logs if names(file, job)]
    if not own:
        own = [file for file in logs if not any(names(file, other) for other in others)]
    keep = {id(file) for file in own}
    return [file for file in found if file.kind not in (LOG, KERNEL) or id(file) in keep]
