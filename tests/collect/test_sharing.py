"""Nodes that a run shared with other jobs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.collect.sharing import shared
from flatline.diagnose import diagnose
from flatline.facts import Facts
from flatline.model import Job, RecordCite
from flatline.signals import GPUS_HELD

BEGAN = datetime(2026, 3, 1, tzinfo=UTC)
CITE = RecordCite("sacct.txt", "row 1, State", "COMPLETED", "JobID=7")


def job(name: str, first_h: float, last_h: float | None, *nodes: str, gpus: int | None = 4) -> Job:
    began = BEGAN + timedelta(hours=first_h)
    ended = None if last_h is None else BEGAN + timedelta(hours=last_h)
    return Job(name, name, "completed", "COMPLETED", CITE, started_at=began, ended_at=ended,
               nodes=nodes, gpus=gpus)  # fmt: skip


OWN = job("7", 0, 4, "n1", "n2")


@pytest.mark.parametrize(
    ("other", "hosts"),
    [
        (job("8", 3, 9, "n2", "n3"), ["n2"]),
        (job("8", -3, None, "n1", "n2"), ["n1", "n2"]),
        (job("8", 4, 9, "n2"), []),
        (job("8", -3, 0, "n2"), []),
        (job("8", 1, 2, "n3"), []),
        (job("8", 1, 2, "n2", gpus=0), []),
        (job("7", 1, 2, "n2"), []),
    ],
    ids=["a part", "all the time", "after", "before", "elsewhere", "without GPUs", "itself"],
)
def test_a_node_that_another_job_was_on(other: Job, hosts: list[str]) -> None:
    gaps = shared((OWN, other), (OWN,))

    assert [gap.where for gap in gaps] == hosts
    assert all("job 8" in gap.reason for gap in gaps)


def test_whose_gpus_are_known_there_is_no_question() -> None:
    told = job("7", 0, 4, "n1", "n2")
    told = replace(told, devices=(("n2", ("0",)),))

    assert shared((told, job("8", 1, 2, "n1", "n2")), (told,))[0].where == "n1"
    assert len(shared((told, job("8", 1, 2, "n1", "n2")), (told,))) == 1


SCONTROL = """JobId=7 JobName=gpt
   JobState=COMPLETED Reason=None Dependency=(null)
   RunTime=02:00:00 TimeLimit=1-00:00:00 TimeMin=N/A
   StartTime=2026-03-01T00:00:00 EndTime=2026-03-01T02:00:00 Deadline=N/A
   NodeList=n1
   NumNodes=1 NumCPUs=24 NumTasks=2 CPUs/Task=12
     Nodes=n1 CPU_IDs=0-23 Mem=512000 GRES=gpu:h100:2(IDX:{})
"""


def run(folder: Path, indexes: str, working: str, metric: str) -> Facts:
    """A job of two hours on a node of four GPUs, by the indexes of those at work."""
    busy, idle = {"DCGM_FI_DEV_POWER_USAGE": (600, 90), "DCGM_FI_DEV_GPU_UTIL": (99, 0)}[metric]
    at = [BEGAN + timedelta(minutes=n) for n in range(1, 120)]
    (folder / "scontrol.txt").write_text(SCONTROL.format(indexes))
    (folder / "train.log").write_text(
        "".join(
            f"{when:%FT%T}Z step {n}/119 loss {9 - n / 20:.3f}\n" for n, when in enumerate(at, 1)
        )
    )
    (folder / "metrics.prom").write_text(f"# TYPE {metric} gauge\n" + "".join(
        f'{metric}{{gpu="{gpu}",UUID="GPU-{gpu}",Hostname="n1.lan"}}'
        f" {busy if gpu in working else idle} {when.timestamp() * 1000:.0f}\n"
        for gpu in "0123" for when in at
    ))  # fmt: skip
    return collect(Request((str(folder),)))


@pytest.mark.parametrize("metric", ["DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_UTIL"])
@pytest.mark.parametrize(
    ("indexes", "working", "read"),
    [
        ("0-1", "01", "01"),
        ("0-1", "0123", "01"),
        ("0-1", "23", "0123"),
        ("0-1", "12", "0123"),
        ("0-1", "0", "01"),
        ("0-1", "", "01"),
        ("4-5", "01", "0123"),
    ],
    ids=["its own", "every one", "the others", "one of the others", "one of its own is idle",
         "none", "no such index"],
)  # fmt: skip
def test_indexes_are_believed_unless_others_did_the_work(
    tmp_path: Path, metric: str, indexes: str, working: str, read: str
) -> None:
    facts = run(tmp_path, indexes, working, metric)
    signal = next(filter(facts.measured, ("gpu_power_watts", "gpu_utilization_ratio")))
    doubted = [gap for gap in facts.gaps if gap.need == GPUS_HELD]

    assert {row.place.gpu for row in facts.series(signal).rows} == set(read)
    assert [gap.where for gap in doubted] == (["n1"] if read == "0123" else [])


def test_a_run_on_gpus_that_are_not_known_is_not_surely_sound(tmp_path: Path) -> None:
    told, doubted = tmp_path / "told", tmp_path / "doubted"
    told.mkdir()
    doubted.mkdir()
    sure, unsure = (
        diagnose(run(at, "0-1", working, "DCGM_FI_DEV_POWER_USAGE"))
        for at, working in ((told, "01"), (doubted, "23"))
    )

    assert sure.state == unsure.state == "healthy"
    assert sure.confidence >= 0.8 > unsure.confidence
