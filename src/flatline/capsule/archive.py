"""A folder as one plain file: a tar (POSIX ustar), not compressed, the manifest first."""

from __future__ import annotations

import tarfile
from pathlib import Path

from flatline.sources.capsule import MANIFEST


def pack(folder: Path, into: Path) -> None:
    """Members in order of their names, without owners or times: the same folder gives the same
    bytes. Raises OSError; ValueError for a member beyond 8 GiB, which ustar cannot say."""
    names = sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    names.sort(key=lambda name: name != MANIFEST)
    with tarfile.open(into, "x:", format=tarfile.USTAR_FORMAT) as tar:
        for name in names:
            path = folder / name
            member = tarfile.TarInfo(name)
            member.size = path.stat().st_size
            with path.open("rb") as file:
                tar.addfile(member, file)
