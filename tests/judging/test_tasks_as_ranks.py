"""The rank of a failure of which only the launcher's task is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict


def raised(folder: Path, task: int, rank: int | None) -> Verdict:
    """One of a job's tasks on two nodes raises; its rank stands on the line behind, if at all."""
    steps = [f" 0: step {n}/900 loss {4 / n:.4f}" for n in range(1, 41)]
    end = [
        f"{task:2}: Traceback (most recent call last):",
        f'{task:2}:   File "/w/train.py", line 88, in step',
        f"{task:2}:     loss = loss_of(batch)",
        f"{task:2}: ValueError: labels of another length than the logits",
    ]
    if rank is not None:
        end.append(
            f"{task:2}: [rank{rank}]:[E1102 11:20:14.1 ProcessGroupNCCL.cpp:12] [Rank {rank}] NCCL"
            " watchdog thread terminated with exception: unspecified"
        )
    (folder / "job.out").write_text("\n".join([*steps, *end]) + "\n")
    (folder / "sacct.psv").write_text(
        "JobID|JobName|State|ExitCode|Start|End|Elapsed|NNodes|NodeList\n"
        "4|llm|FAILED|1:0|2026-01-15T09:29:00|2026-01-15T10:29:00|01:00:00|2|n[1-2]\n"
    )
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("task", "printed", "rank"),
    [(11, 11, 11), (11, None, None), (11, 3, None), (1, 1, None)],
    ids=["of its number", "none", "of another number", "one a node may be numbered so"],
)
def test_a_task_is_a_rank_where_one_is_printed_with_its_number(
    tmp_path: Path, task: int, printed: int | None, rank: int | None
) -> None:
    verdict = raised(tmp_path, task, printed)

    assert verdict.code == "A3"
    assert [(place.task, place.rank) for place in verdict.culprits] == [(task, rank)]
