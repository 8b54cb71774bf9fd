"""C5 by a port that carries NCCL's sockets and loses its link as peers are lost, all undated."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

HOSTS = ("gn-a1", "gn-a2")
SAYS = "{host}:51{n}1:51{n}1 [0] NCCL INFO {said}\n"
LOST = (
    "{host}:51{n}1:53{n}4 [0] misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by"
    " remote peer {peer}.cluster<4411{n}>\n"
)
ENDED = (
    "[rank{rank}]:[E ProcessGroupNCCL.cpp:2014] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    " Process group watchdog thread terminated with exception: NCCL error: remote process exited"
    " or there was a network error, NCCL version 2.21.5\n"
)
FLAP = "kernel: {0}: Link is Down\nkernel: {0}: Link is Up\n"
STEPS = "".join(f"step {n} loss {4 - n / 60:.4f} step_time 2.1s\n" for n in range(1, 90))
RAISED = (
    'Traceback (most recent call last):\n  File "t.py", line 9, in <module>\n    main()\n'
    "  File \"t.py\", line 5, in main\n    x = table[key]\nKeyError: 'n'\n"
)


def judged(
    folder: Path, flap: str, *, uses: str = "eth1", network: str = "Socket", first: str = "",
    early: bool = False
) -> Verdict:  # fmt: skip
    for n, host in enumerate(HOSTS):
        said = (f"Bootstrap : Using {uses}:10.4.0.{n}<0>", f"Using network {network}")
        text = "".join(SAYS.format(host=host, n=n, said=one) for one in said)
        text += flap * n + STEPS if early else STEPS + first * (1 - n)
        text += LOST.format(host=host, n=n, peer=HOSTS[1 - n]) + ("" if early else flap * n)
        (folder / f"node{n}.log").write_text(text + ENDED.format(rank=8 * n))
    return diagnose(collect(Request((str(folder),))))


def test_the_port_that_carried_it(tmp_path: Path) -> None:
    verdict = judged(tmp_path, FLAP.format("eth1"))

    assert (verdict.code, verdict.confidence < 0.8) == ("C5", True)
    assert [place.host for place in verdict.culprits] == [HOSTS[1]]


@pytest.mark.parametrize(
    ("port", "given"),
    [("eth0", {}), ("eth1", {"network": "IB"}), ("eth1", {"early": True}),
     ("eth1", {"first": RAISED})],
    ids=["another port", "an adapter's traffic", "long before", "a rank that died of its own"],
)  # fmt: skip
def test_a_port_that_is_not_why(tmp_path: Path, port: str, given: dict[str, object]) -> None:
    verdict = judged(tmp_path, FLAP.format(port), **given)  # type: ignore[arg-type]

    assert verdict.code != "C5" or verdict.confidence < 0.5


GLOO = (
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection reset by peer"
    " [10.4.0.2]:40112\n"
)
DOWN = "Feb 03 05:10:{1:02d} {0} kernel: igb 0000:05:00.0 eno2: igb: eno2 NIC Link is Down\n"
UP = "Feb 03 05:10:40 {0} kernel: igb 0000:05:00.0 eno2: NIC Link is Up 1000 Mbps\n"


def over_gloo(folder: Path, behind: str, *, between: str = "") -> Verdict:
    (folder / "train.log").write_text(
        STEPS + RAISED.split("KeyError")[0] + GLOO + between + behind
    )
    return diagnose(collect(Request((str(folder),))))


def test_a_port_that_gloo_had(tmp_path: Path) -> None:
    """Gloo knows nothing but sockets, and names no port."""
    verdict = over_gloo(tmp_path, DOWN.format("gn-b7", 4))

    assert (verdict.code, verdict.confidence < 0.8) == ("C5", True)
    assert [place.host for place in verdict.culprits] == ["gn-b7"]


@pytest.mark.parametrize(
    ("behind", "between"),
    [
        (DOWN.format("gn-b7", 4) + UP.format("gn-b7"), ""),
        (DOWN.format("gn-b7", 4), "the other job's lines\n" * 20),
        (DOWN.format("gn-b7", 4) + DOWN.format("gn-b8", 6), ""),
    ],
    ids=["it came back", "far away", "ports of two hosts"],
)
def test_a_port_that_gloo_need_not_have_had(tmp_path: Path, behind: str, between: str) -> None:
    verdict = over_gloo(tmp_path, behind, between=between)
    places = [place.host for place in verdict.culprits]

    assert verdict.code not in ("A3", "A1")
    assert verdict.code != "C5" or not places or verdict.confidence < 0.79
