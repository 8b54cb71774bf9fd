"""D2 of a run that fell back to sockets, beside a baseline that did not."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

OFI = "Using network AWS Libfabric"
SOCKET = "Using network Socket"
SET = (
    "world_size: 32, seq_length: {}, global_batch_size: 512, micro_batch_size: 2,"
    " precision: bf16\n"
)


def run(folder: Path, network: str, took_s: float, length: int = 4096) -> str:
    """Two hosts, and steps that say how long each took."""
    folder.mkdir()
    said = [f"gx{n}:410{n}:4{n}7 [{n}] NCCL INFO {network}\n" for n in range(2)]
    steps = [f"step {n * 10}/30000 loss {3 - n / 90:.4f} step_time {took_s + n % 3 / 100:.3f}s\n"
             for n in range(1, 90)]  # fmt: skip
    (folder / "train.log").write_text("".join([*said, SET.format(length), *steps]))
    return str(folder)


def judged(
    folder: Path, network: str, before: str, took_s: float = 9.3, length: int = 4096
) -> Verdict:
    slow = run(folder / "slow", network, took_s, length)
    base = run(folder / "base", before, 5.0)
    return diagnose(collect(Request((slow,), baseline=base)))


def test_sockets_where_the_baseline_had_a_fabric(tmp_path: Path) -> None:
    verdict = judged(tmp_path, SOCKET, OFI)

    assert (verdict.code, verdict.confidence < 0.8) == ("D2", True)
    assert "AWS Libfabric" in str(verdict.shows)


@pytest.mark.parametrize(
    ("network", "before", "took_s", "length"),
    [
        (SOCKET, SOCKET, 9.3, 4096),
        (OFI, OFI, 9.3, 4096),
        (SOCKET, OFI, 5.2, 4096),
        (SOCKET, OFI, 9.3, 8192),
    ],
    ids=["sockets in both", "a fabric in both", "hardly slower", "other work"],
)
def test_near_misses(
    tmp_path: Path, network: str, before: str, took_s: float, length: int
) -> None:
    assert judged(tmp_path, network, before, took_s, length).code != "D2"
