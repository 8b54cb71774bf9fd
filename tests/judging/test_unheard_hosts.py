"""A wait that singles nobody out, where whole hosts were not heard or a monitor alone spoke."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

STEPS = "".join(
    f"2026-03-02 09:0{n // 6}:{n % 6}0,000 step {n * 10}/5000 loss {8 - n * 0.01:.3f}\n"
    for n in range(24)
)
TIMED_OUT = (
    "[rank{0}]:[E302 09:14:02.470417210 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught"
    " collective operation timeout: WorkNCCL(SeqNum=841, OpType=ALLREDUCE, NumelIn=8388608,"
    " NumelOut=8388608, Timeout(ms)=600000) ran for 600003 milliseconds before timing out.\n"
)
MONITOR = (
    "[rank{0}]:[E302 09:14:02.470417210 ProcessGroupNCCL.cpp:1432] [PG ID 0 PG GUID 0 Rank {0}]"
    " Heartbeat monitor timed out! Process will be terminated after dumping debug info."
    " workMetaList_.size()=1\n"
)


def confident(folder: Path, logs: Sequence[Sequence[int]], line: str = TIMED_OUT) -> bool:
    """Whether C2 is told surely of logs in which these ranks report."""
    for n, ranks in enumerate(logs):
        head = STEPS if n == 0 else ""
        (folder / f"sft-{n}.log").write_text(head + "".join(map(line.format, ranks)))
    verdict = diagnose(collect(Request((str(folder),))))
    assert (verdict.code, verdict.culprits) == ("C2", ())
    return verdict.confidence >= 0.8


@pytest.mark.parametrize(
    ("logs", "sure"),
    [
        ([range(8), range(16, 24)], False),
        ([range(8), range(8, 16), range(16, 24)], True),
        ([[0], [8], [24]], False),
        ([[0], [8], [16]], True),
        ([range(8)], True),
        ([(), range(16, 24)], False),
        ([(), range(3, 6)], True),
    ],
    ids=[
        "a host unheard",
        "all heard",
        "one rank each, a host unheard",
        "one rank each",
        "one",
        "the last alone",
        "some of one log",
    ],
)
def test_hosts_that_nothing_is_heard_of(
    tmp_path: Path, logs: Sequence[Sequence[int]], sure: bool
) -> None:
    """Their end may be the cause, and no line tells of it."""
    assert confident(tmp_path, logs) is sure


@pytest.mark.parametrize(("ranks", "sure"), [([0], False), (range(8), True)])
def test_a_monitor_alone(tmp_path: Path, ranks: Sequence[int], sure: bool) -> None:
    """Of one process it may be a thread that holds the GIL; not of all at once."""
    assert confident(tmp_path, [ranks], MONITOR) is sure
