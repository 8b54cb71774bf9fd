"""A GPU whose readings end when a wait began, in a log that dates no step."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from families.fleet import T0, sample
from flatline.collect import Request, collect
from flatline.diagnose import diagnose

WATTS, XID = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_XID_ERRORS"
TIMED_OUT = (
    "[rank{rank}]:[E{at:%m%d %H:%M:%S}.470417210 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog"
    " caught collective operation timeout: WorkNCCL(SeqNum=841, OpType=ALLREDUCE, NumelIn=8388608,"
    " NumelOut=8388608, Timeout(ms)=600000) ran for 600003 milliseconds before timing out.\n"
)


@pytest.mark.parametrize(
    ("gone", "code", "card"), [(590, "B2", ("n1", "2")), (200, "C2", None)], ids=["then", "before"]
)
def test_it_is_the_cause_where_it_went_then(
    tmp_path: Path, gone: int, code: str, card: tuple[str, str] | None
) -> None:
    """One that nobody read any more minutes before had not ended anything by that."""
    rows = [
        sample(name, f'gpu="{gpu % 4}",Hostname="n{gpu // 4}",UUID="GPU-{gpu}",job="dcgm"', v, at)
        for gpu in range(8)
        for at in range(0, 1320, 30)
        if gpu != 6 or at <= gone
        for name, v in ((WATTS, 400.0 + at % 7 if at < 600 else 130.0), (XID, 0.0))
    ]
    (tmp_path / "dcgm.prom").write_text("\n".join(rows) + "\n")
    steps = "".join(f"step {n}/5000 loss {8 - n * 0.001:.3f}\n" for n in range(0, 600, 10))
    at = datetime.fromtimestamp(T0 + 1204, UTC)
    waits = "".join(TIMED_OUT.format(rank=rank, at=at) for rank in range(8) if rank != 6)
    began, ended = (datetime.fromtimestamp(T0 + s, UTC) for s in (0, 1260))
    (tmp_path / "slurm-77.out").write_text(steps + waits)
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
        f"77|sft|FAILED|1:0|{began:%Y-%m-%dT%H:%M:%S}|{ended:%Y-%m-%dT%H:%M:%S}|n[0-1]\n"
    )

    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == code
    assert card in (None, *((p.host, p.gpu) for p in verdict.culprits))
