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


def frozen_in_a_save(folder: Path, said_s: int) -> str | None:
    """Two hosts: the rank that saves sleeps, the others spin in their collective; after so many
    seconds its kernel says that the server is silent."""
    lines = []
    for step in range(STOPS_S // 10):
        at = START + timedelta(seconds=10 * step)
        lines.append(f"{at:%Y-%m-%d %H:%M:%S},000 INFO step {step}/900 loss {2 + 9 / (step + 4)}")
    lines.append(f"{at:%Y-%m-%d %H:%M:%S},900 INFO Saving checkpoint to /nfs/out/step_180")
    (folder / "slurm-18.out").write_text("\n".join(lines) + "\n")
    told = START + timedelta(seconds=STOPS_S + said_s)
    (folder / "kern-n0.log").write_text(
        f"{told:%b %d %H:%M:%S} n0 kernel: nfs: server nas7 not responding, still trying\n"
    )
    (folder / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|Elapsed|NodeList|AllocTRES\n"
        f"18|t|RUNNING|0:0|{START:%Y-%m-%dT%H:%M:%S}|Unknown|01:00:00|n[0-1]|gres/gpu=8,node=2\n"
    )
    rows = []
    for second in range(0, ENDS_S, 30):
        for host in range(2):
            for gpu in range(4):
                saves, works = (host, gpu) == (0, 0), second <= STOPS_S
                labels = f'{{Hostname="n{host}",gpu="{gpu}",modelName="NVIDIA H100"}}'
                ms = int((START.timestamp() + second) * 1000)
                watts = 540 if works else 118 if saves else 172
                busy = 98 if works else 0 if saves else 100
                rows += [f"DCGM_FI_DEV_POWER_USAGE{labels} {watts + gpu} {ms}",
                         f"DCGM_FI_DEV_GPU_UTIL{labels} {busy} {ms}",
                         f"DCGM_FI_DEV_FB_USED{labels} 60000 {ms}"]  # fmt: skip
    (folder / "metrics.prom").write_text("\n".join(sorted(rows)) + "\n")
    return diagnose(collect(Request((str(folder),)))).code


@pytest.mark.parametrize(("said_s", "code"), [(75, "C6"), (900, "C2")])
def test_a_kernel_tells_of_a_silent_server_late(tmp_path: Path, said_s: int, code: str) -> None:
    """After its tries: what froze before it said so was frozen by it; not what froze long ago."""
    assert frozen_in_a_save(tmp_path, said_s) == code
