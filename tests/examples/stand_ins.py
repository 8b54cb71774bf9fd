"""Programs that stand in for Slurm's and for Flatline, on a PATH of a test's own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "examples" / "slurm"


def program(folder: Path, name: str, body: str) -> Path:
    """A bash script of that name in `folder/bin`."""
    file = folder / "bin" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/bash\n{body}\n")
    file.chmod(0o755)
    return file


def ran(
    folder: Path, argv: Sequence[str], timeout_s: float = 60, **env: str
) -> subprocess.CompletedProcess[str]:
    path = f"{folder / 'bin'}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}/usr/bin:/bin"
    return subprocess.run(
        list(argv),
        cwd=folder,
        env={"PATH": path, "HOME": str(folder), **env},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=timeout_s,
        stdin=subprocess.DEVNULL,
    )
