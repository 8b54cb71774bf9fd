"""C4: whose steps went on while nvidia-resiliency-ext's monitor heard nothing of the rank."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 2, 3, 8, 0, tzinfo=UTC)
OF_A_SERVER = "[RankMonServer4410@n7:2] "
HEARTBEAT = "Did not get subsequent heartbeat. Waited 480.00 seconds."
SECTION = "Section 'step' has been open for 480.31 seconds. Timeout is 480.00 seconds."


def ended(
    folder: Path,
    said: str = HEARTBEAT,
    *,
    name: str = OF_A_SERVER,
    behind: str = "FT timeout elapsed.",
    until: int = 3000,
    own: bool = True,
    late: bool = False,
    oom: bool = False,
) -> Verdict:
    """Four ranks, of which the second's monitor ends it after 3,000 s."""
    lines = [f"{BEGAN:%Y-%m-%d %H:%M:%S} rank {rank}/4 started" for rank in range(4)]
    for n, second in enumerate(range(0, until, 20), 1):
        at = BEGAN + timedelta(seconds=second)
        lines += [f"{at:%Y-%m-%d %H:%M:%S} INFO [rank {rank}] step {n}/900 loss {9 / n:.4f}"
                  for rank in range(4) if own or rank != 2]  # fmt: skip
    at = BEGAN + timedelta(seconds=3000)
    if oom:
        lines += [f"{at:%Y-%m-%dT%H:%M:%S}+00:00 n7 kernel: Out of memory: Killed process 4242"
                  " (python) total-vm:91283748kB, anon-rss:81283748kB"]  # fmt: skip
    lines += [f"[{at:%Y-%m-%d %H:%M:%S},120] [WARNING] {name}{text}" for text in (said, behind)]
    end = at + timedelta(seconds=900 if late else 4)
    lines += [
        f"E{end:%m%d %H:%M:%S}.412582 1 torch/distributed/elastic/multiprocessing/api.py:869]"
        " failed (exitcode: -9) local_rank: 2 (pid: 4242) of binary: /usr/bin/python",
        "Root Cause (first observed failure):",
        "[0]:",
        f"  time      : {end:%Y-%m-%d_%H:%M:%S}",
        "  host      : n7",
        "  rank      : 2 (local_rank: 2)",
        "  exitcode  : -9 (pid: 4242)",
        "  error_file: <N/A>",
        "  traceback : Signal 9 (SIGKILL) received by PID 4242",
    ]
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"said": SECTION},
        {"name": "[RankMonitorServer:2] "},
        {"name": "[monitor.py] ", "behind": "Rank 2 is considered dead. Sending SIGKILL"},
    ],
    ids=["heartbeat", "section", "an older name", "named behind it"],
)
def test_who_made_steps_all_through(tmp_path: Path, told: dict[str, str]) -> None:
    verdict = ended(tmp_path, **told)  # type: ignore[arg-type]

    assert (verdict.code, verdict.culprits) == ("C4", ())
    assert verdict.confidence >= 0.8
    assert any("all through the 480 s" in one.text for one in verdict.shows)


@pytest.mark.parametrize(
    "told",
    [{"until": 2500}, {"until": 2800}, {"own": False}],
    ids=["stopped before", "stopped within", "no steps of its own"],
)
def test_who_may_have_hung_was_not_killed_by_an_unknown(
    tmp_path: Path, told: dict[str, int]
) -> None:
    assert ended(tmp_path, **told).code not in ("C4", "A2")  # type: ignore[arg-type]


def test_whom_the_kernel_killed(tmp_path: Path) -> None:
    assert ended(tmp_path, oom=True).code == "A2"


def test_who_was_killed_long_after(tmp_path: Path) -> None:
    assert ended(tmp_path, until=2500, late=True).code != "C4"
