"""Which files this server may open: those in the folders it was given, links followed first."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from flatline.collect.live import JOB_ID, Resolved, resolve
from flatline.errors import UsageError
from flatline.wording.untrusted import sentence

LISTED = 12
"""Names listed where one is not found."""


class Roots:
    """Folders (or files) that may be read. A path outside them is refused unseen."""

    def __init__(self, folders: Sequence[str]) -> None:
        """Raises `UsageError` for one that is not there."""
        self.folders = tuple(dict.fromkeys(map(_existing, folders)))

    def paths(self, targets: Sequence[str]) -> tuple[str, ...]:
        """Targets as files and folders that may be read. Raises `UsageError`."""
        return tuple(str(self._inside(target)) for target in targets)

    def target(self, target: str, job: str | None = None) -> Resolved:
        """
        A path within the roots, or a Slurm job whose logs all lie within them.

        Raises `UsageError` with what to name instead.
        """
        if JOB_ID.fullmatch(target) and self._find(target) is None:
            found = resolve((target,), job)
            outside = [path for path in found.paths if not self.holds(Path(path))]
            if outside:
                raise UsageError(
                    f"job {target} wrote its log to {sentence(str(Path(outside[0]).parent))},"
                    f" outside the folders this server may read ({self}); start it with that"
                    " folder as another --root"
                )
            return found
        return Resolved([str(self._inside(target))])

    def holds(self, path: Path) -> bool:
        """Whether a path, links followed, lies within a root."""
        try:
            real = path.resolve()
        except (OSError, RuntimeError, ValueError):
            return False
        return any(real.is_relative_to(root) for root in self.folders)

    def __str__(self) -> str:
        return ", ".join(map(str, self.folders))

    def _inside(self, target: str) -> Path:
        if not target.strip() or "\0" in target:
            raise UsageError("no target was named; give a folder, a file or a Slurm job id")
        found = self._find(target)
        if found is not None:
            return found
        named = Path(target).expanduser() if target.startswith("~") else Path(target)
        outside = named.is_absolute() and not self.holds(named)
        if outside or not any(self.holds(root / named) for root in self.folders):
            raise UsageError(
                f"{sentence(target)[:200]!r} is outside the folders this server may read: {self}"
            )
        raise UsageError(f"{sentence(target)[:200]!r} does not exist; {self._near(target)}")

    def _find(self, target: str) -> Path | None:
        """The first root that holds it, links followed; None where none does."""
        for root in self.folders:
            path = root / target
            try:
                if self.holds(path) and path.exists():
                    return path.resolve()
            except (OSError, ValueError):
                continue
        return None

    def _near(self, target: str) -> str:
        """What lies there, the likeliest first."""
        names = sorted(set(self._names()))
        wanted = Path(target).name
        close = difflib.get_close_matches(wanted, names, LISTED, 0.5)
        held = [name for name in names if wanted and wanted in name and name not in close]
        listed = [*held, *close][:LISTED] or names[:LISTED]
        if not listed:
            return f"{self} is empty"
        more = f" and {len(names) - len(listed)} more" if len(names) > len(listed) else ""
        return f"there are {sentence(', '.join(listed))}{more}"

    def _names(self) -> Iterator[str]:
        for root in self.folders:
            try:
                with os.scandir(root) as entries:
                    for _, entry in zip(range(10_000), entries, strict=False):
                        yield entry.name
            except OSError:
                continue


def _existing(folder: str) -> Path:
    try:
        return Path(folder).expanduser().resolve(strict=True)
    except (OSError, RuntimeError) as fault:
        reason = getattr(fault, "strerror", None) or str(fault)
        raise UsageError(f"--root {folder}: {reason}") from fault
