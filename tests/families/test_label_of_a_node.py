"""What the daemon of a step says under a label that counts nodes, of eight tasks each."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

SACCT = (
    "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
    "44|asr|FAILED|1:0|2026-03-04T08:00:00|2026-03-04T08:01:20|6|h[1-6]\n"
)
PYXIS = (
    "{label}: slurmstepd: error: pyxis: child 81233 failed with error code: 1\n"
    "{label}: slurmstepd: error: pyxis: failed to create container filesystem\n"
    "{label}: slurmstepd: error: pyxis:     Write on output file failed because No space left on"
    " device\n{label}: slurmstepd: error: pyxis: couldn't start container\n"
)
ENDS = (
    "srun: error: {host}: tasks {tasks}: Exited with exit code 1\n"
    "srun: Terminating StepId=44.0\n"
    "srun: error: h1: tasks 0-7: Terminated\n"
)


@pytest.mark.parametrize(
    ("label", "host", "tasks", "named"),
    [(3, "h4", "24-31", "h4"), (27, "h4", "24-31", "h4"), (2, "h4", "24-31", None)],
    ids=["it counts nodes", "it is a task's", "neither"],
)
def test_the_host_whose_tasks_left(
    tmp_path: Path, label: int, host: str, tasks: str, named: str | None
) -> None:
    """By srun's own word, and the job's list of nodes."""
    (tmp_path / "slurm-44.out").write_text(
        "0: pyxis: imported docker image: r/nemo:24.07\n"
        + PYXIS.format(label=label) + ENDS.format(host=host, tasks=tasks)
    )  # fmt: skip
    (tmp_path / "sacct.psv").write_text(SACCT)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    hosts = {place.host for place in verdict.culprits}
    assert verdict.code == "F4"
    assert hosts == ({named} if named else set()) or (named is None and hosts == {host})


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("Error: mounting storage for container 90ab3f21c7de: creating overlay mount to"
         " /tmp/7_hpc/storage/overlay/90ab/merged: no space left on device", "F4"),
        ("Error: configure storage: kernel does not support overlay fs: 'overlay' is not"
         " supported over nfs", "F4"),
        ("ERRO[0000] Unmounting /tmp/7_hpc/storage/overlay/90ab/merged: invalid argument", None),
    ],
    ids=["full", "no overlay there", "as it tidied up"],
)  # fmt: skip
def test_storage_of_podman_on_one_host(tmp_path: Path, said: str, code: str | None) -> None:
    """A container whose storage could not be mounted is of the one host whose tasks left."""
    (tmp_path / "slurm-44.out").write_text(
        f"{said}\nsrun: error: h4: tasks 24-31: Exited with exit code 125\n"
        "srun: Terminating StepId=44.0\n"
    )
    (tmp_path / "sacct.psv").write_text(SACCT.replace("1:0", "125:0"))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == code
    assert {place.host for place in verdict.culprits} == ({"h4"} if code else set())
