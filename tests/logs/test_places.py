"""What names of logs say, and what they do not."""

from __future__ import annotations

import pytest

from flatline.logs.labels import Labels, NamePlace, place_of_name


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
        ("logs/worker-3-gke-a3-pool-hh2c.log", NamePlace(task=3)),
        ("process-11-jx-012.log", NamePlace(task=11)),
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
        "worker-3-2.log",
        "task-17-llama3-8b-sft.log",
        "worker-3-main.log",
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


@pytest.mark.parametrize(
    "line",
    (
        "Mar  2 04:09:58 node01 kernel: nfs: server nas1 not responding, still trying",
        "2026-03-02T04:10:58+0000 node01 kernel: NVRM: Xid (PCI:0000:9d:00): 149, NETIR",
        "2026-03-02T04:10:58.123456+00:00 node01 slurmd[811]: error: Node reboot",
        "<4>Mar 12 04:09:58 node01 nvidia-fabricmanager[99]: fatal",
    ),
)
def test_syslog_names_the_host_it_was_written_on(line: str) -> None:
    assert Labels.learn([line]).split(line).place.host == "node01"


@pytest.mark.parametrize(
    "line",
    (
        "2026-03-02T04:10:58 INFO main: step 3 of 9",
        "2026-03-02 04:10:58 WARNING trainer: kernel: 3x3",
        "Mar 12 04:09:58 loss went up: 3.1",
    ),
)
def test_a_programs_own_stamp_names_no_host(line: str) -> None:
    assert Labels.learn([line]).split(line).place.host is None


@pytest.mark.parametrize(
    ("path", "host"),
    (
        ("node02.dmesg.log", "node02"),
        ("dmesg-node02.txt", "node02"),
        ("a100-03_kernel.log", "a100-03"),
        ("hosts/node02/dmesg", "node02"),
        ("dmesg/gpu-7.log", "gpu-7"),
        ("dmesg_tail.txt", None),
        ("dmesg.1", None),
        ("dmesg-20260302.log", None),
        ("dmesg_run2.txt", None),
        ("dmesg-with-xid-119.log", None),
        ("xid79-dmesg.log", None),
        ("dmesg-ip-10-0-0-5.txt", "ip-10-0-0-5"),
        ("node02/dmesg.log", None),
    ),
)
def test_a_kernel_log_may_be_named_after_its_host(path: str, host: str | None) -> None:
    """dmesg's own lines name none; a folder alone may be anything."""
    place = place_of_name(path)

    assert (place.host if place else None) == host
