"""A host that only metrics speak of is blamed with less than confidence."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

SLOW = Path(__file__).parents[1] / "scenarios" / "one_gpu_slow_at_full_clock" / "run"
HOSTS = ("node01", "node02", "node03")


def told(folder: Path, hosts: tuple[str, ...] = ()) -> tuple[Verdict, bool]:
    """The verdict, and whether it says that the culprit may not be the run's."""
    verdict = diagnose(collect(Request((str(folder),), hosts=hosts)))
    return verdict, any("ran this job" in line for line in verdict.cannot_decide)


def of_unknown_size(folder: Path) -> Path:
    """The run without the line that says how many ranks it has."""
    run = shutil.copytree(SLOW, folder / "run")
    log = run / "job.log"
    log.write_text(re.sub(r"world size \d+, ", "", log.read_text()))
    return run


def test_a_host_that_nothing_names_may_be_another_jobs(tmp_path: Path) -> None:
    """Of a job beside it, which rests when it likes."""
    verdict, doubted = told(of_unknown_size(tmp_path))

    assert (verdict.code, verdict.confidence < 0.8, doubted) == ("D3", True, True)


def test_hosts_that_the_caller_names_are_the_runs(tmp_path: Path) -> None:
    """`--hosts` is said by somebody who knows."""
    verdict, doubted = told(of_unknown_size(tmp_path), HOSTS)

    assert (verdict.code, doubted, verdict.run.hosts) == ("D3", False, HOSTS)


def test_no_more_gpus_than_ranks_are_the_runs() -> None:
    """Nothing else was measured."""
    verdict, doubted = told(SLOW)

    assert (verdict.code, verdict.run.hosts, doubted) == ("D3", (), False)


WORKLOADS = """\
NAME                    READY   STATUS      RESTARTS      AGE    IP          NODE
dpo-base-master-0       0/1     Completed   0             75m    10.9.3.8    hx-03
reranker-6d8b7c9-xw2lk  1/1     Running     4 (50m ago)   3d2h   10.9.9.1    hx-09
"""
EVENTS = """\
LAST SEEN  TYPE     REASON        OBJECT                      MESSAGE
75m        Normal   Scheduled     pod/dpo-base-master-0       Successfully assigned a/dpo-base-master-0 to hx-03
43m        Warning  OOMKilling    node/hx-09                  Memory cgroup out of memory: Killed process 881 (python)
33m        Normal   NodeNotReady  node/hx-09                  Node hx-09 status is now: NodeNotReady
"""  # noqa: E501


@pytest.mark.parametrize(("ours", "sure"), [("hx-03", False), ("hx-09", True)])
def test_a_node_that_only_lists_of_a_namespace_name(tmp_path: Path, ours: str, sure: bool) -> None:
    """Another row tells of another workload on it, unless a pod of a log that was read ran
    there."""
    events = EVENTS if not sure else EVENTS.replace("master-0 to hx-03", f"master-0 to {ours}")
    ended = "Completed   0             75m    10.9.3.8    hx-03"
    failed = f"Error       0             75m    10.9.3.8    {ours}"
    pods = WORKLOADS if not sure else WORKLOADS.replace(ended, failed)
    (tmp_path / "pods.txt").write_text(pods)
    (tmp_path / "events.txt").write_text(events)
    if sure:
        (tmp_path / "dpo-base-master-0.log").write_text("step 1 loss 3.0\nstep 2 loss 2.9\n")
    found = diagnose(collect(Request((str(tmp_path),))))

    assert found.code == "F1"
    assert (found.confidence >= 0.8) == sure
