"""A container that one host could not unpack, whose kernel tells of its disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

SACCT = (
    "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
    "91|sft|FAILED|1:0|2026-05-06T09:00:00|2026-05-06T09:01:10|3|w[1-3]\n"
)
LOG = (
    "pyxis: importing docker image: registry.example.org/ml/torch:26.01\n"
    "slurmstepd: error: pyxis: child 4411 failed with error code: 1\n"
    "slurmstepd: error: pyxis: failed to create container filesystem\n"
    "slurmstepd: error: pyxis: printing enroot log file:\n"
    "slurmstepd: error: pyxis:     mkdir: cannot create directory '/scratch/e/usr': {}\n"
    "slurmstepd: error: pyxis: couldn't start container\n"
    "srun: error: w3: task 2: Exited with exit code 1\n"
    "srun: error: w1: task 0: Terminated\n"
    "srun: error: w2: task 1: Terminated\n"
)
READ_ONLY, DENIED = "Read-only file system", "Permission denied"
KERNEL = "[Wed May  6 08:20:00 2026] EXT4-fs (md0): Remounting filesystem read-only\n"


@pytest.mark.parametrize(
    ("why", "kernels", "hosts"),
    [
        (READ_ONLY, ["w3"], ["w3"]),
        (READ_ONLY, [], []),
        (READ_ONLY, ["w1"], []),
        (READ_ONLY, ["w2", "w3"], []),
        (DENIED, ["w3"], []),
    ],
    ids=["its own", "no kernel's word", "another's", "several hosts'", "nothing of a disk"],
)
def test_a_file_system_that_is_read_only(
    tmp_path: Path, why: str, kernels: list[str], hosts: list[str]
) -> None:
    """An image may be read-only on every host; the one whose kernel says so has it of its own."""
    (tmp_path / "sacct.txt").write_text(SACCT)
    (tmp_path / "slurm-91.out").write_text(LOG.format(why))
    for host in kernels:
        (tmp_path / f"dmesg_{host}").write_text(KERNEL)
    told = diagnose(collect(Request((str(tmp_path),))))
    launch = next(one.finding for one in told.findings if one.finding.code == "F4")

    assert [place.host for place in launch.culprits] == hosts
