"""A host that only metrics speak of is blamed with less than confidence."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

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
