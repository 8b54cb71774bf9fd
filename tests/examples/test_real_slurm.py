"""The scripts and the listing against a real Slurm, where one answers and takes jobs."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from cli.calls import SRC, flatline_process
from examples.stand_ins import SCRIPTS


def said(argv: Sequence[str], cwd: Path | None = None) -> str:
    done = subprocess.run(
        list(argv), capture_output=True, text=True, check=False, timeout=120, cwd=cwd
    )
    return done.stdout if done.returncode == 0 else ""


def answers() -> bool:
    """Whether there is a controller with an idle node and an accounting database."""
    if not all(map(shutil.which, ("sbatch", "sinfo", "sacct", "scontrol"))):
        return False
    return bool(said(["sinfo", "-h", "-t", "idle", "-o", "%n"])) and bool(
        said(["sacctmgr", "-n", "show", "cluster"])
    )


pytestmark = pytest.mark.skipif(
    os.environ.get("FLATLINE_TEST_SLURM") != "1" or not answers(),
    reason="needs FLATLINE_TEST_SLURM=1 and a Slurm that takes jobs",
)


def run_job(folder: Path, body: str) -> tuple[str, str]:
    """(job id, its State and ExitCode) of a batch job, after its end."""
    wrapper = folder / "flatline"
    python = shutil.which("python3")
    packages = os.pathsep.join(
        [str(SRC), *filter(None, os.environ.get("PYTHONPATH", "").split(":"))]
    )
    wrapper.write_text(f'#!/bin/sh\nPYTHONPATH={packages} exec {python} -m flatline "$@"\n')
    wrapper.chmod(0o755)
    script = folder / "job.sh"
    script.write_text(f"#!/bin/bash\nexport FLATLINE={wrapper}\n{body}\n")
    submit = ["sbatch", "--wait", "-n1", "--mem=200", str(script)]
    subprocess.run(submit, cwd=folder, capture_output=True, check=False, timeout=120)
    (log,) = folder.glob("slurm-*.out")
    number = log.stem.partition("-")[2]
    time.sleep(3)
    return number, said(["sacct", "-nXP", "-j", number, "-o", "State,ExitCode"]).strip()


def test_the_trap_leaves_a_verdict_and_the_status(tmp_path: Path) -> None:
    """A KeyError after training steps, under set -e."""
    steps = 'for s in range(1, 30): print(f"step {s}/100 loss {3/s:.3f}", flush=True)'
    body = (
        f"source {SCRIPTS}/diagnose-on-exit.sh\nset -e\npython3 - <<'P'\n{steps}\n{{}}['text']\nP"
    )
    number, ended = run_job(tmp_path, body)
    assert ended == "FAILED|1:0"
    assert "KeyError" in (tmp_path / f"flatline-{number}.txt").read_text()


def test_the_listing_finds_the_job_and_its_log(tmp_path: Path) -> None:
    """Asked live."""
    number, _ = run_job(tmp_path, "python3 -c 'import no_such_module'")
    done = flatline_process("jobs", "--since", "10min", "--json")
    assert done.returncode == 1
    assert f'"id": "{number}"' in done.stdout
    assert "no_such_module" in done.stdout
