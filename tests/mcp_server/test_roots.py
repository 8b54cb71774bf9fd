"""Nothing outside the roots is opened, by whatever name it is asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flatline.errors import UsageError
from flatline.mcp.roots import Roots
from mcp_server.asking import DEMOS, called, said

LOG = (DEMOS / "nan-loss/run/job.log").read_bytes()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """`inside` may be read, `outside` may not; links lead from one to the other."""
    for name in ("inside", "outside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "job.log").write_bytes(LOG)
    (tmp_path / "inside-not").mkdir()
    (tmp_path / "inside-not" / "job.log").write_bytes(LOG)
    (tmp_path / "inside" / "file").symlink_to(tmp_path / "outside" / "job.log")
    (tmp_path / "inside" / "folder").symlink_to(tmp_path / "outside")
    (tmp_path / "inside" / "round").symlink_to(tmp_path / "inside")
    return tmp_path


@pytest.mark.parametrize(
    "target",
    [
        "../outside",
        "../outside/job.log",
        "{}/outside",
        "{}/inside/../outside",
        "{}/inside-not",
        "folder",
        "folder/job.log",
        "file",
        "job.log/../../outside",
        "/etc/passwd",
        "~",
        "a\0b",
        "",
        "/proc/self/environ",
    ],
)
def test_a_path_outside_is_refused(place: Path, target: str) -> None:
    """Links are followed before it is looked at, whole names are compared."""
    asked = target.format(place)
    (answer,) = called(place / "inside", ("diagnose", {"target": asked}))
    assert answer.is_error
    assert "NaN" not in said(answer)


@pytest.mark.parametrize("target", ["job.log", ".", "{}/inside/job.log", "round/job.log"])
def test_a_path_inside_is_read(place: Path, target: str) -> None:
    """Relative ones are below a root; a link within it is no escape."""
    (answer,) = called(place / "inside", ("diagnose", {"target": target.format(place)}))
    assert (answer.structured_content or {})["code"] == "E1"


@pytest.mark.parametrize("key", ["also", "baseline"])
def test_no_other_argument_leads_outside(place: Path, key: str) -> None:
    """Whatever names a path goes through the same door."""
    value: object = ["../outside"] if key == "also" else "../outside"
    (answer,) = called(place / "inside", ("diagnose", {"target": ".", key: value}))
    assert answer.is_error
    assert "outside the folders" in said(answer)


def test_records_do_not_lead_outside(place: Path) -> None:
    """Accounting that names a log elsewhere does not open it; nor does `jobs` from outside."""
    record = (
        "JobID|JobName|State|ExitCode|Start|End|NodeList|StdOut|WorkDir\n"
        "7|t|FAILED|1:0|2026-03-01T00:00:00|2026-03-01T01:00:00|n1|{0}/outside/job.log|{0}/outside\n"
    )
    (place / "inside" / "sacct.psv").write_text(record.format(place))
    inside, outside = called(
        place / "inside",
        ("jobs", {"source": "sacct.psv"}),
        ("jobs", {"source": "../outside"}),
    )
    assert (inside.structured_content or {})["jobs"][0]["state"] == "undetermined"
    assert outside.is_error


def test_a_jobs_log_outside_is_not_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Slurm says of where a job wrote is no leave to open it."""
    commands = place / "bin"
    commands.mkdir()
    record = (
        "JobId=99 JobName=t UserId=u(1) JobState=FAILED ExitCode=1:0 "
        f"StdOut={place}/outside/job.log WorkDir={place}/outside NodeList=n1\n"
    )
    for name, prints in (("scontrol", record), ("sacct", ""), ("squeue", ""), ("sinfo", "")):
        script = commands / name
        script.write_text(f"#!/bin/sh\ncat <<'END'\n{prints}END\n")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(place / "inside")
    (answer,) = called(place / "inside", ("diagnose", {"target": "99"}))
    assert answer.is_error
    assert "outside the folders this server may read" in said(answer)


def test_a_root_that_is_not_there_is_the_callers_fault(tmp_path: Path) -> None:
    """Said before anything is served."""
    with pytest.raises(UsageError, match="--root"):
        Roots([str(tmp_path / "none")])
