"""F1 from where the readings of the lost host ended, ahead of the record that tells of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 1, 8, 4, 0, tzinfo=UTC)
STEPS, EACH_S = 1800, 2
HUNG = BEGAN + timedelta(seconds=STEPS * EACH_S)
TIMED_OUT, DOWN = HUNG + timedelta(seconds=200), HUNG + timedelta(seconds=270)
HOSTS = ("n1", "n2", "n3")


def lost(folder: Path, last_read: dict[str, datetime], down: datetime = DOWN) -> Verdict:
    """A watchdog fires 200 s after the last step, the node is given up 70 s later."""
    lines = [f"{BEGAN + timedelta(seconds=EACH_S * n):%Y-%m-%d %H:%M:%S} step {n}/9000 loss"
             f" {3 - n / 2000:.4f}" for n in range(10, STEPS + 1, 10)]  # fmt: skip
    lines += [
        f"[rank0]:[E{TIMED_OUT:%m%d %H:%M:%S}.881230455 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG"
        " GUID 0(default_pg) Rank 0] Observed flight recorder dump signal from another rank via"
        " TCPStore.",
        "srun: error: Node failure on n3",
    ]
    (folder / "job.log").write_text("\n".join(lines) + "\n")
    (folder / "sacct.txt").write_text(
        "JobID|State|ExitCode|Start|End|NNodes|NodeList\n"
        f"9|NODE_FAIL|0:0|{BEGAN:%Y-%m-%dT%H:%M:%S}|{down:%Y-%m-%dT%H:%M:%S}|3|n[1-3]\n"
    )
    (folder / "scontrol.txt").write_text(
        "NodeName=n3 State=DOWN+NOT_RESPONDING\n"
        f"   Reason=Not responding [slurm@{down:%Y-%m-%dT%H:%M:%S}]\n"
    )
    rows = []
    for host in HOSTS:
        at = BEGAN
        while at <= last_read.get(host, DOWN + timedelta(seconds=120)):
            label = f'Hostname="{host}",gpu="0",modelName="H100"'
            ms = int(at.timestamp() * 1000)
            rows.append(f"DCGM_FI_DEV_POWER_USAGE{{{label}}} 500 {ms}\n")
            at += timedelta(seconds=30)
    (folder / "metrics.prom").write_text("".join(rows))
    return diagnose(collect(Request((str(folder),))))


def test_a_host_that_was_read_no_more_as_the_others_began_to_wait(tmp_path: Path) -> None:
    """The record comes once it has not answered for minutes; the hang is its consequence."""
    verdict = lost(tmp_path, {"n3": HUNG})

    assert (verdict.code, [place.host for place in verdict.culprits]) == ("F1", ["n3"])
    assert verdict.onset is not None
    assert abs(verdict.onset - HUNG) <= timedelta(seconds=120)


@pytest.mark.parametrize(
    "last_read",
    [{}, dict.fromkeys(HOSTS, HUNG), {"n1": HUNG}],
    ids=["read until its end", "nobody is read", "another one"],
)
def test_where_readings_tell_nothing_of_the_host(
    tmp_path: Path, last_read: dict[str, datetime]
) -> None:
    """The record alone dates its loss."""
    verdict = lost(tmp_path, last_read)
    told = {judged.finding.code: judged.finding for judged in verdict.findings}

    assert told["F1"].onset == DOWN


@pytest.mark.parametrize("silent_s", [40, 70, 100])
def test_a_host_that_was_given_up_soon_after_it_was_read_last(
    tmp_path: Path, silent_s: int
) -> None:
    """As Kubernetes does within a minute: the hang is still its consequence."""
    down = HUNG + timedelta(seconds=silent_s)

    verdict = lost(tmp_path, {"n3": HUNG}, down)

    assert (verdict.code, [place.host for place in verdict.culprits]) == ("F1", ["n3"])
    assert verdict.onset is not None
    assert HUNG <= verdict.onset <= down - timedelta(seconds=30)
