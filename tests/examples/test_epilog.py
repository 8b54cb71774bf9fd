"""The epilog: it always ends with 0, at once, and starts only what it may."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from examples.stand_ins import SCRIPTS, program, ran

JOB = {"SLURM_JOB_ID": "7", "SLURM_JOB_UID": "1234", "SLURM_JOB_GID": "1234",
       "SLURM_JOB_NODELIST": "n[1-2]", "SLURMD_NODENAME": "n1"}  # fmt: skip


def epilog(folder: Path, state: str = "FAILED", **env: str) -> str:
    """
    What the detached part ran as Flatline, one word a line; "" where it ran nothing.

    A copy whose settings, PATH and drop of privileges lead to stand-ins.
    """
    text = (SCRIPTS / "epilog-flatline.sh").read_text()
    for old, new in (
        ("FLATLINE=/opt/flatline/bin/flatline", f"FLATLINE={folder}/bin/flatline"),
        ("/etc/flatline/epilog.conf", "/dev/null"),
        ("LOCKS=/run ", f"LOCKS={folder} "),
        ("SETTLE_S=5 ", "SETTLE_S=0 "),
        ("PATH=/usr/bin:/bin:$SLURM_BIN", f"PATH={folder}/bin:/usr/bin:/bin"),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "work dir").mkdir()
    program(
        folder,
        "scontrol",
        f"""case "$2" in hostnames) printf 'n1\\nn2\\n' ;;
*) echo "JobId=7 JobState={state} Reason=x" ;; esac""",
    )
    program(folder, "getent", f"echo 'ann:x:1234:1234::{folder}:/bin/sh'")
    program(
        folder,
        "setpriv",
        f'echo "$*" > {folder}/priv; while [ "$1" != env ]; do shift; done; "$@"',
    )
    program(folder, "flatline", f'printf "%s\\n" "$PWD" "$@" "${{SECRET:-clean}}" > {folder}/ran')
    program(folder, "epilog", text.partition("\n")[2])
    env = {**JOB, "SLURM_JOB_WORK_DIR": str(folder / "work dir"), "SECRET": "s", **env}
    began = time.monotonic()
    done = ran(folder, [str(folder / "bin" / "epilog")], **env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert time.monotonic() - began < 5
    for _ in range(40):
        if (folder / "ran").exists() and (folder / "ran").read_text().endswith("\n"):
            return (folder / "ran").read_text()
        time.sleep(0.05)
    return ""


def test_a_failed_job_is_diagnosed_as_its_user_in_its_folder(tmp_path: Path) -> None:
    """With an empty environment, no capability, no new privilege."""
    said = epilog(tmp_path)
    assert said.splitlines() == [
        str(tmp_path / "work dir"), "diagnose", "7", "--output", "flatline-7.txt", "clean",
    ]  # fmt: skip
    dropped = (tmp_path / "priv").read_text()
    for option in ("--reuid 1234", "--regid 1234", "--init-groups", "--no-new-privs"):
        assert option in dropped


@pytest.mark.parametrize(
    "env",
    [
        {"SLURM_JOB_UID": "0"},
        {"SLURM_JOB_UID": "33"},
        {"SLURM_JOB_UID": ""},
        {"SLURM_JOB_UID": "1234 0"},
        {"SLURM_JOB_ID": "7; reboot"},
        {"SLURMD_NODENAME": "n2"},
        {"SLURM_JOB_WORK_DIR": ""},
    ],
)
def test_it_starts_nothing_where_it_should_not(env: dict[str, str], tmp_path: Path) -> None:
    """Root, services, no user, no plain id, another node, no folder; and ends with 0."""
    assert epilog(tmp_path, **env) == ""


def test_a_completed_job_is_not_diagnosed(tmp_path: Path) -> None:
    """By the controller's word."""
    assert epilog(tmp_path, state="COMPLETED") == ""


def test_a_folder_named_to_be_run_is_only_a_folder(tmp_path: Path) -> None:
    """What a user sets is an argument, never a command."""
    evil = tmp_path / "$(touch pwned)`touch pwned`;touch pwned"
    evil.mkdir()
    assert str(evil) in epilog(tmp_path, SLURM_JOB_WORK_DIR=str(evil))
    assert not list(tmp_path.rglob("pwned"))
