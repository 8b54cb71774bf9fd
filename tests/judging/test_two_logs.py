"""One program in two logs, on one host alone and on several by sockets."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

USES = "{host}:71:90 [0] NCCL INFO Using network {net}\n"


def log(hosts: str, took_ms: float, net: str = "Socket", loss: float = 9.0) -> str:
    said = "".join(USES.format(host=host, net=net) for host in hosts.split())
    return said + "".join(
        f"iter {n}: loss {loss - n / 20:.4f}, time {took_ms + n % 3:.2f}ms\n" for n in range(30)
    )


def judged(folder: Path, one: str, many: str) -> Verdict:
    (folder / "one.log").write_text(one)
    (folder / "many.log").write_text(many)
    return diagnose(collect(Request((str(folder),))))


def test_steps_that_take_many_times_as_long(tmp_path: Path) -> None:
    verdict = judged(tmp_path, log("n1", 300), log("n1 n2", 4800))

    assert (verdict.code, verdict.fault_class) == ("D2", "slow-interconnect")
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    ("one", "many"),
    [
        (log("n1", 300), log("n1 n2", 1000)),
        (log("n1", 300), log("n1 n2", 4800, net="IB")),
        (log("n1", 300, loss=4.0), log("n1 n2", 4800)),
        (log("n3", 300), log("n1 n2", 4800)),
        (log("n1", 300), log("n1", 4800)),
    ],
    ids=["not by so much", "by a fabric", "other work", "other hosts", "alone as well"],
)
def test_what_tells_no_network(tmp_path: Path, one: str, many: str) -> None:
    assert judged(tmp_path, one, many).code != "D2"


BLOCKING = "CUDA_LAUNCH_BLOCKING=1\n"
CALLED = "$ python train.py --compile={}\n"


@pytest.mark.parametrize("called", ["", CALLED.format(True)])
def test_a_setting_that_one_of_them_shows(tmp_path: Path, called: str) -> None:
    verdict = judged(tmp_path, called + log("", 300), BLOCKING + called + log("", 640, loss=9.2))

    assert (verdict.code, verdict.fault_class) == ("D2", "launch-blocking")
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    ("one", "many"),
    [
        (log("", 300), BLOCKING + log("", 360)),
        (BLOCKING + log("", 300), BLOCKING + log("", 640)),
        (BLOCKING + log("", 300), log("", 640)),
        (log("", 300, loss=4.0), BLOCKING + log("", 640)),
        (log("", 300), log("", 640) + BLOCKING),
        (CALLED.format(True) + log("", 300), BLOCKING + CALLED.format(False) + log("", 640)),
    ],
    ids=["hardly slower", "in both", "in the faster", "other work", "below", "another command"],
)
def test_a_setting_that_explains_nothing(tmp_path: Path, one: str, many: str) -> None:
    verdict = judged(tmp_path, one, many)
    assert not any(f.code == "D2" and f.role == "cause" for f in verdict.findings)


def test_the_setting_of_a_rank(tmp_path: Path) -> None:
    """Its log tells what only one of the ranks prints, and how slow that rank is."""
    for rank, text in enumerate((BLOCKING + log("", 640), log("", 300))):
        (tmp_path / f"rank{rank}.log").write_text(text)
    verdict = diagnose(collect(Request((str(tmp_path),))))
    assert not any(f.code == "D2" and f.role == "cause" for f in verdict.findings)
