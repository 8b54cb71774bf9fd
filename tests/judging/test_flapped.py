"""A port that erred in a log that ends without any word of a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

STEPS = "".join(
    f"2026-03-02 09:0{n // 6}:{n % 6}0,000 step {n * 10}/5000 loss {8 - n * 0.01:.3f}\n"
    for n in range(24)
)
PORT = (
    "node03:522:700 [2] NCCL INFO NET/IB : Got async event : port error\n"
    "node03:522:700 [2] misc/ibvwrap.cc:93 NCCL WARN NET/IB : mlx5_1:1 Got async event : port"
    " error\n"
)
GAVE_UP = (
    "node03:522:622 [2] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer"
    " 10.4.1.33<47083> with error 12, opcode 32552, len 32549, vendor err 129 (Send)\n"
)
RECORD = (
    "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
    "88|sft|FAILED|1:0|2026-03-02T09:00:00|2026-03-02T09:05:00|node03\n"
)


@pytest.mark.parametrize(
    ("log", "record", "sure"),
    [
        (STEPS + PORT, "", False),
        (STEPS + PORT, RECORD, True),
        (STEPS + PORT + GAVE_UP, "", True),
    ],
    ids=["no end", "failed", "given up"],
)
def test_a_flap_may_be_survived(tmp_path: Path, log: str, record: str, sure: bool) -> None:
    (tmp_path / "train.log").write_text(log)
    if record:
        (tmp_path / "sacct.txt").write_text(record)

    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.confidence >= 0.8) == ("C5", sure)
