"""What names of logs say, and what they do not."""

from __future__ import annotations

import pytest

from flatline.logs.labels import NamePlace, place_of_name


@pytest.mark.parametrize(
    ("path", "place"),
    (
        ("logs/none_a8f/attempt_0/2/stderr.log", NamePlace(local_rank=2, attempt=0)),
        ("x/attempt_1/13/stdout.log", NamePlace(local_rank=13, attempt=1)),
        ("rank_3.log", NamePlace(rank=3)),
        ("out/rank3.out", NamePlace(rank=3)),
        ("rank-12.log.gz", NamePlace(rank=12)),
        ("dump_traceback.rank3", NamePlace(rank=3)),
        ("train_rank_7_stderr.txt", NamePlace(rank=7)),
        ("local_rank_2.log", NamePlace(local_rank=2)),
        ("p0.log", NamePlace(task=0)),
        ("task_5.out", NamePlace(task=5)),
        ("host-gpu01.log", NamePlace(host="gpu01")),
        ("host-gpu01/rank_3.log", NamePlace(host="gpu01", rank=3)),
        ("slurmd.gpu03.log", NamePlace(host="gpu03")),
        ("1/ray_logs/node-7/worker-ab-01000000-77.err", NamePlace(host="node-7")),
    ),
)
def test_a_name_says_where(path: str, place: NamePlace) -> None:
    """What has one meaning counts."""
    assert place_of_name(path) == place


@pytest.mark.parametrize(
    "path",
    (
        "slurm-123_4.out",
        "slurm-123.out",
        "log_12_3.out",
        "train.log",
        "node_rank_1.log",
        "tp_rank_3.log",
        "franked3.log",
        "prank3.log",
        "gpu01.log",
        "node1.log",
        "p0.json.d/x",
        "stderr_3.log",
        "",
    ),
)
def test_what_may_mean_anything_means_nothing(path: str) -> None:
    """An element of a job array is no rank, and no guess is made."""
    assert place_of_name(path) is None
