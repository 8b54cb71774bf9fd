"""Source code in folders the user allows: links are followed first, nothing outside is told."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from flatline.agent.pages import Row
from flatline.collect.searching import Pattern
from flatline.errors import UsageError
from flatline.mcp.roots import Roots

SUFFIXES = frozenset(
    f".{end}"
    for end in (
        *("py", "pyi", "cc", "cpp", "c", "h", "hpp", "cu", "cuh", "rs", "go", "sh", "sbatch"),
        *("yml", "yaml", "toml", "cfg", "ini", "gin"),
    )
)
MOST_FILES, MOST_BYTES, MOST_HITS, MOST_LINES = 20_000, 2 << 20, 200, 120
SEARCH_S = 5.0
NONE = "no folder of source code is allowed; name one with --allow-source"


def search_source(
    roots: Roots | None, pattern: str, folder: str | None
) -> tuple[list[Row], str | None]:
    """Lines that match. Raises `UsageError` for a path outside, and for a pattern not taken."""
    if roots is None:
        return [], NONE
    matcher = Pattern(pattern)
    starts = [Path(path) for path in roots.paths((folder,))] if folder else list(roots.folders)
    deadline = time.monotonic() + SEARCH_S
    found: list[Row] = []
    for count, path in enumerate(_files(roots, starts)):
        if count >= MOST_FILES or time.monotonic() > deadline:
            return found, f"stopped after {count:,} files: name a folder"
        data = _read(path)
        for end in matcher.ends(data, MOST_HITS - len(found)) if data else ():
            line = data.count(b"\n", 0, max(end - 1, 0)) + 1
            begin = data.rfind(b"\n", 0, max(end - 1, 0)) + 1
            stop = data.find(b"\n", begin)
            text = data[begin:] if stop < 0 else data[begin:stop]
            found.append(Row(f"{_named(roots, path)}:{line} | {text.decode('utf-8', 'replace')}"))
        if len(found) >= MOST_HITS:
            return found, f"the first {MOST_HITS} lines; narrow the pattern or the folder"
    return found, None if found else "no line matches"


def read_source(
    roots: Roots | None, path: str, line: int, count: int
) -> tuple[list[Row], str | None]:
    """Lines of one file. Raises `UsageError` for a path outside the folders."""
    if roots is None:
        return [], NONE
    file = Path(roots.paths((path,))[0])
    if not file.is_file():
        raise UsageError(f"{path[:120]} is no file")
    lines = _read(file).decode("utf-8", "replace").splitlines()
    first, most = max(line, 1), min(max(count, 1), MOST_LINES)
    rows = [Row(f"{n} | {text}") for n, text in enumerate(lines[first - 1 :][:most], first)]
    left = len(lines) - (first - 1 + len(rows))
    return rows, f"{left} lines follow" if left > 0 else None


def _files(roots: Roots, starts: list[Path]) -> Iterator[Path]:
    """Source files below the folders, sorted; what a link leads outside is passed over."""
    for start in starts:
        if start.is_file():
            yield start
            continue
        for top, folders, names in os.walk(start):
            folders[:] = sorted(
                name for name in folders if name[0] != "." and name != "__pycache__"
            )
            for name in sorted(names):
                path = Path(top, name)
                if path.suffix in SUFFIXES and roots.holds(path) and path.is_file():
                    yield path


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES)
    except OSError:
        return b""


def _named(roots: Roots, path: Path) -> str:
    """Relative to its root: the same name opens it again."""
    real = path.resolve()
    for root in roots.folders:
        if real.is_relative_to(root):
            return str(real.relative_to(root)) if root.is_dir() else str(real)
    return path.name
