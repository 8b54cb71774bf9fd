"""One program in two logs, over a fabric and over sockets."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

NCCL = (
    "n1:71:90 [0] NCCL INFO Using network {net}\n"
    "n1:71:90 [0] NCCL INFO ncclCommInitRank comm 0x55d0 rank 0 nranks {ranks} cudaDev 0"
    " busId 53000 commId 0xd9 - Init START\n"
)
ACROSS = "n1:71:90 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/{net}/0\n"
FABRIC = "AWS Libfabric"


def log(
    net: str,
    took_ms: float,
    ranks: int = 32,
    loss: float = 9.0,
    plan: int = 900,
    more: str = ACROSS,
) -> str:
    return (NCCL + more).format(net=net, ranks=ranks) + "".join(
        f"step {n}/{plan} loss {loss - n / 20:.4f} step_time {took_ms / 1000 + n % 3 / 1000}s\n"
        for n in range(1, 40)
    )


def judged(folder: Path, own: str, other: str) -> Verdict:
    (folder / "earlier").mkdir()
    (folder / "train.log").write_text(own)
    (folder / "earlier" / "train.log").write_text(other)
    return diagnose(collect(Request((str(folder),))))


def test_sockets_where_another_log_names_a_fabric(tmp_path: Path) -> None:
    """Below 0.8, as two logs may be of two programs."""
    verdict = judged(tmp_path, log("Socket", 6900), log(FABRIC, 2600))

    assert (verdict.code, verdict.fault_class) == ("D2", "slow-interconnect")
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    "other",
    [
        log(FABRIC, 6500),
        log("Socket", 2600),
        log(FABRIC, 2600, ranks=64),
        log(FABRIC, 2600, plan=500),
        log(FABRIC, 2600, loss=5.0),
    ],
    ids=["no slower", "sockets as well", "other ranks", "another plan", "other losses"],
)
def test_what_is_another_work_or_costs_nothing(tmp_path: Path, other: str) -> None:
    assert judged(tmp_path, log("Socket", 6900), other).code != "D2"


def test_a_single_host(tmp_path: Path) -> None:
    """NCCL names a network there as well, which carries nothing."""
    logs = (log(net, took, more="") for net, took in (("Socket", 6900), (FABRIC, 2600)))
    assert judged(tmp_path, *logs).code != "D2"


def test_the_earlier_one_by_sockets(tmp_path: Path) -> None:
    """The run itself has its fabric."""
    assert judged(tmp_path, log(FABRIC, 2600), log("Socket", 6900)).code != "D2"
