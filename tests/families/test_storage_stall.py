"""Whose fault a silent file server is: the witness's whose kernel says so, or the server's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

START = datetime(2026, 2, 2, 18, tzinfo=UTC)
STOPS_S, ENDS_S = 1800, 3600


@pytest.mark.parametrize(
    ("asleep", "culprits"), [((0, 1, 2, 3), ()), ((2,), ("n2",)), ((1, 2), ("n2",))]
)
def test_a_witness_is_not_to_blame_where_all_wait(
    tmp_path: Path, asleep: tuple[int, ...], culprits: tuple[str, ...]
) -> None:
    """One kernel log was kept; the tasks of the other hosts tell whether they waited as well."""
    lines = []
    for step in range(STOPS_S // 10):
        at = START + timedelta(seconds=10 * step)
        lines.append(f"{at:%Y-%m-%d %H:%M:%S},000 INFO step {step}/900 loss {2 + 9 / (step + 4)}")
    (tmp_path / "slurm-18.out").write_text("\n".join(lines) + "\n")
    silent = START + timedelta(seconds=STOPS_S + 20)
    (tmp_path / "kern-n2.log").write_text(
        f"{silent:%b %d %H:%M:%S} n2 kernel: nfs: server nas7 not responding, still trying\n"
    )
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
        f"18|t|CANCELLED by 1000|0:15|{START:%Y-%m-%dT%H:%M:%S}|"
        f"{START + timedelta(seconds=ENDS_S):%Y-%m-%dT%H:%M:%S}|n[0-3]\n"
    )
    waits = [
        f'node_procs_blocked{{instance="n{host}:9100"}}'
        f" {9 if host in asleep and second > STOPS_S else 0}"
        f" {int((START.timestamp() + second) * 1000)}"
        for host in range(4)
        for second in range(0, ENDS_S, 30)
    ]
    (tmp_path / "metrics.prom").write_text("\n".join(waits) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))
    assert (verdict.code, tuple(c.host for c in verdict.culprits)) == ("C6", culprits)
    if not culprits:
        assert (verdict.scope, verdict.domain) == ("shared", "nas7")
