"""What a target holds: a folder walked once, each file told by its content."""

from __future__ import annotations

import os
import pickle
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from flatline.collect.forked import forked, most_workers
from flatline.collect.islands import printed_by_a_job
from flatline.collect.text_kinds import OTHER, text_kind
from flatline.collect.unnamed import rows_of_steps
from flatline.errors import UsageError
from flatline.facts import DUMPS, EVENTS, KERNEL, LOG, METRICS, SCHEDULER
from flatline.logs.event_files import is_event_file
from flatline.logs.places import of_a_kernel
from flatline.logs.reading import is_text, read_head
from flatline.model import Gap
from flatline.parsers import (
    RecordFormat,
    detectron2_json,
    headed,
    kubernetes_objects,
    openmmlab_json,
    record_format_of,
    record_formats,
    trainer_state,
)
from flatline.parsers.flight_recorder import recognise_dump
from flatline.redact import mask
from flatline.sources import capsule, metrics, tsdb
from flatline.tracks import BASELINE

OnProgress = Callable[[str, int, int], None]
"""(stage, bytes done, bytes in all; 0 where that is not known)"""
MAX_FILES = 200_000
MANY_FILES = 256
"""Fewer are told before other processes are there: a file takes 0.25 ms, two of them 20 to 30."""
HEAD_BYTES = 65_536
EMPTY, BINARY = "empty", "binary"
_STORES = (LOG, KERNEL, SCHEDULER, METRICS, DUMPS, EVENTS)
_SLURM_NAME = re.compile(r"(?i)sacct|scontrol|squeue|sinfo|slurm")

_CODE = re.compile(
    r"\.(py|sh|sbatch|slurm|bash|c|cc|cpp|cu|h|hpp|rs|go|js|ts|java|md|rst|ya?ml|toml|ini|cfg|conf|"
    r"ipynb|html?|css|xml|svg|lock|patch|diff|pyc|so|a|o|bin|pt|pth|safetensors|npy|npz|arrow|"
    r"parquet|h5|ckpt|png|jpe?g|gif|pdf|jsonl|whl|egg)$",
    re.IGNORECASE,
)  # programs, settings and data; their text is not what a run printed
_STEP_CELL = (
    rb"\{[^\n]{0,4000}?\"(?:\w*/)?(?:global_|train_|_)?(?:step|iter|iteration|epoch)\": ?[0-9]"
)
_ROW = re.compile(rb"\s*" + _STEP_CELL)
"""The first row of what a program wrote of its steps, where other such files are data."""
_LATER_ROW = re.compile(
    rb"^(?=" + _STEP_CELL.replace(b"|epoch)", b"|epoch|it|update)") + rb")"
    rb"\{[^\n]{0,4000}?\"(?:\w{1,16}[/_])?loss\": ?(?:-?[0-9]|NaN)",
    re.MULTILINE,
)
"""One below what a program wrote of its start; with a loss, shorter names are a step's as well."""
_LOGGED_ROW = re.compile(
    rb"\s*\{(?=[^\n]{0,4000}?\"(?:ts|time|@?timestamp|asctime|datetime|date)\": ?[\"0-9{])"
    rb"[^\n]{0,4000}?\"(?:(?:log[._]?)?level|level_?name|severity|lvl)\": ?"
    rb"(?:\{[^{}\n]{0,80}\"name\": ?)?"
    rb"\"(?:trace|debug|info|notice|warn|warning|error|fatal|critical)\"",
    re.IGNORECASE,
)
"""What a logger wrote: dated, with one of the levels that loggers have."""
_STATS_ROW = re.compile(
    rb"(?=[^\n]{0,8000}\"Loss/)\{\"[A-Z]\w{1,20}/[\w/]{1,60}\": \{\"num\": [0-9]"
)
"""What StyleGAN and EDM keep of each tick (`stats.jsonl`)."""
_RECORDS = re.compile(
    rb"\s*\[\s*\{(?=[^{}]{0,4000}\"iteration\": [0-9])[^{}]{0,4000}\"(?:validation/)?main/\w+\": "
)
"""The log that Chainer's trainer keeps as JSON."""
_PROSE = re.compile(
    r"\.(md|rst)$|^(?:read[ _.-]?me|notes?|to[ _.-]?do|change[ _.-]?log|faq|how[ _.-]?to|install"
    r"|contributing|known[ _.-]?(?:issue|problem)s|trouble[ _.-]?shooting|run[ _.-]?book)"
    r"(?:\.(?:txt|text|adoc|org))?$",
    re.IGNORECASE,
)
"""Pages for a reader: what they quote, no run printed."""
_GENERATED = re.compile(
    r"(?:^|/)(?:generat(?:ions?|ed)|predictions?|completions?|samples?|decoded|hypothes[ie]s"
    r"|translations?|corpus|corpora)(?:[-_.][\w.-]{0,80})?(?:/[^/]{1,200})?\.(?:txt|text)$"
    r"|(?:^|/)(?:data|datasets?)/(?![^/]*log)[^/]{1,200}\.(?:txt|text)$",
    re.IGNORECASE,
)
"""What a model was trained on or wrote itself: text of any kind."""
_CHANGES = re.compile(rb"\s*(?:diff --git |commit [0-9a-f]{40}\n)")
_CARDS = re.compile(r"(?=[^\n]*\bindex\b)(?:[a-z_.]+, ){0,16}(?:pci|gpu)[._]bus_id\b")
"""The header of nvidia-smi's list of GPUs by their addresses."""
_SETTING = re.compile(rb"[A-Za-z_][\w%()]{0,120}=|\s|$")
_EVENTS = re.compile(r"(^|[./])events\.out\.tfevents\.")


@dataclass(frozen=True, slots=True)
class Found:
    """A file of a target: `source` is its path as citations spell it, secrets masked and
    spelled so that any surface can carry it; no two files share one."""

    path: Path
    source: str
    kind: str
    size: int


def walk(
    targets: tuple[str, ...],
    gaps: list[Gap],
    origin: str = "",
    on_progress: OnProgress | None = None,
) -> list[Found]:
    """
    Every regular file of the targets, told by content, each once however often it is named.

    Links that leave their target or lead in a circle are not followed; what cannot be read, and
    a target that holds nothing a run leaves behind, is a gap.  `origin` stands before every
    source.  Raises `UsageError` for a target that is not there or may not be looked at.
    """
    found: list[Found] = []
    seen: set[Path] = set()
    taken: dict[str, int] = {}
    prefixes = _prefixes(targets)
    for target in targets:
        root = Path(target)
        single = _stat(root, target)
        if capsule.recognise(root):
            held = _sealed(capsule.opened(root), prefixes[target], taken, seen, gaps)
            found += [replace(file, source=origin + file.source) for file in held]
            continue
        before = len(found)
        pairs = [(root, root.name)] if single else list(islice(_below(root, gaps), MAX_FILES + 1))
        more = before + len(pairs) > MAX_FILES
        new = [pair for pair in pairs[: MAX_FILES - before] if _is_new(pair[0], seen)]
        for (path, relative), (kind, size) in zip(new, _told(new, gaps, on_progress), strict=True):
            source = origin + _spelled(prefixes[target] + relative, taken)
            found.append(Found(path, source, kind, size))
        if more:
            gaps.append(Gap("every file", f"only the first {MAX_FILES} were looked at", target))
            return found
        found[before:] = _alone(found[before:])
        if not any(file.kind in _STORES for file in found[before:]) and target not in gone(gaps):
            gaps.append(_nothing(found[before:], target))
    return found


def _is_new(path: Path, seen: set[Path]) -> bool:
    real = path.resolve()
    if real in seen:
        return False
    seen.add(real)
    return True


_Pair = tuple[Path, str]


def _told(
    pairs: Sequence[_Pair], gaps: list[Gap], on_progress: OnProgress | None
) -> Iterator[tuple[str, int]]:
    """The kind and size of each file; of many files by as many processes as there are cores."""
    read = 0
    for done, (kind, size, lacking) in enumerate(_classified(pairs), 1):
        gaps += lacking
        read += min(size, HEAD_BYTES)
        if on_progress is not None and len(pairs) >= MANY_FILES:
            on_progress(f"looking at files: {done:,} of {len(pairs):,}", read, 0)
        yield kind, size


def _classified(pairs: Sequence[_Pair]) -> Iterator[tuple[str, int, list[Gap]]]:
    done = 0
    if len(pairs) >= MANY_FILES and (workers := most_workers()) > 1:
        record_formats()  # imported once, for all of them
        try:
            for one in forked(pairs, lambda pair: pickle.dumps(_one(pair)), workers):
                yield one
                done += 1
        except (EOFError, OSError):
            pass  # a worker was killed, or there is no room for one: go on alone
    yield from map(_one, pairs[done:])


def _one(pair: _Pair) -> tuple[str, int, list[Gap]]:
    lacking: list[Gap] = []
    return *classify(*pair, lacking), lacking


def _alone(found: list[Found]) -> list[Found]:
    """A page that is all there is, is the log: logs are kept as Markdown too."""
    match found:
        case [Found(kind="other") as file] if _may_be_a_log(file):
            return [replace(file, kind=text_kind(read_head(file.path, HEAD_BYTES)))]
    return found


def _may_be_a_log(file: Found) -> bool:
    return bool(_PROSE.search(file.path.name) or _GENERATED.search(file.source))


def _sealed(
    held: capsule.Capsule, prefix: str, taken: dict[str, int], seen: set[Path], gaps: list[Gap]
) -> list[Found]:
    """What a capsule holds, by the names and kinds it had, and what could not be had of it."""
    new = [item for item in held.held if item.path not in seen]
    seen.update(item.path for item in new)
    gaps += [gap for gap in held.gaps if gap not in gaps]
    return [
        Found(item.path, _spelled(prefix + item.source, taken), item.kind, item.size)
        for item in new
    ]


def _spelled(path: str, taken: dict[str, int]) -> str:
    """A path as citations spell it, with a number where masking made two the same."""
    source = mask(path.encode("utf-8", "backslashreplace").decode())
    if source.startswith(BASELINE):  # what a run calls its own file makes it no baseline's
        source = f"./{source}"
    taken[source] = taken.get(source, 0) + 1
    return source if taken[source] == 1 else f"{source}~{taken[source]}"


def gone(gaps: list[Gap]) -> set[str | None]:
    """Where something was already said of a target as a whole."""
    return {gap.where for gap in gaps}


def _nothing(found: list[Found], target: str) -> Gap:
    empty = sum(file.kind == EMPTY for file in found)
    if not found:
        return Gap("every file", "no file was found there that could be read", target)
    if empty == len(found):
        return Gap("every file", "what lies there is empty", target)
    return Gap(
        "every file",
        f"none of {len(found)} files is a log, record, metric or dump of a known format",
        target,
    )


def _prefixes(targets: tuple[str, ...]) -> dict[str, str]:
    """What stands before the path of a file where there are several targets: the target's own
    name, with a number where two share it."""
    named = list(dict.fromkeys(targets))
    if len(named) == 1:
        return {named[0]: ""}
    taken: dict[str, int] = {}
    made = {}
    for target in named:
        name = Path(target).name or Path(target).resolve().name or target
        taken[name] = taken.get(name, 0) + 1
        made[target] = f"{name}/" if taken[name] == 1 else f"{name}~{taken[name]}/"
    return made


def _stat(root: Path, target: str) -> bool:
    """Whether a target is a single file. Raises `UsageError`."""
    try:
        mode = root.stat().st_mode
    except FileNotFoundError as fault:
        raise UsageError(
            f"{target!r} does not exist; name a folder or a file the run left behind"
            " (or a Slurm job id, on a machine that has Slurm)"
        ) from fault
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or str(fault)
        raise UsageError(f"{target[:200]!r} cannot be looked at: {reason}") from fault
    if stat.S_ISREG(mode):
        return True
    if not stat.S_ISDIR(mode):
        raise UsageError(f"{target!r} is neither a folder nor a regular file")
    return False


def _below(root: Path, gaps: list[Gap]) -> Iterator[tuple[Path, str]]:
    def refused(fault: OSError) -> None:
        where = os.path.relpath(fault.filename or root, root)
        gaps.append(Gap("every folder", fault.strerror or str(fault), where))

    inside = root.resolve()
    for folder, folders, names in os.walk(root, onerror=refused):
        if tsdb.recognise(Path(folder), folders):
            folders.clear()
            yield Path(folder), os.path.relpath(folder, root) if folder != str(root) else root.name
            continue
        folders.sort()
        for name in [name for name in (*folders, *names) if capsule.UNFINISHED.fullmatch(name)]:
            (folders if name in folders else names).remove(name)
            gaps.append(Gap("every file", "a capsule that was not finished: not read, remove it",
                            Path(folder, name).relative_to(root).as_posix()))  # fmt: skip
        linked = [name for name in folders if _is_link(Path(folder, name))]
        for name in sorted([*names, *linked]):
            path = Path(folder, name)
            relative = path.relative_to(root).as_posix()
            reason = _refusal(path, inside)
            if reason is None:
                yield path, relative
            elif reason:
                gaps.append(Gap("every file", reason, relative))


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except OSError:
        return False


def _refusal(path: Path, inside: Path) -> str | None:
    """Why a file is not looked at: None where it is, "" where it is met elsewhere."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            real = path.resolve(strict=True)
            return "" if real.is_relative_to(inside) else "a link out of the target, not followed"
    except PermissionError:
        return "Permission denied"
    except (OSError, RuntimeError):
        return "a link that leads nowhere" if _is_link(path) else "it cannot be looked at"
    return None if stat.S_ISREG(mode) else "neither a file nor a folder (a pipe, socket or device)"


def classify(path: Path, relative: str, gaps: list[Gap]) -> tuple[str, int]:
    """(kind, size in bytes). A file that cannot be read is "other", with a gap; a folder is one
    that a source reads as a whole."""
    try:
        info = path.stat()
        if stat.S_ISDIR(info.st_mode):
            return METRICS, 0
        size = info.st_size
        head = read_head(path, HEAD_BYTES)
    except OSError as fault:
        gaps.append(Gap("every file", fault.strerror or str(fault), relative))
        return OTHER, 0
    if not head:
        return EMPTY, size
    if is_event_file(head):
        return EVENTS, size
    if _EVENTS.search(relative):
        gaps.append(Gap(EVENTS, "it does not begin as an event file", relative))
        return OTHER, size
    kind = _kind(relative, head)
    if kind == OTHER and head.lstrip()[:1] == b"{" and _SLURM_NAME.search(path.name):
        gaps.append(Gap(SCHEDULER, "JSON that is no record of a known format", relative))
    return kind, size


_CALLED_A_LOG = re.compile(r"\.(?:log|out|err)$")
"""A job may print its own script first, and a person may paste it above what it printed."""
_JOBS_OUTPUT = re.compile(r"^slurm[-_.]\d{3,12}(?:_\d{1,7})?\.(?:out|err)$")
"""As Slurm names what a job printed, where nobody else does."""


def _kind(relative: str, head: bytes) -> str:
    name = relative.rpartition("/")[2]
    if recognise_dump(name, head):
        return DUMPS
    form = record_format_of(name, head)
    if form is not None:
        return LOG if _JOBS_OUTPUT.search(name) or printed_by_a_job(form, head) else SCHEDULER
    if metrics.recognise(name, head):
        return METRICS
    if not is_text(head):
        return BINARY
    if name.endswith(".jsonl") and (
        any((_ROW.match(head), _LOGGED_ROW.match(head), _LATER_ROW.search(head)))
        or _STATS_ROW.match(head)
        or rows_of_steps(head)
    ):
        return LOG
    if name.endswith((".csv", ".tsv")):
        first = head.partition(b"\n")[0].decode("utf-8", "replace")
        told = headed.heading(first) or rows_of_steps(head) or _CARDS.match(first)
        return LOG if told else OTHER
    if _no_output(relative, head):
        return OTHER
    if head.lstrip()[:1] in (b"{", b"[") and name.endswith(".json"):
        rows = _ROW.match(head) or _LATER_ROW.search(head)
        kept = name == trainer_state.FILE or (rows and keeps_rows(relative))
        return LOG if kept or _RECORDS.match(head) else OTHER
    return text_kind(head, named=of_a_kernel(relative))


def _no_output(relative: str, head: bytes) -> bool:
    """Whether it is a program, a page, a data set or a setting: no text that a run printed."""
    name = relative.rpartition("/")[2]
    named = _CODE.search(name) or _PROSE.search(name) or _GENERATED.search(relative)
    script = head.startswith(b"#!") and not _CALLED_A_LOG.search(name)
    return bool(named or script or _CHANGES.match(head) or _environment(head))


def _environment(head: bytes) -> bool:
    """Whether it is what `env` prints: nothing but settings, the search path among them."""
    if _SETTING.match(head) is None or b"PATH=" not in head:
        return False
    return all(map(_SETTING.match, head.split(b"\n")[:-1]))


def keeps_rows(relative: str) -> bool:
    """Whether a file's name is that under which a trainer keeps what it logged, a row a line."""
    return any(one.FILE.search(relative) for one in (detectron2_json, openmmlab_json))


def told_in_lines(file: Found) -> bool:
    """Whether a file is read line by line: a log, or what shows how pods ended."""
    if file.kind != SCHEDULER:
        return file.kind in (LOG, KERNEL, EVENTS)
    return any(
        _recognised(file, one) for one in record_formats() if getattr(one, "IN_LINES", False)
    )


def holds_output(file: Found) -> bool:
    """Whether it is a record in which stands what the job printed as well, as LSF has it."""
    if file.kind != SCHEDULER:
        return False
    try:
        head = read_head(file.path, HEAD_BYTES)
    except OSError:
        return False
    told = getattr(record_format_of(file.path.name, head), "holds_output", None)
    return told is not None and bool(told(head))


def holds_objects(file: Found) -> bool:
    """Whether it is one of Kubernetes' objects."""
    return file.kind == SCHEDULER and _recognised(file, kubernetes_objects)


def _recognised(file: Found, one: RecordFormat) -> bool:
    try:
        return one.recognise(file.path.name, read_head(file.path, HEAD_BYTES))
    except OSError:
        return False
