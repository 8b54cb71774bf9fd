"""
The compiled form of the patterns, kept between runs.

Compiling some 300 patterns takes most of a second, loading what was compiled takes milliseconds.
The cache lies in `$XDG_CACHE_HOME/flatline` or `~/.cache/flatline`, never in a target, and is only
an optimisation: where it cannot be written, or what lies there is damaged, made by another
version or processor, or not ours alone to write, the patterns are compiled again, silently.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
import stat
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from flatline.errors import CatalogueError
from flatline.logs import prefilter as rules
from flatline.logs.hits import ID_BITS
from flatline.logs.prefilter import Prefilter, prefilter

if TYPE_CHECKING:
    import hyperscan

MAGIC = b"flatline scan 2\n"
RULES = ("nodes.py", "prefilter.py", "texts.py")
"""Where what patterns are widened to is decided."""
KEPT_FILES = 8
LARGEST_FILE_BYTES = 256 << 20
EVERY_OFFSET = r"\xfe\xff"
"""Two bytes that no UTF-8 holds.  Among hundreds of texts one of two bytes makes the engine look
at every offset; without one it looks at every second or fourth, and finds so many more places to
look at closely that it takes a fifth longer."""


class Engine(Protocol):
    """Finds where patterns match in a block of whole lines.  `groups` are the numbers of those
    that match as one, as `grouped` gives them."""

    groups: Sequence[Sequence[int]]

    def ends(self, data: bytes) -> list[int]:
        """`end << ID_BITS | group` of every match, sorted. Safe to call from many threads."""


class HyperscanEngine:
    """One database for all patterns, one scratch space for each thread."""

    def __init__(self, database: hyperscan.Database, groups: Sequence[Sequence[int]]) -> None:
        self.groups = groups
        self._database = database
        self._local = threading.local()

    def ends(self, data: bytes) -> list[int]:
        import hyperscan

        scratch = getattr(self._local, "scratch", None)
        if scratch is None:
            scratch = self._local.scratch = hyperscan.Scratch(self._database)
        found: list[int] = []
        self._database.scan(data, _note, context=found.append, scratch=scratch)
        found.sort()
        return found


def _note(number: int, start: int, end: int, flags: int, add: Any) -> None:
    """Called for each match: whatever is done here is done a million times."""
    add(end << ID_BITS | number)


def engine(patterns: Sequence[str], cache: Path | None) -> Engine:
    """
    All patterns in one database, from the cache where it holds them.

    Raises `ImportError` where there is no Hyperscan, `CatalogueError` where it refuses a pattern
    or the processor.
    """
    import hyperscan

    folder = cache if cache is not None else default_cache()
    name = f"scan-{_key(patterns)}.hsdb"
    kept_form = kept(folder, name) if folder is not None else None
    if kept_form is not None:
        groups, _, form = kept_form.partition(b"\n")
        try:
            return HyperscanEngine(
                hyperscan.loadb(form, hyperscan.HS_MODE_BLOCK), json.loads(groups)
            )
        except (hyperscan.error, ValueError, TypeError, MemoryError):
            pass  # made by or for something else after all
    same = grouped(patterns)
    database, listed = compiled(list(same)), list(same.values())
    if folder is not None:
        keep(folder, name, json.dumps(listed).encode() + b"\n" + hyperscan.dumpb(database))
    return HyperscanEngine(database, listed)


def grouped(patterns: Sequence[str]) -> dict[Prefilter, list[int]]:
    """The numbers of the patterns that are the same once widened, ascending."""
    same: dict[Prefilter, list[int]] = {}
    for number, pattern in enumerate(patterns):
        same.setdefault(prefilter(pattern), []).append(number)
    return same


def compiled(filters: Sequence[Prefilter]) -> hyperscan.Database:
    """A block-mode database. Raises `CatalogueError` naming the patterns that do not compile."""
    import hyperscan

    try:
        return _compile(filters)
    except hyperscan.error as fault:
        refused = [reason for one in filters if (reason := refusal(one)) is not None]
        listed = "; ".join(refused[:5]) or f"{fault}"
        raise CatalogueError(f"the patterns do not compile on this machine: {listed}") from fault


def refusal(one: Prefilter) -> str | None:
    """Why Hyperscan does not take a pattern; None where it does."""
    import hyperscan

    try:
        _compile([one])
    except hyperscan.error as fault:
        return f"{one.pattern!r}: {fault}"
    return None


def _compile(filters: Sequence[Prefilter]) -> hyperscan.Database:
    import hyperscan

    expressions = [one.pattern.encode("ascii") for one in filters]
    expressions[0] += f"|{EVERY_OFFSET}".encode("ascii")  # proposes it, as all is only proposed
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=expressions,
        ids=list(range(len(filters))),
        elements=len(filters),
        flags=[
            hyperscan.HS_FLAG_MULTILINE | (hyperscan.HS_FLAG_CASELESS if one.caseless else 0)
            for one in filters
        ],
    )
    return database


# --- the cache -----------------------------------------------------------------------------------


def default_cache() -> Path | None:
    """The folder for caches of this user; None where the user has none."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if base.is_absolute():
        return base / "flatline"
    try:
        return Path.home() / ".cache" / "flatline"
    except RuntimeError:
        return None


def _key(patterns: Sequence[str]) -> str:
    """Changes with the patterns, the rules that widen them, the library and the processor."""
    import hyperscan

    digest = hashlib.sha256(MAGIC)
    for part in (
        str(getattr(hyperscan, "__version__", None)),
        platform.machine(),
        _processor(),
        _rules(),
        EVERY_OFFSET,
        *patterns,
    ):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:32]


def _rules() -> str:
    try:
        folder = Path(rules.__file__).parent
        return "".join((folder / name).read_text("utf-8") for name in RULES)
    except (OSError, TypeError):  # installed without its source
        return "unknown"


def _processor() -> str:
    """What this processor can do, as the kernel lists it."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
            head = file.read(16_384)
    except OSError:
        return platform.processor()
    return "\n".join(
        line for line in head.splitlines()[:40] if line.startswith(("flags", "Features"))
    )


def _ours(info: os.stat_result) -> bool:
    return info.st_uid == os.geteuid() and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def kept(folder: Path, name: str) -> bytes | None:
    """What is stored under that name, where it is whole and nobody else could have written it."""
    try:
        if not _ours(folder.stat()):
            return None
        fd = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        info = os.fstat(fd)
        if not (stat.S_ISREG(info.st_mode) and _ours(info)):
            return None
        with os.fdopen(os.dup(fd), "rb") as file:
            data = file.read(LARGEST_FILE_BYTES)
    except OSError:
        return None
    finally:
        os.close(fd)
    head, payload = data[: len(MAGIC) + 32], data[len(MAGIC) + 32 :]
    return payload if head == MAGIC + hashlib.sha256(payload).digest() else None


def keep(folder: Path, name: str, payload: bytes) -> None:
    """Stores it whole or not at all, and drops the oldest of more than a few of its kind, which
    is its name without what stands between the first `-` and the last dot."""
    draft = folder / f".{name}.{secrets.token_hex(8)}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _ours(folder.stat()):
            return
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(MAGIC + hashlib.sha256(payload).digest() + payload)
        draft.replace(folder / name)
        kind = f"{name.partition('-')[0]}-*.{name.rpartition('.')[2]}"
        stored = sorted(folder.glob(kind), key=lambda path: path.stat().st_mtime)
        for old in stored[:-KEPT_FILES]:
            old.unlink(missing_ok=True)
    except (OSError, ValueError):
        try:
            draft.unlink(missing_ok=True)
        except (OSError, ValueError):
            return
