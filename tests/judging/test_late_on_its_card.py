"""The rank that the others wait for, and the card that alone works apart from theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

T0 = 1_772_600_400
"""04:00 UTC on 4 March 2026."""
SACCT = (
    "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList|AllocTRES\n"
    "91|lm|COMPLETED|0:0|2026-03-04T05:00:00|2026-03-04T05:40:00|2|kx[7-8]|gres/gpu=8,node=2\n"
)
NCCL = (
    "kx{host}:811:900 [{gpu}] NCCL INFO comm 0x5500 rank {rank} nranks 8 cudaDev {gpu} nvmlDev"
    " {gpu} busId {gpu}b000 commId 0x77 - Init COMPLETE\n"
)


def printed(late: int) -> str:
    """Eight ranks, each with its wait, a line every 15 s."""
    return "".join(
        f"2026-03-04 05:{(60 + 15 * n) // 60:02d}:{15 * n % 60:02d} INFO [rank{rank}] step={4 * n}"
        f" loss={4 - n / 100:.3f} step_s=3.75 sync_wait_s={0.1 if rank == late else 0.9}{n % 7}\n"
        for n in range(1, 140)
        for rank in range(8)
    )


def judged(folder: Path, busier: tuple[str, int] | None, late: int = 6, nccl: str = "") -> Verdict:
    rows = [
        f'DCGM_FI_PROF_SM_ACTIVE{{gpu="{gpu}",Hostname="{host}",modelName="H100"}}'
        f" {0.0 if not 60 < at < 2280 else 0.9 if (host, gpu) == busier else 0.7}"
        f" {(T0 + 3600 + at) * 1000}"
        for at in range(-300, 2700, 30)
        for host in ("kx7", "kx8")
        for gpu in range(4)
    ]
    (folder / "dcgm.prom").write_text("\n".join(rows) + "\n")
    (folder / "train.log").write_text(nccl + printed(late) + "2026-03-04 05:39:50 INFO done\n")
    (folder / "sacct.psv").write_text(SACCT)
    return diagnose(collect(Request((str(folder),))))


def told(verdict: Verdict) -> list[tuple[int | None, str | None, str | None]]:
    assert verdict.code == "D3"
    return [(place.rank, place.host, place.gpu) for place in verdict.culprits]


def test_the_card_that_its_number_counts_to(tmp_path: Path) -> None:
    """By two sources; that card's host is left out next time."""
    verdict = judged(tmp_path, ("kx8", 2))

    assert told(verdict) == [(6, "kx8", "2")]
    assert verdict.resubmit == "exclude"


@pytest.mark.parametrize("busier", [None, ("kx8", 1)], ids=["none is apart", "another's"])
def test_near_misses_name_the_rank_alone(tmp_path: Path, busier: tuple[str, int] | None) -> None:
    assert told(judged(tmp_path, busier)) == [(6, None, None)]


def test_nccl_says_which_card_a_rank_has(tmp_path: Path) -> None:
    lines = "".join(NCCL.format(host=7 + rank // 4, gpu=rank % 4, rank=rank) for rank in range(8))

    assert told(judged(tmp_path, None, nccl=lines)) == [(6, "kx8", "2")]
