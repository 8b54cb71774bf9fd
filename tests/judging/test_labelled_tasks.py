"""Agents of one labelled log that gave up to wait, and the one task that never came."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

ROWS = (
    "JobID|JobName|User|State|ExitCode|Submit|Start|End|NNodes|NodeList\n"
    "51|lm|ann|FAILED|1:0|2026-03-04T07:59:00|2026-03-04T08:00:00|2026-03-04T08:16:00|5|a[1-5]\n"
)
GAVE_UP = "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError"
STAGES = "3: copying shards to /local/nvme ...\n"


def judged(folder: Path, came: tuple[int, ...], *more: str, ends: str = "") -> Verdict:
    text = "".join(
        f"{task}: Traceback (most recent call last):\n"
        f'{task}:   File "/opt/env/torch/distributed/run.py", line 918, in main\n'
        f"{task}: {GAVE_UP}\n"
        for task in came
    )
    (folder / "sacct.txt").write_text(ROWS)
    (folder / "slurm-51.out").write_text("".join(more) + text + ends)
    return diagnose(collect(Request((str(folder),))))


def hosts(verdict: Verdict) -> list[str | None]:
    return [place.host for place in verdict.culprits]


def test_the_one_that_was_busy_with_something_else(tmp_path: Path) -> None:
    verdict = judged(tmp_path, (0, 1, 2, 4), "3: + ./stage.sh\n", STAGES)

    assert verdict.code == "C1"
    assert hosts(verdict) == ["a4"]
    assert any("never spoke of the rendezvous" in shown.text for shown in verdict.shows)


@pytest.mark.parametrize(
    ("came", "more", "ends"),
    [
        ((0, 1, 2, 4), (), ""),
        ((0, 1, 2, 4), (STAGES, "3: [INFO] torch/distributed/run.py: nproc_per_node=8\n"), ""),
        ((0, 1, 2, 3, 4), (STAGES,), ""),
        ((0, 1, 2), (STAGES, "4: copying shards to /local/nvme ...\n"), ""),
        ((0, 1, 2, 4), (STAGES, "5: copying shards to /local/nvme ...\n"), ""),
        ((0, 1, 2, 4), (STAGES,), "srun: error: a4: task 2: Exited with exit code 1\n"),
    ],
    ids=["says nothing", "its launcher had begun", "all gave up", "two did not", "more tasks",
         "another order"],
)  # fmt: skip
def test_whose_task_it_is_may_be_unknown(
    tmp_path: Path, came: tuple[int, ...], more: tuple[str, ...], ends: str
) -> None:
    verdict = judged(tmp_path, came, *more, ends=ends)

    assert verdict.code == "C1"
    assert hosts(verdict) == []
