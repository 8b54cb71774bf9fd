"""C4 where torchelastic's rendezvous counted a node out whose workers were at work."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

T0 = datetime(2026, 3, 3, 20, 0, tzinfo=UTC)
END = 1200
"""Seconds after which it is counted out."""


def judged(folder: Path, stopped: float = END + 10) -> Verdict:
    """Only the first node prints steps; the GPUs of the second draw up to a moment."""
    said = T0 + timedelta(seconds=END)
    log = [f"{T0 + timedelta(seconds=s):%Y-%m-%d %H:%M:%S} step {s // 5} loss {4 - s / 2000:.4f}"
           for s in range(5, END, 5)]  # fmt: skip
    log += [
        f"W{said:%m%d %H:%M:%S}.410021 912 torch/distributed/elastic/agent/server/api.py:960]"
        " Keep-alive of node k2_4411_0 expired (last seen 16.4 s ago), removing it",
        "RuntimeError: node k2_4411_0 declared dead by rendezvous",
    ]
    (folder / "train.k1.log").write_text("\n".join(log) + "\n")
    (folder / "sacct.txt").write_text(
        "JobID|State|ExitCode|Start|End|NNodes|NodeList\n"
        f"5|FAILED|1:0|{T0:%FT%T}|{said + timedelta(seconds=15):%FT%T}|3|k[1-3]\n"
    )
    (folder / "train.k2.log").write_text(f"{T0:%Y-%m-%d %H:%M:%S} agent of k2 started\n")
    rows = [
        f'DCGM_FI_DEV_POWER_USAGE{{Hostname="{host}",gpu="{gpu}"}}'
        f" {400 if s < (stopped if host == 'k2' else END + 10) else 60}"
        f" {(T0 + timedelta(seconds=s)).timestamp():.0f}"
        for host in ("k1", "k2", "k3")
        for gpu in range(2)
        for s in range(0, END + 300, 15)
    ]
    metrics = "\n".join(["# TYPE DCGM_FI_DEV_POWER_USAGE gauge", *rows, "# EOF"])
    (folder / "metrics.om").write_text(metrics + "\n")
    return diagnose(collect(Request((str(folder),))))


def test_its_gpus_worked_to_the_end(tmp_path: Path) -> None:
    """The error that tells of it is no fault of the program's."""
    verdict = judged(tmp_path)

    assert (verdict.code, verdict.confidence < 0.8) == ("C4", True)
    assert [place.host for place in verdict.cleared] == ["k2"]


@pytest.mark.parametrize("stopped", [END - 30, END - 300])
def test_who_had_stopped_is_not_cleared(tmp_path: Path, stopped: float) -> None:
    verdict = judged(tmp_path, stopped)

    assert verdict.code not in ("C4", "A3")
