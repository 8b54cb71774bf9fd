"""The live Slurm, asked through a stand-in for its commands."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from flatline.errors import (
    SourceError,
    SourceRefused,
    SourceUnreachable,
    UsageError,
)
from flatline.model import Job, RecordCite
from flatline.sources.slurm import available, expanded, fetch, find_logs, plain_id, run_command

TABLE = (
    "JobID|State|Start|End|NodeList\n"
    "700|FAILED|2026-11-20T15:00:00|2026-11-20T16:00:00|gpu[07-08],-oops\n"
)
Answers = dict[str, tuple[int, str, str]]


def slurm(**answers: tuple[int, str, str]) -> tuple[Callable[..., CompletedProcess[bytes]], list]:
    """A Slurm that answers by the command's name (`sacct_json` where --json is asked)."""
    asked: list[Sequence[str]] = []

    def run(argv: Sequence[str]) -> CompletedProcess[bytes]:
        asked.append(argv)
        name = argv[0] + ("_json" if "--json" in argv else "")
        name += f"_{argv[2]}" if argv[0] == "scontrol" else ""
        code, out, err = answers.get(name, (1, "", "not answered"))
        return CompletedProcess(argv, code, out.encode(), err.encode())

    return run, asked


def job(**changed: object) -> Job:
    cite = RecordCite("s", "p", None, "t")
    fields = {
        "id": "700",
        "name": "train",
        "disposition": "failed",
        "state": "FAILED",
        "cite": cite,
    }
    return Job(**(fields | changed))  # type: ignore[arg-type]


@pytest.mark.parametrize("job_id", ["700", "16_2", "20+1", "700.batch", " 700 "])
def test_job_ids(job_id: str) -> None:
    """Numbers, array tasks, heterogeneous parts, and steps of them, which are left off."""
    assert plain_id(job_id) == job_id.strip().split(".")[0]


@pytest.mark.parametrize(
    "job_id", ["", "-h", "7;ls", "7 8", "$(id)", "../7", "7" * 40, "n1", "7\n"]
)
def test_what_is_no_job_id_is_refused(job_id: str) -> None:
    """Nothing else becomes an argument of a command."""
    run, asked = slurm()
    with pytest.raises(UsageError if job_id != "7\n" else SourceError):
        fetch(job_id, run)
    assert all(job_id not in argv for argv in asked)


def test_a_job_is_asked_for_everywhere() -> None:
    """Accounting in both forms, the controller, the nodes, and their events around the job."""
    run, asked = slurm(
        sacct=(0, TABLE, ""),
        sacct_json=(0, json.dumps({"jobs": []}), ""),
        scontrol_job=(1, "", "slurm_load_jobs error: Invalid job id specified"),
        scontrol_node=(0, "NodeName=gpu07 State=DOWN\n", ""),
        sacctmgr=(0, "NodeName|State\n", ""),
    )
    failures: list[SourceError] = []
    names = [found.name for found in fetch("700", run, failures)]
    assert [name.split()[0] for name in names] == ["sacct", "sacct", "scontrol", "sacctmgr"]
    assert ["scontrol", "show", "node", "gpu07,gpu08"] in [list(argv) for argv in asked]
    assert "start=2026-11-20T14:00:00" in names[-1]
    assert "end=2026-11-20T17:00:00" in names[-1]
    assert ["Invalid job id" in str(failure) for failure in failures] == [True]


def test_a_job_that_only_the_controller_knows() -> None:
    """Without accounting the controller's record is enough."""
    run, _ = slurm(
        sacct=(1, "", "Slurm accounting storage is disabled"),
        scontrol_job=(0, "JobId=700 JobName=x\n   JobState=RUNNING\n   NodeList=n1\n", ""),
        scontrol_node=(0, "NodeName=n1 State=MIXED\n", ""),
    )
    assert [found.name for found in fetch("700", run)] == [
        "scontrol show job -d 700",
        "scontrol show node n1",
    ]


@pytest.mark.parametrize(
    "words, kind",
    [
        ("slurm_load_jobs error: Unable to contact slurm controller", SourceUnreachable),
        ("error: Access/permission denied", SourceRefused),
        ("error: something else", SourceError),
    ],
)
def test_failures_say_what_to_do(words: str, kind: type[SourceError]) -> None:
    """Where nothing answers, the first failure is raised with Slurm's own words."""
    run, _ = slurm(sacct=(1, "", words), scontrol_job=(1, "", words))
    with pytest.raises(kind, match=words.split(": ")[-1]):
        fetch("700", run)


def test_a_job_nobody_knows() -> None:
    """sacct prints its header alone for an unknown id: no record, and said so."""
    run, _ = slurm(sacct=(0, "JobID|State\n", ""), scontrol_job=(1, "", "Invalid job id"))
    with pytest.raises(SourceError, match="knows no job 700"):
        fetch("700", run)


def test_commands_run_in_utc_and_without_a_shell() -> None:
    """The environment is fixed, arguments are passed as they are."""
    code = "import os,sys; print(os.environ['TZ'], os.environ['LC_ALL'], sys.argv[1])"
    done = run_command([sys.executable, "-c", code, "$(id); *"])
    assert done.stdout == b"UTC0 C $(id); *\n"


@pytest.mark.parametrize(
    "code, limits, match",
    [
        ("import time; time.sleep(60)", {"limit_s": 0.3}, "no answer in 0.3 s"),
        ("print('x' * 10**6, flush=True)", {"limit_bytes": 1000}, "more than"),
        (
            "import sys\nwhile True: sys.stderr.write('x' * 999)",
            {"limit_bytes": 1000},
            "more than",
        ),
    ],
)
def test_slow_and_endless_commands_are_ended(code: str, limits: dict, match: str) -> None:
    """The child is killed when its time or its room is up."""
    with pytest.raises(SourceError, match=match):
        run_command([sys.executable, "-c", code], **limits)


def test_a_command_that_is_not_there() -> None:
    """Said with what to do about it."""
    with pytest.raises(SourceUnreachable, match="PATH"):
        run_command(["no-such-command-of-slurm"])
    assert not available(lambda name: None)
    assert available(lambda name: "/usr/bin/sacct" if name == "sacct" else None)


@pytest.mark.parametrize(
    "pattern, glob",
    [
        ("log-%j.out", "log-700.out"),
        ("%x.%5j", "train.00700"),
        ("r-%t-%N.log", "r-*-*.log"),
        ("100%%.log", "100%.log"),
        ("a[1].log", "a[[]1].log"),
        ("raw\\%j", "raw%j"),
        ("%A_%a", "700_4294967294"),
    ],
)
def test_file_name_patterns(pattern: str, glob: str) -> None:
    """sbatch's fields, padding, and the characters a glob would take for its own."""
    assert expanded(pattern, job()) == glob


def test_the_raw_id_of_an_array_task_is_not_guessed() -> None:
    """`%j` of task 16_2 is another number, known only where it was recorded."""
    task = job(id="16_2")
    assert expanded("%A_%a.out", task) == "16_2.out"
    assert expanded("%j.out", task) is None
    assert expanded("%j.out", task, raw_id="20") == "20.out"


def logs_of(found: Job, root: Path, **answers: tuple[int, str, str]) -> list[str]:
    run, _ = slurm(**answers)
    return [path.name for path in find_logs(found, [root], run)[0]]


def test_logs_are_where_the_record_says(tmp_path: Path) -> None:
    """StdOut and StdErr first; the default name is not taken beside them."""
    for name in ("o.log", "e.log", "slurm-700.out"):
        (tmp_path / name).write_text("x")
    found = job(std_out=str(tmp_path / "o.log"), std_err=str(tmp_path / "e.log"))
    assert logs_of(found, tmp_path) == ["o.log", "e.log"]


@pytest.mark.parametrize(
    "line",
    [
        "sbatch -o logs/%j.log train.sh",
        "sbatch -ologs/%j.log train.sh",
        "sbatch --output=logs/%j.log train.sh",
        "sbatch --output logs/700.log train.sh",
    ],
)
def test_logs_by_the_submit_line(tmp_path: Path, line: str) -> None:
    """A relative path of the submit line is relative to the working directory."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/700.log").write_text("x")
    found = job(submit_line=line, work_dir=str(tmp_path))
    assert logs_of(found, Path("/nowhere")) == ["700.log"]


def test_logs_by_the_batch_script(tmp_path: Path) -> None:
    """The script Slurm kept names the output of every task."""
    for name in ("run-0.txt", "run-1.txt"):
        (tmp_path / name).write_text("x")
    script = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH -o run-%t.txt\nsrun x\n"
    found = job(work_dir=str(tmp_path))
    assert logs_of(found, tmp_path, scontrol_batch_script=(0, script, "")) == [
        "run-0.txt",
        "run-1.txt",
    ]


@pytest.mark.parametrize(
    "name", ["slurm-700.out", "outputs/700-train/log.txt", "700/rank0.log", "logs/700.out"]
)
def test_logs_by_habit(tmp_path: Path, name: str) -> None:
    """sbatch's default name, and folders named after the job."""
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("x")
    (tmp_path / "7001.out").write_text("another job's")
    assert logs_of(job(), tmp_path) == [Path(name).name]


def test_where_was_looked_is_said(tmp_path: Path) -> None:
    """Nothing found: every place that was tried, the record's first."""
    run, _ = slurm()
    found, looked = find_logs(job(std_out="/gone/700.out", id="16_2"), [tmp_path], run)
    assert found == []
    assert looked[0] == "/gone/700.out (the record's StdOut and StdErr)"
    assert any("slurm-16_2.out" in place for place in looked)
    assert len(looked) > 5
