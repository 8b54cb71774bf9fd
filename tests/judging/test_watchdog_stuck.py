"""C4: whose steps went on while PyTorch's heartbeat monitor heard nothing of its watchdog."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 2, 3, 8, 0, tzinfo=UTC)
TIMED_OUT = (
    "[rank{rank}]:[E203 {at:%H:%M:%S}.2 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught"
    " collective operation timeout: WorkNCCL(SeqNum=42, OpType=ALLREDUCE, NumelIn=256,"
    " NumelOut=256, Timeout(ms)=600000) ran for 600010 milliseconds before timing out."
)


def aborted(
    folder: Path, *, until: int = 3000, begins: int = 0, own: bool = True, hung: bool = False
) -> Verdict:
    """Four ranks; the monitor of rank 2 ends it after 3,000 s, once it heard nothing for 480 s."""
    lines = [f"{BEGAN:%Y-%m-%d %H:%M:%S} rank {rank}/4 started" for rank in range(4)]
    for n, second in enumerate(range(begins, until, 20), 1):
        at = BEGAN + timedelta(seconds=second)
        lines += [f"{at:%Y-%m-%d %H:%M:%S} INFO [rank {rank}] step {n}/900 loss {9 / n:.4f}"
                  for rank in range(4) if own or rank != 2]  # fmt: skip
    at = BEGAN + timedelta(seconds=3000)
    if hung:
        lines += [TIMED_OUT.format(rank=rank, at=at) for rank in (0, 1, 3)]
    tag = f"{at:%m%d %H:%M:%S}"
    lines += [
        f"[rank2]:[E{tag}.4 ProcessGroupNCCL.cpp:14] [PG ID 0 PG GUID 0(default_pg) Rank 2]"
        " Heartbeat monitor timed out! Process will be terminated after dumping debug info.",
        f"[rank2]:[F{tag}.9 ProcessGroupNCCL.cpp:18] [PG ID 0 PG GUID 0(default_pg) Rank 2]"
        " ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in"
        " monitoring enqueued collectives.",
    ]
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    return diagnose(collect(Request((str(folder),))))


def test_who_made_steps_all_through(tmp_path: Path) -> None:
    verdict = aborted(tmp_path)

    assert (verdict.code, verdict.culprits) == ("C4", ())
    assert verdict.confidence >= 0.8
    assert any("all through the 480 s" in one.text for one in verdict.shows)


@pytest.mark.parametrize(
    "told",
    [{"until": 2500}, {"until": 2800}, {"begins": 2900}, {"own": False}, {"hung": True}],
    ids=["stopped before", "stopped within", "began late", "no steps of its own", "timed out"],
)
def test_who_may_have_hung(tmp_path: Path, told: dict[str, int]) -> None:
    assert aborted(tmp_path, **told).code != "C4"  # type: ignore[arg-type]
