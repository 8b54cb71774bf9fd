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
