"""Metrics that were taken with the log, long before the run was cancelled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

START = datetime(2026, 3, 4, 8, 0, tzinfo=UTC)
LAST_S, ENDS_S = 1800, 3600
HOSTS = ("n1", "n2")


def at(seconds: float) -> str:
    return f"{START + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}"


def verdict(
    folder: Path, read_s: float | None, ends_s: float = ENDS_S, *, hosts: tuple[str, ...] = HOSTS
) -> Verdict:
    """Of a run whose log stops half an hour before its cancel, and whose metrics are read until a
    moment: power, at work until the last step and low from then on."""
    steps = (
        f"{at(10 * n)} [rank0] step {n}/900 loss {3 - n / 500:.4f}\n"
        for n in range(1, LAST_S // 10 + 1)
    )
    (folder / "train.log").write_text("".join(steps))
    (folder / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|Timelimit|NNodes|NodeList\n"
        f"9|train|CANCELLED by 1000|0:0|{at(0)}|{at(ends_s)}|08:00:00|2|n[1-2]\n"
    )
    if read_s is not None:
        rows = [
            f'DCGM_FI_DEV_POWER_USAGE{{Hostname="{host}",gpu="0",UUID="GPU-{host}"}}'
            f" {640 if second <= LAST_S else 230} {int((START.timestamp() + second) * 1000)}"
            for host in hosts
            for second in range(0, int(read_s) + 1, 15)
        ]
        (folder / "metrics.prom").write_text("\n".join(rows) + "\n")
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("behind_s", [15, 60, 110])
def test_metrics_that_end_with_the_log(tmp_path: Path, behind_s: int) -> None:
    """All was taken then: nothing tells what the run did until its cancel."""
    found = verdict(tmp_path, LAST_S + behind_s)

    assert (found.code, found.confidence) == (None, 0.0)
    assert "nothing decisive" in found.headline


@pytest.mark.parametrize(
    ("read_s", "ends_s"),
    [(ENDS_S, ENDS_S), (LAST_S + 300, ENDS_S), (LAST_S - 600, ENDS_S), (None, ENDS_S),
     (LAST_S + 60, LAST_S + 400)],
    ids=["they go on to the end", "and for a while", "they end long before the log", "none",
         "the end is near"],
)  # fmt: skip
def test_near_misses(tmp_path: Path, read_s: float | None, ends_s: float) -> None:
    """They were not taken with the log, which stands still."""
    assert verdict(tmp_path, read_s, ends_s).code == "C2"


def test_one_host_of_two_that_is_read_on(tmp_path: Path) -> None:
    """It shows that the log was not all that was taken then."""
    verdict(tmp_path, LAST_S + 60)
    rows = (tmp_path / "metrics.prom").read_text()
    found = verdict(tmp_path, ENDS_S, hosts=HOSTS[:1])
    assert found.code == "C2"
    (tmp_path / "metrics.prom").write_text(
        "".join(row for row in rows.splitlines(keepends=True) if '"n2"' in row)
        + (tmp_path / "metrics.prom").read_text()
    )

    assert diagnose(collect(Request((str(tmp_path),)))).code == "C2"
