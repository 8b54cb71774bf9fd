"""Ranks that say that the other end of the fabric does not answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

SILENT = (
    "{host}:{pid}:77{gpu} [{gpu}] nccl_net_ofi_rdma.c:7311 NCCL WARN NET/OFI Request 0x7ee{gpu}"
    " completed with error. RC: 103. Error: 4124 (Unresponsive receiver (connection previously"
    " established)). Completed length: 0, Request: {{ dev: {gpu}, size: 262144 }}\n"
)
ABORTED = (
    "[rank1]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank 1."
    " Original reason for failure was: NCCL error: remote process exited or there was a network"
    " error, NCCL version 2.21.5\n"
)
KILLED = "srun: error: {host}: task 4: Killed\n"


def verdict(folder: Path, hosts: list[str], *tellers: tuple[str, int], last: str = "") -> Verdict:
    text = "".join(
        f"{host}:{100 + 10 * n + gpu}:600 [{gpu}] NCCL INFO comm 0x5{n}{gpu} rank {2 * n + gpu}"
        f" nranks {2 * len(hosts)} cudaDev {gpu} busId {gpu}000 commId 0xab - Init COMPLETE\n"
        for n, host in enumerate(hosts)
        for gpu in (0, 1)
    )
    text += "".join(f"step {n}/4000 loss {6 * 0.999**n:.4f}\n" for n in range(1, 300))
    text += last
    text += "".join(SILENT.format(host=host, gpu=gpu, pid=100 + gpu) for host, gpu in tellers)
    (folder / "train.log").write_text(text + ABORTED)
    return diagnose(collect(Request((str(folder),))))


A0, A1, B0 = ("trn-a", 0), ("trn-a", 1), ("trn-b", 0)


@pytest.mark.parametrize(
    ("hosts", "tellers", "culprits"),
    [
        (["trn-a", "trn-b"], [A0, A1], ["trn-b"]),
        (["trn-a", "trn-b"], [A0, B0], []),
        (["trn-a", "trn-b"], [A0], []),
        (["trn-a", "trn-b", "trn-c"], [A0, A1], []),
    ],
    ids=["all on one of two hosts", "on both", "one alone", "one of three hosts"],
)
def test_who_does_not_answer(
    tmp_path: Path, hosts: list[str], tellers: list[tuple[str, int]], culprits: list[str]
) -> None:
    """Those that say so are at the other end; the abort that follows is no lost peer's."""
    told = verdict(tmp_path, hosts, *tellers)

    assert told.code == "C5"
    assert told.confidence < 0.8
    assert [place.host for place in told.culprits] == culprits


def test_a_process_that_was_killed_there(tmp_path: Path) -> None:
    told = verdict(tmp_path, ["trn-a", "trn-b"], A0, A1, last=KILLED.format(host="trn-b"))

    assert told.code == "A2"


def ended(folder: Path, named: dict[str, list[str]], kernel: str | None = None) -> Verdict:
    """A log for each host, that ends with what peers it does not hear from."""
    for n, (host, peers) in enumerate(named.items()):
        text = "".join(
            f"2026-02-11T17:{step // 3:02d}:{step % 3 * 20:02d}Z step {step}/4000"
            f" loss {6 * 0.999**step:.4f}\n" for step in range(100) if n == 0
        ) + "".join(
            f"2026-02-11T17:34:{20 + n:02d}.{gpu}Z {host}:118:801 [{gpu}]"
            f" nccl_net_ofi_cq_process:151 NCCL WARN NET/OFI Request 0x7f3a{gpu} completed with"
            " error. RC: 14. Error: Unresponsive remote. Completed length: 0, Request:"
            f" {{ dev: 1, size: 0, state: PENDING, direction: SEND }}, peer {peer}\n"
            f"2026-02-11T17:34:{20 + n:02d}.{gpu}Z {host}:118:801 [{gpu}]"
            " NCCL INFO transport/net.cc:1134 -> 2\n" for gpu, peer in enumerate(peers)
        )  # fmt: skip
        text += (
            f"2026-02-11T17:34:{23 + n}Z [rank{8 * n}]: torch.distributed.DistBackendError: NCCL"
        )
        text += (
            " error in: ProcessGroupNCCL.cpp:2251, remote process exited or there was a network"
        )
        (folder / f"{host}.log").write_text(text + " error, NCCL version 2.20.5\n")
    if kernel is not None:
        (folder / "kernel").mkdir()
        (folder / "kernel" / f"{kernel}.txt").write_text(
            "[Wed Feb 11 16:02:11 2026] systemd[1]: Reached target Network is Online.\n"
            "[Wed Feb 11 17:33:18 2026] efa 0000:20:1b.0: Keep alive watchdog timeout.\n"
            "[Wed Feb 11 17:33:21 2026] efa 0000:20:1b.0 rdmap32s27: port 1 state DOWN\n"
            "[Wed Feb 11 17:34:48 2026] efa 0000:20:1b.0 rdmap32s27: port 1 state ACTIVE\n"
        )
    return diagnose(collect(Request((str(folder),))))


OTHERS = {"gpu-01": ["10.9.0.4"], "gpu-02": ["10.9.0.4"], "gpu-03": ["10.9.0.4"]}
LOST = {**OTHERS, "gpu-04": ["10.9.0.1", "10.9.0.2"]}


@pytest.mark.parametrize(
    ("named", "culprits"),
    [
        (LOST, ["10.9.0.4"]),
        ({**LOST, "gpu-01": ["10.9.0.3"]}, []),
        ({**OTHERS, "gpu-04": ["10.9.0.1", "10.9.0.4"]}, []),
        ({**LOST, "gpu-03": ["10.9.0.1", "10.9.0.4"]}, []),
    ],
    ids=["the one that loses all", "another is named", "it names itself", "two lose several"],
)
def test_the_one_that_all_others_name(
    tmp_path: Path, named: dict[str, list[str]], culprits: list[str]
) -> None:
    """Words of the error stand without its number; a host that loses all of its peers is itself
    the one that they name."""
    told = ended(tmp_path, named)

    assert told.code == "C5"
    assert told.confidence < 0.8
    assert [place.host for place in told.culprits] == culprits


def test_whose_rdma_device_went_down(tmp_path: Path) -> None:
    """As the kernel of one host says, while its peers lost it."""
    told = ended(tmp_path, LOST, kernel="gpu-04")

    assert told.code == "C5"
    assert [place.host for place in told.culprits] == ["gpu-04"]
