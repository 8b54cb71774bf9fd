"""F4 by the words of what was to start the program; the program's own failures are none of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

RULE = "-" * 74 + "\n"
STEPS = "".join(f"step {n}/500 loss {4 / n:.4f}\n" for n in range(1, 60))
PMIX = (
    "slurmstepd: error:  mpi/pmix_v3: pmixp_coll_ring_reset_if_to: n1 [0]: pmixp_coll_ring.c:742:"
    " 0x15210c01ab70: collective timeout seq=0\n"
    "slurmstepd: error: *** STEP 41.0 ON n1 CANCELLED AT 2022-06-20T14:41:03 ***\n"
    "srun: error: n1: task 0: Killed\n"
)
CARDS = "slurmstepd: error: Slingshot service allocation failed on cxi0: No space left on device\n"
NO_FILE = "FileNotFoundError: [Errno 2] No such file or directory: 'train_list.txt'\n"


def code_of(folder: Path, text: str) -> str | None:
    (folder / "train.log").write_text(text)
    return diagnose(collect(Request((str(folder),)))).code


@pytest.mark.parametrize(
    "text",
    [
        RULE + "mpirun was unable to find the specified executable file, and therefore\n"
        "did not launch the job.  This error was first reported for process\nrank 0;\n",
        RULE + "mpirun was unable to launch the specified application as it could not access\n"
        "or execute an executable:\n\nExecutable: ./train.sh\nNode: n1\n",
        RULE + "mpirun has detected an attempt to run as root.\n",
        RULE + "A request was made to bind to that would result in binding more\n"
        "processes than cpus on a resource:\n",
        RULE + "Open RTE was unable to open the hostfile:\n    /etc/hosts.mpi\n",
        "[proxy:0:0@n1] HYDU_create_process (utils/launch/launch.c:74): execvp error on file"
        " train.py (No such file or directory)\n",
        "slurmstepd: error: pyxis: seccomp filter failed\n"
        "slurmstepd: error: spank: required plugin spank_pyxis.so: task_init() failed with rc=-1\n"
        "slurmstepd: error: Failed to invoke spank plugin stack\n"
        "srun: error: n3: task 0: Exited with exit code 1\n",
        "slurmstepd: error: spank: required plugin site.so: user_init() failed with rc=-1\n"
        "slurmstepd: error: Failed to invoke spank plugin stack\n"
        "srun: error: n3: task 0: Exited with exit code 1\n",
        PMIX,
        "PMI2_Init failed to intialize.  Return code: 14\n",
        CARDS,
        "srun: error: task 24-31 launch failed: Error configuring interconnect\n",
    ],
    ids=["missing", "not-executable", "root", "binding", "hostfile", "hydra", "pyxis", "spank",
         "pmix", "pmi2", "cards", "tasks"],
)  # fmt: skip
def test_what_kept_the_program_from_starting(tmp_path: Path, text: str) -> None:
    """Nothing of the program itself was printed."""
    assert code_of(tmp_path, text) == "F4"


@pytest.mark.parametrize(
    "text",
    [
        "mpirun -np 4 python train.py\n" + NO_FILE,
        STEPS + PMIX,
        STEPS
        + "slurmstepd: error: spank: required plugin site.so: task_exit() failed with rc=-1\n",
        STEPS + CARDS,
        "python: can't open file 'mnist_cnn.py': [Errno 2] No such file or directory\n",
    ],
    ids=[
        "the program's file",
        "after steps",
        "at the end",
        "a step beside it",
        "the interpreter's",
    ],
)
def test_what_the_program_met_itself(tmp_path: Path, text: str) -> None:
    """It was started."""
    assert code_of(tmp_path, text) != "F4"


@pytest.mark.parametrize(("count", "sure"), [(0, True), (60, False)])
def test_a_refusal_below_which_a_program_prints(tmp_path: Path, count: int, sure: bool) -> None:
    """The script may have started it in another way."""
    refused = (
        "srun: unrecognized option '--container-image'\nTry \"srun --help\" for more information\n"
    )
    printed = "".join(f"[{n}] chunk {n * 7} of the corpus, {n * 3} s\n" for n in range(count))
    (tmp_path / "train.log").write_text(refused + printed)
    found = diagnose(collect(Request((str(tmp_path),))))

    assert (found.code, found.confidence >= 0.8) == ("F4", sure)


PYXIS = (
    "slurmstepd: error: pyxis: child 30117 failed with error code: 1\n"
    "slurmstepd: error: pyxis: failed to create container filesystem\n"
    "slurmstepd: error: spank: required plugin spank_pyxis.so: task_init() failed with rc=-1\n"
)
RECORD = (
    "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
    "44|gpt|FAILED|1:0|2026-03-04T08:00:00|2026-03-04T08:02:00|4|n[1-4]\n"
)


@pytest.mark.parametrize(
    ("hosts", "nodes", "named"),
    [(("n3",), "n[1-4]", ["n3"]), (("n2", "n3"), "n[1-4]", []), ((), "n[1-4]", []),
     (("n3",), "n3", [])],
    ids=["one of four", "two", "none is said", "there is no other"],
)  # fmt: skip
def test_the_one_host_whose_tasks_left_with_an_error(
    tmp_path: Path, hosts: tuple[str, ...], nodes: str, named: list[str]
) -> None:
    """The container plugin names no host, srun does."""
    exits = "".join(f"srun: error: {host}: task 3: Exited with exit code 1\n" for host in hosts)
    (tmp_path / "slurm-44.out").write_text(PYXIS + exits)
    (tmp_path / "sacct.psv").write_text(RECORD.replace("n[1-4]", nodes))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "F4"
    assert [place.host for place in verdict.culprits] == named
    assert any("only the tasks of" in one.text for one in verdict.shows) == bool(named)


def first_of_several(folder: Path, why: str) -> None:
    """The launch of four tasks, of which one failed so and srun ended the others."""
    ends = (
        "srun: error: n3: task 2: Exited with exit code 1\n"
        "srun: error: n[1-2,4]: tasks 0-1,3: Terminated\n"
    )
    said = f"slurmstepd: error: pyxis:     [ERROR] {why}\n"
    (folder / "slurm-44.out").write_text(PYXIS + said + ends)
    (folder / "sacct.psv").write_text(RECORD)


@pytest.mark.parametrize(
    ("why", "named"),
    [
        ("URL https://reg/v2/x returned error code: 429", []),
        ("No such file or directory: /lustre/i/x.sqsh", []),
        ("Failed to create user namespace", ["n3"]),
        ("failed to mount: /raid/d at /run/enroot/d: No such file or directory", ["n3"]),
        ("tar: usr/lib/x.so: Cannot write: No space left on device", ["n3"]),
    ],
    ids=["the registry's", "an image that all ask for", "the host's own", "its mount", "its disk"],
)
def test_the_first_of_several_is_no_place_apart(
    tmp_path: Path, why: str, named: list[str]
) -> None:
    """srun ends the others once one has failed: they may have been as far."""
    first_of_several(tmp_path, why)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, [place.host for place in verdict.culprits]) == ("F4", named)


@pytest.mark.parametrize("labelled", [False, True], ids=["bare", "labelled"])
@pytest.mark.parametrize(
    ("code", "said", "lacks", "named"),
    [
        (255, 4, "/p/scratch", ["n3"]),
        (1, 4, "/p/scratch", ["n3"]),
        (255, 9, "/p/scratch", []),
        (137, 4, "/p/scratch", []),
        (255, 4, "", ["n3"]),
    ],
    ids=["of -1", "of 1", "others say so too", "it was killed", "no loop device"],
)
def test_a_mount_that_the_tasks_of_one_host_alone_miss(
    tmp_path: Path, code: int, said: int, lacks: str, named: list[str], labelled: bool
) -> None:
    """Apptainer's line names no host; srun ended the tasks of the others, which said nothing.
    The labels that srun may put before them tell the tasks apart, and not what they say."""
    line = (
        f"FATAL:   container creation failed: mount hook function failure: mount {lacks}->{lacks}"
        f" error: while mounting {lacks}: mount source {lacks} doesn't exist\n"
        if lacks
        else "FATAL:   container creation failed: while mounting image /proc/self/fd/3: failed to"
        " find loop device: could not attach image file: no loop devices available\n"
    )
    (tmp_path / "slurm-44.out").write_text(
        "".join(f"{8 + n}: {line}" if labelled else line for n in range(said))
        + f"srun: error: n3: tasks 8-11: Exited with exit code {code}\n"
        + "srun: error: n1: tasks 0-3: Terminated\nsrun: error: n2: tasks 4-7: Terminated\n"
    )
    (tmp_path / "sacct.psv").write_text(RECORD)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, [place.host for place in verdict.culprits]) == ("F4", named)
    assert (verdict.attribution == "unknown") == bool(named)


FAILS = (
    "[Wed Mar  4 06:{0}:00 2026] LustreError: 15c-8: MGC10.9.0.2@o2ib: The configuration from log"
    " 'lfs1-client' failed (-5). This may be the result of communication errors.\n"
)
GONE = "[Wed Mar  4 06:{0}:00 2026] Lustre: Unmounted lfs1-client\n"
THERE = "[Wed Mar  4 06:{0}:00 2026] Lustre: Mounted lfs1-client\n"
UNIT = "[Wed Mar  4 06:{0}:00 2026] systemd[1]: Failed to mount lfs1.mount - /lfs1.\n"


@pytest.mark.parametrize(
    ("image", "kernels", "named"),
    [
        ("/lfs1/i/x.sqsh", {"n3": FAILS + GONE}, True),
        ("/mnt/lfs1/i/x.sqsh", {"n3": GONE, "n2": GONE + THERE}, True),
        ("/lfs1/i/x.sqsh", {"n3": UNIT}, True),
        ("/lfs1/i/x.sqsh", {"n3": GONE + THERE}, False),
        ("/lfs1/i/x.sqsh", {"n3": GONE, "n2": GONE}, False),
        ("/lfs1/i/x.sqsh", {"n2": GONE}, False),
        ("/home/me/i/lfs1/x.sqsh", {"n3": GONE}, False),
        ("/lfs12/i/x.sqsh", {"n3": UNIT}, False),
        ("/lfs1/i/x.sqsh", {"n3": GONE.replace("06:", "09:")}, False),
    ],
    ids=["its own log says so", "the other's was mounted again", "its unit failed",
         "was mounted again", "on several", "on another", "a folder of that name",
         "another of like name", "after the end"],
)  # fmt: skip
def test_what_is_not_mounted_on_the_one_host(
    tmp_path: Path, image: str, kernels: dict[str, str], named: bool
) -> None:
    """An image that all ask for is there for the others; this one has not the place it is on."""
    first_of_several(tmp_path, f"No such file or directory: {image}")
    (tmp_path / "kernel").mkdir()
    for host, lines in kernels.items():
        dated = "".join(line.format(n) for n, line in enumerate(lines.splitlines(True), 10))
        (tmp_path / "kernel" / f"{host}.log").write_text(dated)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "F4"
    assert [place.host for place in verdict.culprits] == (["n3"] if named else [])
    assert (verdict.attribution == "infrastructure") == named


@pytest.mark.parametrize(
    ("image", "mounted", "named"),
    [
        ("/gp/i/x.sqsh", {"n1": 1, "n2": 1, "n3": 0, "n4": 1}, True),
        ("/gp/i/x.sqsh", {"n2": 1, "n3": 0}, True),
        ("/gp/i/x.sqsh", {"n1": 1, "n2": 0, "n3": 0, "n4": 1}, False),
        ("/gp/i/x.sqsh", {"n1": 0, "n2": 1, "n3": 1, "n4": 1}, False),
        ("/gp/i/x.sqsh", {"n3": 0}, False),
        ("/gp/i/x.sqsh", {"n3": 0, "m7": 1}, False),
        ("/gpx/i/x.sqsh", {"n1": 1, "n2": 1, "n3": 0, "n4": 1}, False),
    ],
    ids=["it alone has it not", "not all were read", "on two", "on another", "no other was read",
         "none of the run", "another of like name"],
)  # fmt: skip
def test_what_is_not_mounted_on_the_one_host_as_its_exporter_says(
    tmp_path: Path, image: str, mounted: dict[str, int], named: bool
) -> None:
    first_of_several(tmp_path, f"No such file or directory: {image}")
    began = datetime(2026, 3, 4, 8, tzinfo=UTC).timestamp()
    (tmp_path / "mounts.prom").write_text(
        "".join(
            f'gpfs_mount_status{{instance="{host}:9303",mount="/gp"}} {state}'
            f" {int(began + at) * 1000}\n"
            for host, state in mounted.items()
            for at in range(0, 180, 30)
        )
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "F4"
    assert [place.host for place in verdict.culprits] == (["n3"] if named else [])


def test_the_host_whose_cards_could_not_be_set_up(tmp_path: Path) -> None:
    """srun names its tasks, and its own journal the host."""
    (tmp_path / "journal_n3.txt").write_text(
        "May 04 08:00:02 n3 slurmd[88]: launch task StepId=44.0 request from UID:501 GID:501"
        " HOST:10.0.0.1 PORT:40001\n"
        f"May 04 08:00:03 n3 slurmstepd[4711]: {CARDS.partition(': ')[2]}"
        "May 04 08:00:03 n3 slurmstepd[4711]: error: job_manager: exiting abnormally: Error"
        " configuring interconnect\n"
    )
    (tmp_path / "sacct.psv").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
        "44|gpt|FAILED|1:0|2026-05-04T08:00:00|2026-05-04T08:00:09|4|n[1-4]\n"
    )
    (tmp_path / "slurm-44.out").write_text(
        "srun: error: task 16-23 launch failed: Error configuring interconnect\n"
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, [place.host for place in verdict.culprits]) == ("F4", ["n3"])


VERSIONS = (
    "[Wed Mar  4 0{0}:00:31 2026] NVRM: API mismatch: the client has the version 565.57.01, but\n"
    "               NVRM: this kernel module has the version 560.35.05.  Please\n"
    "               NVRM: make sure that this kernel module and all NVIDIA driver\n"
    "               NVRM: components have the same version.\n"
)
CARDS_OF = (
    "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch"
)


@pytest.mark.parametrize(
    ("why", "kernels", "blamed"),
    [
        (CARDS_OF, {"n3": VERSIONS.format(8)}, "infrastructure"),
        (CARDS_OF, {"n3": VERSIONS.format(7) + VERSIONS.format(8)}, "infrastructure"),
        (CARDS_OF, {}, "unknown"),
        (CARDS_OF, {"n2": VERSIONS.format(8)}, "unknown"),
        (CARDS_OF, {"n2": VERSIONS.format(8), "n3": VERSIONS.format(8)}, "unknown"),
        ("Failed to create user namespace", {"n3": VERSIONS.format(8)}, "unknown"),
    ],
    ids=["its own", "for long", "no log", "another's", "on several", "no matter of cards"],
)
def test_a_driver_that_does_not_fit_on_the_one_host(
    tmp_path: Path, why: str, kernels: dict[str, str], blamed: str
) -> None:
    """The kernel's word on its driver is why its container did not start, not a program's end."""
    first_of_several(tmp_path, why)
    for host, lines in kernels.items():
        (tmp_path / f"dmesg.{host}").write_text(lines)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, [place.host for place in verdict.culprits]) == ("F4", ["n3"])
    assert verdict.attribution == blamed
