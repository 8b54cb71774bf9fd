"""Connections that break as a run is ended, and before."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

STEPS = "".join(
    f"2026-03-04 08:{n // 15:02d}:{4 * (n % 15):02d} step {n}/900 loss {3 * 0.9985**n:.4f}\n"
    for n in range(1, 300)
)
LOST = (
    "2026-03-04 08:20:0{rank} [rank{rank}]: RuntimeError: [gloo/transport/tcp/pair.cc:598]"
    " Connection closed by peer [10.0.0.{peer}]:4321\n"
)


@pytest.mark.parametrize(
    ("state", "ended", "code"),
    [
        ("CANCELLED by 1001", "08:20:06", None),
        ("PREEMPTED", "08:20:06", "F2"),
        ("TIMEOUT", "08:20:06", "F3"),
        ("FAILED", "08:20:06", "C5"),
        ("CANCELLED by 1001", "08:50:00", "C5"),
    ],
)
def test_every_rank_lost_a_peer(tmp_path: Path, state: str, ended: str, code: str | None) -> None:
    """Ranks that are ended go one after another: only what broke before that is the network's."""
    for rank in range(2):
        log = f"[rank{rank}]: world_size=2\n{STEPS}" + LOST.format(rank=rank, peer=2 - rank)
        (tmp_path / f"gpu-00{rank + 1}.rank{rank}.log").write_text(log)
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
        f"42|train|{state}|0:15|2026-03-04T08:00:00|2026-03-04T{ended}|gpu-[001-002]\n"
    )

    assert diagnose(collect(Request((str(tmp_path),)))).code == code
