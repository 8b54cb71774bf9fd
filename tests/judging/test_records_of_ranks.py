"""D3 of a rank whose log of JSON lines says at its beginning where it runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Place

BEGAN = 1_772_611_200
HOSTS, EACH, LATE = ("gx11", "gx12", "gx14"), 4, 6


def culprits(folder: Path, first: dict[int, tuple[str, int]], cards: int = EACH) -> list[Place]:
    """Twelve ranks of which one waits least from the first step on; each log begins with where its
    rank is, as far as `first` has it."""
    (folder / "ranks").mkdir()
    for rank in range(len(HOSTS) * EACH):
        lines: list[dict[str, object]] = []
        if rank in first:
            host, local = first[rank]
            lines.append({"ts": BEGAN, "rank": rank, "host": host, "local_rank": local,
                          "msg": "ready", "world_size": 12})  # fmt: skip
        for step in range(1, 161):
            wait = (100 if rank == LATE else 900) + (rank + step) % 7
            lines.append({"ts": BEGAN + 3 * step, "rank": rank, "step": step, "step_ms": 3000.0,
                          "sync_wait_ms": wait, "loss": 3 - step / 200})  # fmt: skip
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / "ranks" / f"rank_{rank:03}.jsonl").write_text(text)
    (folder / "queue.txt").write_text("# 2026-03-04 08:08:30 UTC\n"
        "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n"
        "77 gpu lm mira R 00:08:40 3 gx[11-12,14]\n")  # fmt: skip
    read = [f'DCGM_FI_DEV_POWER_USAGE{{Hostname="{host}",gpu="{gpu}"}} 500 {at}000'
            for at in range(BEGAN, BEGAN + 500, 30)
            for host in HOSTS for gpu in range(cards)]  # fmt: skip
    (folder / "metrics.prom").write_text("\n".join(read) + "\n")
    verdict = diagnose(collect(Request((str(folder),))))
    assert verdict.code == "D3"
    return list(verdict.culprits)


BLOCKS = {rank: (HOSTS[rank // EACH], rank % EACH) for rank in range(12)}


def test_its_host_and_its_card(tmp_path: Path) -> None:
    assert culprits(tmp_path, BLOCKS) == [Place(host="gx12", gpu="2", rank=LATE)]


@pytest.mark.parametrize(
    ("first", "cards", "place"),
    [
        ({}, EACH, Place(rank=LATE)),
        (BLOCKS, 8, Place(host="gx12", rank=LATE)),
        ({rank: ("gx12", 2) for rank in range(12)}, EACH, Place(rank=LATE)),
    ],
    ids=["none says so", "other cards than these", "all say one host"],
)
def test_where_it_is_not_known(
    tmp_path: Path, first: dict[int, tuple[str, int]], cards: int, place: Place
) -> None:
    """A rank may have been given cards by other numbers."""
    assert culprits(tmp_path, first, cards) == [place]
