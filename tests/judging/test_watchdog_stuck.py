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


STEADY = tuple((n, 10 * n) for n in range(0, 60, 2))


def evaluating(
    folder: Path, bars: tuple[tuple[int, int], ...], behind: tuple[tuple[int, int], ...]
) -> Verdict:
    """One task that evaluates; where its bar stood before its monitor's words and behind them."""

    def drawn(passes: tuple[tuple[int, int], ...]) -> str:
        return "".join(f"\r {n // 2}%|##   | {n}/200 [{s // 60:02d}:{s % 60:02d}<09:40, 10.0s/it]"
                       for n, s in passes)  # fmt: skip

    head = "[PG ID 0 PG GUID 0(default_pg) Rank 0]"
    lines = [
        *(f"{{'loss': {9 / n:.4f}, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': {n / 10}}}"
          for n in range(1, 40)),
        "***** Running Evaluation *****",
        f"{drawn(bars)}[rank0]:[E0203 09:12:00.114 ProcessGroupNCCL.cpp:1484] {head}"
        " ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in"
        " monitoring enqueued collectives.",
        f"{drawn(behind)}[rank0]:[F0203 09:12:30.122 ProcessGroupNCCL.cpp:1305] {head} {head}"
        " Terminating the process after attempting to dump debug info, due to ProcessGroupNCCL"
        " watchdog hang.",
        "srun: error: n4: task 0: Aborted (core dumped)",
    ]  # fmt: skip
    (folder / "slurm-7.out").write_text("\n".join(lines) + "\n")
    return diagnose(collect(Request((str(folder),))))


def test_whose_bar_went_on_behind_its_monitor(tmp_path: Path) -> None:
    verdict = evaluating(tmp_path, STEADY, ((60, 600), (62, 620)))

    assert (verdict.code, verdict.culprits) == ("C4", ())


@pytest.mark.parametrize(
    ("bars", "behind"),
    [
        (STEADY, ()),
        (STEADY, ((59, 590),)),
        (STEADY[:10], ((20, 200), (22, 220))),
        ((*STEADY[:20], (40, 800)), ((42, 820), (44, 840))),
    ],
    ids=["no more", "one under way", "begun late", "stood before"],
)
def test_whose_bar_may_have_stood(
    tmp_path: Path, bars: tuple[tuple[int, int], ...], behind: tuple[tuple[int, int], ...]
) -> None:
    verdict = evaluating(tmp_path, bars, behind)

    assert verdict.code not in ("C4", "A2")
