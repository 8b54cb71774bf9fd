"""
A capsule: what a run left behind in one folder or one file, as `flatline capsule` seals it.

    manifest.json                what it holds, from what, with the hash of every file, and what
                                 could not be had when it was sealed
    files/<n>/<name>             logs, records and dumps, secrets masked, line for line
    metrics/<n>-<from>/          a columnar store (`series.columnar`) for each source of metrics

One file is the same as a plain tar (POSIX ustar, not compressed), the manifest first.  Capsules
come from others: a tar is read by this module's own reader of regular members with names of the
pattern above; links, devices, extensions and other names end the reading.  Nothing grows when it
is unpacked.  What does not match its hash is left out, and is a gap.

Taking a store's samples imports NumPy and arro3; `recognise` reads 1 KiB.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from flatline.errors import FormatError
from flatline.facts import DUMPS, EVENTS, KERNEL, LOG, METRICS, SCHEDULER
from flatline.model import Gap
from flatline.redact import mask

if TYPE_CHECKING:
    from flatline.series.columnar import ColumnarStore
    from flatline.series.engine import Engine

MAGIC, VERSION = "flatline-capsule", 1
MANIFEST = "manifest.json"
KINDS = frozenset((LOG, KERNEL, SCHEDULER, DUMPS, EVENTS))
UNDATED = "-text"
"""Ends the name of a store of what stood in files: it is all of the run, whenever that was."""
MANIFEST_BYTES = 64 << 20
MEMBERS = 1 << 20
BLOCK = 512
PIECE_BYTES = 1 << 20
TEXT_CHARS = 4096
_FILE = re.compile(r"files/\d{1,7}/[^/\0]{1,200}")
_STORE = re.compile(r"metrics/\d{1,4}-(?:text|database|server)")
_PART = re.compile(r"[a-z]{1,16}(?:-\d{5,9})?\.parquet")
UNFINISHED = re.compile(r"\..+\.\d{1,10}\.(?:part|tar)")
"""What a capsule is made in, beside its place, after the process that makes it."""
_MARK = f'{{"{MAGIC}":'.encode()


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for when it was sealed: a diagnosis asks the same unless it is told."""

    job: str | None = None
    named: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """A file, or a folder with a store; `source` is its name as citations spell it."""

    path: Path
    source: str
    kind: str
    size: int


@dataclass(frozen=True)
class Capsule:
    """What could be read of one. `damaged` has, by folder, the files of stores that could not."""

    held: tuple[Held, ...] = ()
    asked: Asked = Asked()
    gaps: tuple[Gap, ...] = ()
    damaged: Mapping[Path, frozenset[str]] = field(default_factory=dict)


def recognise(path: Path) -> bool:
    """Whether a file or folder begins as a capsule. Never raises."""
    try:
        if path.is_dir():
            with _plain(path / MANIFEST) as file:
                return file.read(len(_MARK)) == _MARK
        if not path.is_file():
            return False
        with _plain(path) as file:
            head = file.read(BLOCK + len(_MARK))
    except (OSError, ValueError):
        return False
    member = _member(head[:BLOCK])
    return member is not None and member[0] == MANIFEST and head[BLOCK:] == _MARK


def opened(path: Path, tell: Tell | None = None) -> Capsule:
    """
    The capsule there, read and checked once; where it is one file, unpacked into a temporary
    folder that goes with this process.  `tell` hears of bytes done, and in all.
    """
    files = sorted(path.rglob("*")) if path.is_dir() else []
    key = tuple(map(_stamp, (path.resolve(), *files)))
    if key not in _OPENED:
        size = sum(size for _, _, size, _ in key)
        _OPENED[key] = _opened(path, _Done(size if files else 2 * size, tell))
    return _OPENED[key]


Tell = Callable[[int, int], None]
_Stamp = tuple[str, int, int, int]
_OPENED: dict[tuple[_Stamp, ...], Capsule] = {}


def _stamp(path: Path) -> _Stamp:
    """What changes when a file does."""
    try:
        status = path.lstat()
    except OSError:
        return str(path), 0, 0, 0
    return str(path), status.st_ino, status.st_size, status.st_mtime_ns


class _Done:
    """How far the reading of a capsule is."""

    def __init__(self, total: int, tell: Tell | None) -> None:
        self._done, self._total, self._tell = 0, total, tell

    def __call__(self, size: int) -> None:
        self._done += size
        if self._tell is not None:
            self._tell(min(self._done, self._total), self._total)


def _opened(path: Path, done: _Done) -> Capsule:
    gaps: list[Gap] = []
    root = path if path.is_dir() else _unpacked(path, gaps, done)
    if root is None:
        return Capsule(gaps=tuple(gaps))
    try:
        with _plain(root / MANIFEST) as file:
            text = file.read(MANIFEST_BYTES + 1)
        return _read(root, text, gaps, done)
    except (OSError, FormatError) as fault:
        reason = getattr(fault, "strerror", None) or str(fault)
        gaps.append(Gap("every file", f"the capsule's manifest cannot be read: {reason}"))
        return Capsule(gaps=tuple(gaps))


# --- what the manifest says ---------------------------------------------------------------------


def _read(root: Path, text: bytes, gaps: list[Gap], done: _Done) -> Capsule:
    import orjson

    if len(text) > MANIFEST_BYTES:
        raise FormatError("it is too long")
    try:
        said: Any = orjson.loads(text)
        if said[MAGIC] != VERSION:
            raise FormatError(f"it is of version {said[MAGIC]!r}, this Flatline reads {VERSION}")
        asked = _asked(said["asked"])
        sealed = [_gap(item) for item in said["gaps"]]
        files = [_entry(item) for item in said["files"]]
        stores = [_store(item) for item in said["metrics"]]
    except (orjson.JSONDecodeError, LookupError, TypeError, ValueError, AttributeError) as fault:
        raise FormatError(f"it is no manifest ({type(fault).__name__})") from fault
    held: list[Held] = []
    for name, source, kind, want in files:
        reason = _wrong(root, name, want, done)
        if reason is None:
            held.append(Held(root / name, source, kind, want[0]))
        else:
            gaps.append(Gap(kind, f"the capsule is damaged: {reason}", source))
    damaged: dict[Path, frozenset[str]] = {}
    for name, source, parts in stores:
        bad = {part: reason for part, want in parts.items()
               if (reason := _wrong(root, f"{name}/{part}", want, done)) is not None}  # fmt: skip
        damaged[root / name] = frozenset(bad)
        held.append(Held(root / name, source, METRICS, 0))
        if bad:
            first = f"{min(bad)} {bad[min(bad)]}"
            reason = f"the capsule is damaged: {len(bad)} of its files, the first: {first}"
            gaps.append(Gap("every sample of the metrics", reason, source))
    return Capsule(tuple(held), asked, (*sealed, *gaps), damaged)


Want = tuple[int, str]
"""Size and SHA-256 of a file."""


def _entry(item: Mapping[str, Any]) -> tuple[str, str, str, Want]:
    name, kind = _text(item["path"]), _text(item["kind"])
    if not _FILE.fullmatch(name) or Path(name).name in (".", "..") or kind not in KINDS:
        raise ValueError(name)
    return name, mask(_text(item["source"])), kind, _want(item)


def _store(item: Mapping[str, Any]) -> tuple[str, str, dict[str, Want]]:
    name = _text(item["path"])
    if not _STORE.fullmatch(name) or not all(map(_PART.fullmatch, item["files"])):
        raise ValueError(name)
    parts = {part: _want(want) for part, want in item["files"].items()}
    return name, mask(_text(item["source"])), parts


def _want(item: Mapping[str, Any]) -> Want:
    return int(item["bytes"]), _text(item["sha256"])


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > TEXT_CHARS:
        raise TypeError("no text")
    value.encode()  # a lone surrogate is none that any surface can carry
    return value


def _asked(item: Mapping[str, Any]) -> Asked:
    def when(key: str) -> datetime | None:
        return None if item[key] is None else datetime.fromisoformat(_text(item[key]))

    start, end = when("start"), when("end")
    if any(at is not None and at.tzinfo is None for at in (start, end)):
        raise ValueError("a time without a zone")
    job, named = (
        None if item[key] is None else mask(_text(item[key])) for key in ("job", "named")
    )
    return Asked(job, named, start, end, tuple(mask(_text(host)) for host in item["hosts"]))


def _gap(item: Mapping[str, Any]) -> Gap:
    where = item.get("where")
    return Gap(mask(_text(item["need"])), mask(_text(item["reason"])),
               None if where is None else mask(_text(where)))  # fmt: skip


def _wrong(root: Path, name: str, want: Want, done: _Done) -> str | None:
    """Why a file is not what the manifest says it is."""
    from hashlib import sha256  # only where a capsule is opened

    seen = sha256()
    size = 0
    try:
        for folder in (root / name).relative_to(root).parents:
            if stat.S_ISLNK((root / folder).lstat().st_mode) and folder != Path():
                return "lies behind a link"
        with _plain(root / name) as file:
            while piece := file.read(PIECE_BYTES):
                seen.update(piece)
                done(len(piece))
                size += len(piece)
                if size > want[0]:
                    break
    except FileNotFoundError:
        return "is missing"
    except OSError as fault:
        return f"cannot be read: {fault.strerror or fault}"
    return None if (size, seen.hexdigest()) == want else "does not match its hash"


def _plain(path: Path) -> BinaryIO:
    """A regular file, no link in its place. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError("it is no regular file")
    return os.fdopen(fd, "rb")


# --- one file -----------------------------------------------------------------------------------


def _unpacked(path: Path, gaps: list[Gap], done: _Done) -> Path | None:
    """The members in a folder of their own; where the file ends or is no such tar, as far as
    that; None where there is no room for them."""
    into = "a temporary folder"
    try:
        into = tempfile.gettempdir()
        root = Path(tempfile.mkdtemp(prefix="flatline-capsule-"))
        weakref.finalize(_OPENED_ROOTS, shutil.rmtree, str(root), ignore_errors=True)
        with path.open("rb") as file:
            for name, size in _members(file):
                _copy(file, root / name, size)
                done(size)
    except FormatError as fault:
        gaps.append(Gap("every file", f"the capsule is damaged: {fault}", path.name))
    except OSError as fault:
        reason = fault.strerror or str(fault)
        said = f"it could not be unpacked into {into}: {reason}; unpack it with"
        gaps.append(Gap("every file", f"{said} `tar -xf` and name the folder", path.name))
        return None
    return root


class _Roots:
    """Lives as long as the process."""


_OPENED_ROOTS = _Roots()


def _members(file: BinaryIO) -> Iterator[tuple[str, int]]:
    """Name and size of each member; the file then stands at its content. Raises FormatError for
    anything a capsule does not hold."""
    seen: set[str] = set()
    at = 0
    while True:
        file.seek(at)
        head = file.read(BLOCK)
        if head == bytes(BLOCK):
            return
        member = _member(head)
        if member is None:
            raise FormatError("it is cut off" if len(head) < BLOCK else "a member has no header")
        name, size = member
        folder, _, part = name.rpartition("/")
        known = name == MANIFEST or _FILE.fullmatch(name)
        known = known or (_STORE.fullmatch(folder) and _PART.fullmatch(part))
        if not known or part in (".", "..") or name in seen or len(seen) >= MEMBERS:
            raise FormatError(f"{mask(name)[:100]!r} has no place in a capsule")
        seen.add(name)
        yield name, size
        at += BLOCK + -(-size // BLOCK) * BLOCK


def _member(head: bytes) -> tuple[str, int] | None:
    """Name and size of a regular member by its header (POSIX.1-1988, ustar)."""
    if len(head) < BLOCK or head[257:263] != b"ustar\0" or head[156:157] != b"0":
        return None
    try:
        size, check = int(head[124:135] or b"x", 8), int(head[148:154], 8)
        name = head[:100].rstrip(b"\0").decode()
        prefix = head[345:500].rstrip(b"\0").decode()
    except ValueError:
        return None
    if check != sum(head[:148]) + 8 * 32 + sum(head[156:]) or size < 0:
        return None
    return (f"{prefix}/{name}" if prefix else name), size


def _copy(file: BinaryIO, into: Path, size: int) -> None:
    into.parent.mkdir(parents=True, exist_ok=True)
    with into.open("xb") as out:
        while size:
            piece = file.read(min(size, PIECE_BYTES))
            if not piece:
                raise FormatError("it is cut off")
            out.write(piece)
            size -= len(piece)


# --- its metrics --------------------------------------------------------------------------------


def is_store(folder: Path) -> bool:
    """Whether a folder is a capsule's store of metrics."""
    return any(folder in capsule.damaged for capsule in _OPENED.values())


def store(folder: Path, source: str) -> ColumnarStore:
    """Raises FormatError where it cannot be read."""
    from flatline.series.columnar import ColumnarStore

    bad = [capsule.damaged[folder] for capsule in _OPENED.values() if folder in capsule.damaged]
    return ColumnarStore(folder, source, bad[0] if bad else frozenset())


def engine(folder: Path, source: str) -> Engine:
    """The store behind the embedded evaluator. Raises FormatError."""
    from flatline.series.engine import Embedded

    return Embedded(store(folder, source), source)
