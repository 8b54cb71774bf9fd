"""A log that begins with what Slurm's commands printed is a log; kept records are records."""

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.collect.files import walk
from flatline.diagnose import diagnose
from flatline.facts import LOG, SCHEDULER
from flatline.model import Gap

JOB = """JobId=812 JobName=fit
   UserId=ines(1000) GroupId=ines(1000) MCS_label=N/A
   JobState=RUNNING Reason=None Dependency=(null)
   RunTime=00:00:01 TimeLimit=1-00:00:00 TimeMin=N/A
   NodeList=node9

"""
ROWS = "JobID|JobName|State|ExitCode\n812|fit|RUNNING|0:0\n"
NODES = "NodeName=node9 Arch=x86_64 CoresPerSocket=24\n   CPUAlloc=0 CPUTot=48\n   State=IDLE\n\n"
LINES = """step 10/100 loss 2.1
step 20/100 loss 1.9
step 30/100 loss 1.8
Traceback (most recent call last):
  File "/home/ines/fit.py", line 61, in <module>
    main()
KeyError: 'labels'
srun: error: node9: task 0: Exited with exit code 1
"""


def kind(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    gaps: list[Gap] = []
    return walk((str(folder),), gaps)[0].kind


@pytest.mark.parametrize("printed", [JOB, ROWS, NODES])
@pytest.mark.parametrize("before", ["", "starting on node9\n", "+ scontrol show job 812\n"])
def test_a_log_that_begins_with_its_job_s_record_is_read(
    tmp_path: Path, printed: str, before: str
) -> None:
    (tmp_path / "slurm-812.out").write_text(before + printed + LINES)

    assert diagnose(collect(Request((str(tmp_path),)))).code == "A3"


@pytest.mark.parametrize("record", [JOB, ROWS, NODES])
@pytest.mark.parametrize("remark", ["", "kept by ines, for step 3 of the report\n"])
def test_a_record_with_a_remark_is_a_record(tmp_path: Path, record: str, remark: str) -> None:
    assert kind(tmp_path, "job.txt", remark + record) == SCHEDULER


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("changes.txt", "diff --git a/fit.py b/fit.py\n-    raise OSError('disk')\n"),
        ("settings.txt", "PATH=/usr/bin\nNOTE=RuntimeError: CUDA out of memory.\n"),
        ("generations/step_20.txt", "RuntimeError: CUDA out of memory.\n"),
        ("predictions.txt", "RuntimeError: CUDA out of memory.\n"),
        ("data/held_out.txt", "RuntimeError: CUDA out of memory.\n"),
    ],
)
def test_text_beside_a_log_is_no_log(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    (tmp_path / "fit.log").write_text(LINES)
    found = {file.source: file.kind for file in walk((str(tmp_path),), [])}

    assert found.pop("fit.log") == LOG
    assert LOG not in found.values()


def test_a_lone_text_is_the_log(tmp_path: Path) -> None:
    assert kind(tmp_path, "predictions.txt", LINES) == LOG
