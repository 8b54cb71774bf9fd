"""D1 where loaders that have more to do fill the run queue of every host (D5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 3, 1, 10, tzinfo=UTC)
SLOW_FROM = 400


def judged(folder: Path, *, waits: bool, spare: bool) -> Verdict:
    """Three hosts, of which steps take twice as long from step 400 on: for their data, or for the
    rest of the step, and perhaps a host that nobody uses; no record names them."""
    at, lines, busy = BEGAN, [], []
    for n in range(1, 801):
        lost = 2.0 if n >= SLOW_FROM else 0.0
        data = 0.03 + (lost if waits else 0.0)
        took = 1.9 + lost + 0.01 * (n % 3)
        at += timedelta(seconds=took)
        busy.append((at, n >= SLOW_FROM))
        if n % 5 == 0:
            lines.append(
                f"[{at:%Y-%m-%d %H:%M:%S}] epoch 0 it {n}/900 loss {5 - n / 400:.4f}"
                f" time {took:.3f} ({took:.3f}) data {data:.3f}\n"
            )
    (folder / "train.log").write_text("".join(lines))
    rows = []
    second, last = BEGAN - timedelta(seconds=120), at
    while second < last + timedelta(seconds=120):
        slow = next((s for when, s in busy if when >= second), None)
        ms = int(second.timestamp() * 1000)
        works = BEGAN <= second <= last
        for host in ("n1", "n2", "n3", *(("n9",) if spare else ())):
            own = works and host != "n9"
            queue = (45 if slow else 15) if own else 1
            rows.append(f'node_procs_running{{instance="{host}:9100"}} {queue} {ms}\n')
            used = (45 if slow and waits else 97) if own else 0
            rows += (
                f'DCGM_FI_DEV_GPU_UTIL{{Hostname="{host}",gpu="{gpu}"}} {used} {ms}\n'
                for gpu in range(2)
            )
        second += timedelta(seconds=20)
    (folder / "metrics.prom").write_text("".join(sorted(rows, key=lambda row: row.split("{")[0])))
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("spare", [False, True])
def test_what_the_steps_lost_is_what_they_wait_more(tmp_path: Path, spare: bool) -> None:
    """The queue is the loaders' own, as far as can be told: a warning. A host that nobody used is
    none of those whose GPUs idled more."""
    verdict = judged(tmp_path, waits=True, spare=spare)

    assert verdict.code == "D1"
    assert [found.finding.code for found in verdict.findings if found.role == "warning"] == ["D5"]


def test_steps_that_lost_it_elsewhere(tmp_path: Path) -> None:
    """Then the queue is what is known of it."""
    assert judged(tmp_path, waits=False, spare=False).code == "D5"
