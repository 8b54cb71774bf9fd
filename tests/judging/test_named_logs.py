"""Which host a log is of."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.judging.named_logs import host_of_log, hosts_with_logs

SACCT = (
    "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
    "44|gpt|FAILED|1:0|2026-03-04T08:00:00|2026-03-04T08:20:00|4|n[1-4]\n"
)
SRUN = "srun: error: n3: task 2: Exited with exit code 1\n"


def host(folder: Path, name: str, head: str, record: str = SACCT) -> str | None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(head + "RuntimeError: boom\n")
    (folder / "slurm-44.out").write_text(SRUN)
    if record:
        (folder / "sacct.psv").write_text(record)
    return host_of_log(collect(Request((str(folder),))), name)


@pytest.mark.parametrize(
    ("name", "head", "told"),
    [
        ("44/node_n3.log", "", "n3"),
        ("44/n3/launch.log", "", "n3"),
        ("44/launch.log", "+ NNODES=4 NODE_RANK=2\n", "n3"),
        ("44/launch.log", "+ torchrun --nnodes=4 --node_rank=2 train.py\n", "n3"),
        ("44/launch.log", "+ NODE_RANK=1\n", None),  # srun says nothing of that task
        ("44/launch.log", "hostname: n4\n+ NODE_RANK=2\n", None),
        ("44/launch.log", "NODE_RANK=2\nNODE_RANK=3\n", None),
        ("44/n3-n4.log", "", None),
        ("44/launch.log", "+ torchrun --node-rank=1 --master_addr=n1 train.py\n", "n2"),
        ("44/launch.log", "MASTER_ADDR=n1 NODE_RANK=3\n", "n4"),
        ("44/launch.log", "+ torchrun --node-rank=1 --master_addr=n3 train.py\n", None),
        ("44/launch.log", "MASTER_ADDR=n1 NODE_RANK=4\n", None),
        ("44/launch.log", "[launcher] launching on n4\n", "n4"),
    ],
)
def test_by_its_name_or_what_it_says(
    tmp_path: Path, name: str, head: str, told: str | None
) -> None:
    """The order of the nodes alone proves nothing: launchers number them by files of hosts. Where
    the first of them is the master, it is Slurm's."""
    assert host(tmp_path, name, head) == told


def measured(folder: Path, hosts: tuple[str, str], logs: tuple[str, str]) -> set[str]:
    """The hosts with a log, of those of which no more is known than that they were measured."""
    ms = 1_772_000_000_000
    rows = (f'node_procs_running{{instance="{name}:9100"}} 1 {ms}\n' for name in hosts)
    (folder / "metrics.prom").write_text("".join(rows))
    for name in logs:
        (folder / name).write_text("RuntimeError: boom\n")
    return hosts_with_logs(collect(Request((str(folder),))))


def test_by_measured_hosts_where_no_record_names_them(tmp_path: Path) -> None:
    """As many logs as hosts."""
    hosts = "gpu-b01", "gpu-b02"

    assert measured(tmp_path, hosts, ("node0_gpu-b01.log", "node1_gpu-b02.log")) == {*hosts}


def test_the_first_number_of_an_address_names_no_log(tmp_path: Path) -> None:
    """It may be that of a rank; the whole address does."""
    hosts = "10.0.0.1", "10.0.0.2"

    assert measured(tmp_path, hosts, ("rank_10.log", "launch_10.0.0.2.log")) == {"10.0.0.2"}


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("host n3: python train.py --dist-url tcp://n1:29517\n", "n3"),
        ("host n3: env://n1 file:///n2/rdzv\n", "n3"),
        ("host n3\nTCP client failed to connect/validate to host n1:29500\n", "n3"),
        ("host n3\nThe client socket has failed to connect to [n1]:29517\n", "n3"),
        ("host n3\nconnecting to host n1\n", "n3"),
        ("python train.py --dist-url tcp://n1:29517\n", None),
        ("connect/validate to host n1\n", None),
        ("running on tcp://n3:29517\n", None),
        ("host n3: ready\nhost n1: ready\n", None),
    ],
)
def test_addresses_name_whom_it_connects_to(tmp_path: Path, head: str, told: str | None) -> None:
    """A line may name both."""
    assert host(tmp_path, "launch.log", head) == told


def on_pods(folder: Path, log: str, labels: str) -> str | None:
    """The host of a log, where the GPUs of two hosts bear these labels."""
    (folder / "metrics.prom").write_text("\n".join(
        f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",Hostname="{node}",{labels.format(pod=pod)}}} 90 {at}'
        for node, pod in (("n7", "lm-worker-1"), ("n8", "lm-worker-10"))
        for at in range(1772611200000, 1772611500000, 30_000)
    ) + "\n")  # fmt: skip
    (folder / log).write_text("2026-03-04T08:01:00Z starting\nRuntimeError: boom\n")
    return host_of_log(collect(Request((str(folder),))), log)


@pytest.mark.parametrize(
    ("log", "labels", "told"),
    [
        ("lm-worker-1.log", 'pod="{pod}"', "n7"),
        ("lm-worker-10.log", 'pod="{pod}"', "n8"),
        ("ml_lm-worker-1_pytorch.log", 'exported_pod="{pod}",pod="dcgm-exporter-x2"', "n7"),
        ("lm-worker-2.log", 'pod="{pod}"', None),
        ("dcgm-exporter-x2.log", 'exported_pod="{pod}",pod="dcgm-exporter-x2"', None),
    ],
)
def test_a_pod_whose_gpus_were_read(
    tmp_path: Path, log: str, labels: str, told: str | None
) -> None:  # fmt: skip
    """The exporter's own pod, the same on both hosts, names none."""
    assert on_pods(tmp_path, log, labels) == told
