"""The sbatch trap: a verdict beside the log, and never another exit status."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from examples.stand_ins import SCRIPTS, program, ran

WRITES = 'while [ "$1" != --output ]; do shift; done; echo verdict > "$2"; exit 1'


def job(folder: Path, body: str, flatline: str = WRITES, log: str = "a line\n", **env: str):
    """The end of a batch script whose log is `out.log`."""
    (folder / "out.log").write_text(log)
    program(folder, "scontrol", f"echo '   StdOut={folder}/out.log'")
    program(folder, "flatline", flatline)
    script = f"source {SCRIPTS}/diagnose-on-exit.sh\n{body}\n"
    return ran(folder, ["bash", "-c", script], **{"SLURM_JOB_ID": "7", **env})


@pytest.mark.parametrize(
    "body", ["exit 3", "set -e\n(exit 3)", "set -eu\nset -o pipefail\n(exit 3) | cat"]
)
def test_a_failing_job_gets_its_verdict_and_keeps_its_status(body: str, tmp_path: Path) -> None:
    """Under set -e, -u and pipefail as well."""
    assert job(tmp_path, body).returncode == 3
    assert (tmp_path / "flatline-7.txt").read_text() == "verdict\n"
    assert (tmp_path / "flatline-7.json").exists()


def test_a_job_that_ends_well_is_left_alone(tmp_path: Path) -> None:
    """No verdict, nothing printed, status 0."""
    done = job(tmp_path, "echo fine")
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")
    assert not (tmp_path / "flatline-7.txt").exists()


@pytest.mark.parametrize(
    "flatline", ["exit 4", "kill -9 $$", "exec sleep 60", "trap '' TERM; sleep 60; sleep 60"]
)
def test_whatever_flatline_does_the_status_is_the_jobs(flatline: str, tmp_path: Path) -> None:
    """It breaks, is killed, hangs, or hangs and ignores SIGTERM: bounded in time."""
    began = time.monotonic()
    done = job(tmp_path, "exit 3", flatline, FLATLINE_LIMIT_S="1")
    assert done.returncode == 3
    assert time.monotonic() - began < 15


@pytest.mark.parametrize("env", [{"FLATLINE": "/no/flatline"}, {"SLURM_JOB_ID": ""}])
def test_without_flatline_or_slurm_nothing_happens(env: dict[str, str], tmp_path: Path) -> None:
    """The same script runs on a laptop."""
    done = job(tmp_path, "exit 3", **env)
    assert (done.returncode, done.stderr) == (3, "")


def test_a_trap_that_stood_before_still_runs_and_sees_the_status(tmp_path: Path) -> None:
    """With quotes in it."""
    earlier = """trap 'echo "it'"'"'s $?"' EXIT\n"""
    program(tmp_path, "flatline", WRITES)
    program(tmp_path, "scontrol", f"echo '   StdOut={tmp_path}/out.log'")
    (tmp_path / "out.log").write_text("x\n")
    script = f"{earlier}source {SCRIPTS}/diagnose-on-exit.sh\nset -e\n(exit 5)\n"
    done = ran(tmp_path, ["bash", "-c", script], SLURM_JOB_ID="7")
    assert (done.returncode, done.stdout) == (5, "it's 5\n")
    assert (tmp_path / "flatline-7.txt").exists()


def test_a_job_that_slurm_ends_gets_its_verdict_and_dies_by_the_signal(tmp_path: Path) -> None:
    """SIGTERM leaves 0 in the trap; slurmstepd's line in the log tells."""
    cancelled = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-20T21:17:28 ***\n"
    done = job(tmp_path, "kill -TERM $$; sleep 5", log=cancelled)
    assert done.returncode == -15
    assert (tmp_path / "flatline-7.txt").exists()


def test_a_task_of_an_array_is_called_by_its_index(tmp_path: Path) -> None:
    """As sacct spells it."""
    job(tmp_path, "exit 3", SLURM_ARRAY_JOB_ID="6", SLURM_ARRAY_TASK_ID="2")
    assert (tmp_path / "flatline-6_2.txt").exists()


def test_the_scripts_pass_shellcheck() -> None:
    """Where it is installed."""
    scripts = sorted(map(str, SCRIPTS.glob("*.sh")))
    try:
        done = subprocess.run(
            ["shellcheck", *scripts], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("shellcheck is not installed")
    assert done.stdout == ""
