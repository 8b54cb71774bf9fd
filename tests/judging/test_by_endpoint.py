"""Hosts that nothing names but their logs, one of which is named as the place where all meet."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

START = "+ torchrun --nnodes 3 --rdzv_backend c10d --rdzv_endpoint {}:29400 train.py\n"
UNKNOWN = (
    "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while"
    " trying to connect to (k7, 29400).\n"
)
WAITED = "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError\n"


@pytest.mark.parametrize(
    ("names", "meets", "hosts"),
    [
        (("k7.log", "k8.log", "k9.log"), "k7", ["k9"]),
        (("torchrun_k7.out", "torchrun_k8.out", "torchrun_k9.out"), "k7.example.org", ["k9"]),
        (("k7/out.log", "k8/out.log", "k9/out.log"), "k7", ["k9"]),
        (("node0.log", "node1.log", "node2.log"), "k7", []),
        (("k7.log", "k8.log", "k9.log"), "k70", []),
    ],
    ids=["names", "with words", "folders", "numbered", "another place"],
)
def test_who_alone_did_not_connect(
    tmp_path: Path, names: tuple[str, ...], meets: str, hosts: list[str]
) -> None:
    """The two others waited for it; what else lies beside is no log of a host."""
    for name, said in zip(names, (WAITED, WAITED, UNKNOWN), strict=True):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(START.format(meets) + said)
    (tmp_path / "mail.txt").write_text("it does not start\n")
    told = diagnose(collect(Request((str(tmp_path),))))

    assert told.code == "C1"
    assert [place.host for place in told.culprits] == hosts


def test_who_was_told_of_another_place(tmp_path: Path) -> None:
    """Logs that name several places are not of one launch."""
    for host, meets, said in (("k7", "k7", WAITED), ("k8", "k8", WAITED), ("k9", "k7", UNKNOWN)):
        (tmp_path / f"{host}.log").write_text(START.format(meets) + said)

    assert diagnose(collect(Request((str(tmp_path),)))).culprits == ()
