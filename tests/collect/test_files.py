"""What a target holds: files told by content, each once, and nothing outside it."""

from __future__ import annotations

import os
import pickle
import socket
from pathlib import Path

import pytest

from flatline.collect import files
from flatline.collect.files import BINARY, EMPTY, OTHER, Found, classify, walk
from flatline.collect.of_job import of_job as files_of
from flatline.errors import UsageError
from flatline.facts import DUMPS, EVENTS, KERNEL, LOG, METRICS, SCHEDULER
from flatline.model import Gap, Job, RecordCite

STEPS = "".join(f"step {i}/100 loss {5 / i:.3f}\n" for i in range(1, 30))
DMESG = "".join(f"[ {i}.000001] usb 1-1: new device\n" for i in range(10))
GOES_ON = "".join(
    f"[Tue Mar  3 11:2{i}:30 2026] NVRM: API mismatch: the client has the version 565.57.01, but\n"
    "               NVRM: this kernel module has the version 560.35.05.  Please\n"
    "               NVRM: make sure that this kernel module and all NVIDIA driver\n"
    for i in range(3)
)
JOURNAL = (
    "Feb 08 04:15:37 n08 kernel: NVRM: Xid (PCI:0000:c3:00): 95, pid=771, Uncontained: FBHUB\n"
    "Feb 08 04:15:47 n08 slurmstepd[771002]: done with step\n"
    "Feb 08 04:15:58 n08 nvidia-persistenced[1690]: device 0000:c3:00.0 - persistence mode on.\n"
)
SERVICE = "".join(f"Feb 08 04:16:{n:02} n08 train[88]: step {n} loss 2.{n:02}\n" for n in range(9))
SEGFAULT = (
    "[Wed Oct  8 19:53:48 2025] python3[2217731]: segfault at 48 ip 00007f22d11c0a21 sp"
    " 00007f21b77fbe90 error 4 in libcodec.so[7f22d1080000+612000]\n"
)
TAINTED = "[Wed Oct  8 19:53:48 2025] Disabling lock debugging due to kernel taint\n"
SACCT = "JobID|JobName|State|ExitCode\n7|a|FAILED|1:0\n"
METRIC = "# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n" + 'DCGM_FI_DEV_GPU_TEMP{gpu="0"} 40 1700000000000\n'


def walked(*targets: Path) -> tuple[dict[str, str], list[Gap]]:
    gaps: list[Gap] = []
    found = walk(tuple(map(str, targets)), gaps)
    return {file.source: file.kind for file in found}, gaps


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("out", STEPS, LOG),
        ("out.json", STEPS, LOG),
        ("anything", DMESG, KERNEL),
        ("anything", "[Tue Mar  3  1:07:12 2026] mlx5_core 0000:3b:00.0: Link down\n", KERNEL),
        pytest.param("anything", GOES_ON, KERNEL, id="goes-on-indented"),
        pytest.param(
            "anything",
            GOES_ON.replace("  NVRM", "  driver").replace("] NVRM: API", "] api"),
            LOG,
            id="a-program-s-own",
        ),
        pytest.param("anything", GOES_ON + STEPS, LOG, id="shown-before-steps"),
        pytest.param("anything", JOURNAL, KERNEL, id="a-hosts-journal"),
        pytest.param("anything", JOURNAL + SERVICE, LOG, id="a-service-among-it"),
        pytest.param("anything", JOURNAL + SERVICE[:50], LOG, id="a-few-lines-of-a-service"),
        pytest.param("anything", SEGFAULT, KERNEL, id="a-process-of-a-host"),
        pytest.param("dmesg-n12.txt", TAINTED, KERNEL, id="named-a-kernel-s"),
        pytest.param("n12.txt", TAINTED, LOG, id="named-otherwise"),
        ("anything", SACCT, SCHEDULER),
        ("train.log", SACCT, SCHEDULER),
        ("anything", METRIC, METRICS),
        (
            "nccl_trace_rank_3",
            pickle.dumps({"version": "2.4", "pg_config": {}}, 2).decode("latin-1"),
            DUMPS,
        ),
        ("train.py", "import torch\n", OTHER),
        ("config.json", '{"lr": 1}', OTHER),
        ("run", "#!/bin/bash\nsrun x\n", OTHER),
        ("job-7.out", "#!/bin/bash\nsrun x\n", LOG),
        ("empty.log", "", EMPTY),
        ("weights", "\x01\x02\x03\x80" * 500, BINARY),
    ],
)
def test_a_file_is_told_by_what_it_holds(
    tmp_path: Path, name: str, content: str, kind: str
) -> None:
    """Its name decides only where the content could be anything."""
    (tmp_path / name).write_text(content, "latin-1")

    assert classify(tmp_path / name, name, [])[0] == kind


def test_links_out_of_the_target_are_not_followed(tmp_path: Path) -> None:
    """Neither to a file nor to a folder, and each is said."""
    run, outside = tmp_path / "run", tmp_path / "outside"
    run.mkdir()
    outside.mkdir()
    (outside / "secret.log").write_text(STEPS)
    (run / "file.log").symlink_to(outside / "secret.log")
    (run / "folder").symlink_to(outside)
    (run / "nowhere.log").symlink_to(run / "missing")
    kinds, gaps = walked(run)

    assert kinds == {}
    assert {gap.where for gap in gaps} == {"file.log", "folder", "nowhere.log", str(run)}


def test_links_within_the_target_count_once(tmp_path: Path) -> None:
    """And a circle of folders ends."""
    (tmp_path / "a.log").write_text(STEPS)
    (tmp_path / "latest.log").symlink_to("a.log")
    (tmp_path / "up").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to("self")
    kinds, gaps = walked(tmp_path)

    assert kinds == {"a.log": LOG}
    assert [gap.where for gap in gaps] == ["self"]


def test_pipes_and_sockets_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To open one would wait for its other end."""
    os.mkfifo(tmp_path / "pipe.log")
    monkeypatch.chdir(tmp_path)  # a socket's path may have 107 characters
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.log")
        kinds, gaps = walked(tmp_path)

    assert kinds == {}
    assert {gap.where for gap in gaps} == {"pipe.log", "socket.log", str(tmp_path)}


@pytest.mark.parametrize("target", ["/dev/null", "a" * 5000, "missing", "nul\0"])
def test_a_target_that_is_neither_file_nor_folder_is_a_wrong_call(target: str) -> None:
    """A device, a name no file can have, or nothing at all."""
    with pytest.raises(UsageError):
        walk((target,), [])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_a_gap(tmp_path: Path) -> None:
    """Files and folders."""
    (tmp_path / "a.log").write_text(STEPS)
    (tmp_path / "a.log").chmod(0)
    (tmp_path / "sub").mkdir(mode=0)
    kinds, gaps = walked(tmp_path)
    (tmp_path / "sub").chmod(0o700)

    assert kinds == {"a.log": OTHER}
    assert {gap.where for gap in gaps} >= {"a.log", "sub"}


@pytest.mark.parametrize(
    ("names", "said"), [((), "no file"), (("a.log", "b.log"), "empty"), (("x.py",), "none of 1")]
)
def test_a_target_that_holds_nothing_says_so(
    tmp_path: Path, names: tuple[str, ...], said: str
) -> None:
    """No file, empty ones, or none that a run leaves behind."""
    for name in names:
        (tmp_path / name).write_text("x = 1\n" if name.endswith(".py") else "")
    _, gaps = walked(tmp_path)

    assert [(gap.where, said in gap.reason) for gap in gaps] == [(str(tmp_path), True)]


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    """By its folder and by itself, or by the same words."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a.log").write_text(STEPS)
    kinds, _ = walked(tmp_path / "run", tmp_path / "run" / "a.log", tmp_path / "run")

    assert kinds == {"run/a.log": LOG}


def test_targets_of_one_name_keep_their_files_apart(tmp_path: Path) -> None:
    """A citation names one file."""
    for host in ("n1", "n2"):
        (tmp_path / host / "logs").mkdir(parents=True)
        (tmp_path / host / "logs" / "a.log").write_text(STEPS)
    kinds, _ = walked(tmp_path / "n1" / "logs", tmp_path / "n2" / "logs")

    assert list(kinds) == ["logs/a.log", "logs~2/a.log"]


def test_slurm_json_of_no_known_format_is_a_gap(tmp_path: Path) -> None:
    """A damaged record is not passed over like any settings file."""
    (tmp_path / "sacct.json").write_text('{"jobs":' + "[" * 10_000)
    _, gaps = walked(tmp_path)

    assert (SCHEDULER, "sacct.json") in [(gap.need, gap.where) for gap in gaps]


def of_job(
    given: list[Found], job: str, others: set[str], hosts: tuple[str, ...] = ()
) -> list[Found]:
    cite = RecordCite("sacct.psv", "row 1, State", "RUNNING", "RUNNING")
    rows = [Job(job, None, "running", "RUNNING", cite, nodes=hosts)] if hosts else []
    return files_of(given, rows, job, others)


def found(*sources: str, kind: str = LOG) -> list[Found]:
    return [Found(Path(source), source, kind, 1) for source in sources]


def test_logs_named_after_the_job_are_its_own() -> None:
    """A number within a longer one is none."""
    files = found("slurm-77.out", "slurm-8.out", "slurm-777.out", "7/77/err.log", "train.log")
    records = found("sacct.psv", kind=SCHEDULER)

    kept = [file.source for file in of_job([*files, *records], "77", {"8"})]

    assert kept == ["slurm-77.out", "7/77/err.log", "sacct.psv"]


def test_ranks_logs_beside_the_one_named_after_the_job_are_its_own() -> None:
    """As long as nothing there is another job's."""
    files = found("slurm-7733.out", "logs/rank_000.log", "logs/rank_016.log", "task-3.err")

    assert of_job(files, "7733", set()) == files
    assert of_job(files, "7733", {"7721"}) == files


def test_logs_in_folders_of_its_hosts_are_its_own() -> None:
    """Another host's are not."""
    files = found("slurm-7733.out", "logs/n5/stdout.log", "logs/n6.log")

    assert of_job(files, "7733", set(), ("n5", "n6")) == files
    assert of_job(files, "7733", set(), ("n5", "n7")) == files[:2]


def test_a_log_of_no_name_beside_the_jobs_own_may_be_anybodys() -> None:
    """Of an earlier try, of a test, of an installation."""
    files = found("slurm-7733.out", "train.log", "pip_install.log")

    assert of_job(files, "7733", set()) == files[:1]


@pytest.mark.parametrize(
    ("job", "own", "other"),
    [("7733", "slurm-7733.out", "slurm-7734.out"), ("7733", "7733/err.log", "7690/err.log"),
     ("77_1", "slurm-77_1.out", "slurm-77_2.out"), ("77_1", "slurm-77_1.out", "slurm-80.out")],
)  # fmt: skip
def test_a_log_that_bears_another_number_there_is_another_jobs(
    job: str, own: str, other: str
) -> None:
    """Though no record names that job: then what is named after none may be anybody's."""
    files = found(own, other, "rank_0.log")

    assert [file.source for file in of_job(files, job, set())] == [own]


def test_without_such_names_the_logs_of_no_other_job_are_kept() -> None:
    """What is named after another job is not this one's."""
    files = found("train.log", "slurm-8.out")

    assert [file.source for file in of_job(files, "77", {"8"})] == ["train.log"]


def test_kernel_logs_of_hosts_are_kept_beside_logs_of_the_job() -> None:
    """A kernel speaks of its host, and is named after it; one named after another job is not
    kept."""
    files = found("slurm-77.out", "health.log")
    kernel = found("kern-n5.log", "8/dmesg-n5.log", "dmesg-n6-77.txt", kind=KERNEL)

    kept = [file.source for file in of_job([*files, *kernel], "77", {"8"})]

    assert kept == ["slurm-77.out", "kern-n5.log", "dmesg-n6-77.txt"]


def test_a_kernel_log_named_after_the_job_makes_no_other_log_strange() -> None:
    """What is told of one kind says nothing of the other."""
    files = [*found("train.log", "slurm-8.out"), *found("kern-77.log", kind=KERNEL)]

    kept = [file.source for file in of_job(files, "77", {"8"})]

    assert kept == ["train.log", "kern-77.log"]


def test_a_page_that_is_all_there_is_is_the_log(tmp_path: Path) -> None:
    """As people keep outputs; beside a log it is a page about the run."""
    (tmp_path / "out.md").write_text(STEPS)
    alone, _ = walked(tmp_path)
    (tmp_path / "train.log").write_text(STEPS)
    beside, _ = walked(tmp_path)

    assert alone == {"out.md": LOG}
    assert beside == {"out.md": OTHER, "train.log": LOG}


@pytest.fixture
def many(tmp_path: Path) -> Path:
    shapes = (STEPS, DMESG, SACCT, METRIC, "", "\0\1\2")
    for n in range(len(shapes) * 8):
        (tmp_path / f"{n:03d}.log").write_text(shapes[n % len(shapes)])
    (tmp_path / "events.out.tfevents.7").write_text("no event file")
    return tmp_path


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("dies", [False, True])
def test_several_processes_tell_what_one_tells(
    many: Path, dies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the same order and with the same gaps, also where one of them is killed."""
    alone = walked(many)
    assert {LOG, KERNEL, SCHEDULER, METRICS, EMPTY, BINARY} < set(alone[0].values())
    assert [gap.need for gap in alone[1]] == [EVENTS]
    parent, done, tell = os.getpid(), [], files.classify

    def told(path: Path, relative: str, gaps: list[Gap]) -> tuple[str, int]:
        done.append(path)
        if dies and os.getpid() != parent and path.name == "030.log":
            os._exit(9)
        return tell(path, relative, gaps)

    monkeypatch.setattr(files, "classify", told)
    monkeypatch.setattr(files, "MANY_FILES", 8)
    monkeypatch.setattr(files, "most_workers", lambda: 2)
    assert walked(many) == alone
    assert bool(done) == dies, "the parent tells only what is left to it"


def test_how_far_a_look_at_many_files_is(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[str, int, int]] = []
    walk((str(many),), [], on_progress=lambda *one: said.append(one))
    assert not said
    monkeypatch.setattr(files, "MANY_FILES", 8)
    found = walk((str(many),), [], on_progress=lambda *one: said.append(one))
    assert said[-1] == (f"looking at files: {len(found)} of 49", sum(f.size for f in found), 0)
    assert len(said) == len(found)
