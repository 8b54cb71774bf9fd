"""D3 where a table has a row for each rank, or some of them a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 6, 3, 4, 30, tzinfo=UTC)
STEP_S, EVERY = 4.0, 100
Times = Callable[[int], float]
"""rank -> milliseconds."""


def late(*ranks: int, by: float = 1100.0, usual: float = 1800.0) -> Times:
    return lambda rank: usual + 10 * (rank % 3) + (by if rank in ranks else 0)


def megatron(took: Times, ranks: int, timer: str = "forward-compute") -> list[str]:
    """As its timers print them for all ranks."""
    rows = (f"     rank {rank:2d}: {took(rank):.2f}" for rank in range(ranks))
    return ["times across ranks (ms):", f"  {timer}:", *rows]


def report(took: Times, ranks: int, head: str = "compute of each rank [ms]") -> list[str]:
    """Four ranks a line."""
    groups = (range(first, min(first + 4, ranks)) for first in range(0, ranks, 4))
    return [head + ":", *(
        "".join(f"   rank{rank:02d}  {took(rank):.1f}" for rank in group) for group in groups
    )]  # fmt: skip


def judged(folder: Path, table: Sequence[str], *, tables: int = 6) -> Verdict:
    """A loop that prints a table every hundred steps."""
    text: list[str] = []
    for n in range(1, EVERY * tables + 1):
        at = BEGAN + timedelta(seconds=STEP_S * n)
        if n % 10 == 0:
            text.append(
                f" [{at:%Y-%m-%d %H:%M:%S}.000000] iteration {n:8d}/ 5000 | consumed samples:"
                f" {n * 256:12d} | elapsed time per iteration (ms): {1e3 * STEP_S:.1f} | learning"
                f" rate: 1.0E-04 | global batch size: 256 | lm loss: {9 - n / 400:.6E} | loss"
                " scale: 1.0 | grad norm: 1.000 |"
            )
        if n % EVERY == 0:
            text += table
    (folder / "train.log").write_text("\n".join(text) + "\n")
    return diagnose(collect(Request((str(folder),))))


def ranks_of(verdict: Verdict) -> list[int | None]:
    return [place.rank for place in verdict.culprits] if verdict.code == "D3" else []


LATE = late(11)
BLOCK = late(*range(16, 24))


@pytest.mark.parametrize(
    ("table", "rank"),
    [(megatron(LATE, 32), 11), (report(LATE, 32), 11), (report(LATE, 16), 11),
     ([f"31: {row}" for row in megatron(LATE, 32)], 11),
     (megatron(late(0), 32), 0), (megatron(late(11, by=-1100), 32, "all-grads-sync"), 11),
     (report(LATE, 32, "compute of each rank, ms"), 11),
     (report(lambda rank: LATE(rank) / 1e3, 32, "compute of each rank, seconds"), 11)],
    ids=["Megatron", "four a line", "few ranks", "labels of srun", "the first", "it waits least",
         "a word", "seconds"],
)  # fmt: skip
def test_one_rank_is_late(tmp_path: Path, table: list[str], rank: int) -> None:
    """Named, and not surely: more of the work may be its own."""
    verdict = judged(tmp_path, table)

    assert ranks_of(verdict) == [rank]
    assert verdict.confidence < 0.8
    assert any(f"rank {rank} took" in one.text for one in verdict.shows)


@pytest.mark.parametrize(
    ("block", "ranks"),
    [(range(16, 24), 32), (range(4), 32), (range(16, 32), 64)],
    ids=["eight", "four", "sixteen"],
)
@pytest.mark.parametrize("table", [megatron, report], ids=["Megatron", "four a line"])
def test_ranks_of_one_host_are_late(
    tmp_path: Path, table: Callable[[Times, int], list[str]], block: range, ranks: int
) -> None:
    """As many as a host has cards, from a whole number of hosts on."""
    verdict = judged(tmp_path, table(late(*block), ranks))

    assert ranks_of(verdict) == [*block]
    assert any(f"ranks {block[0]} to {block[-1]}" in one.text for one in verdict.shows)


@pytest.mark.parametrize(
    ("table", "tables"),
    [(megatron(late(*range(15, 23)), 32), 6), (megatron(late(*range(16, 22)), 32), 6),
     (megatron(late(*range(16, 24)), 28), 6), (megatron(late(11, 12), 32), 6),
     (megatron(late(11, 27), 32), 6), (megatron(late(11, usual=4800), 32), 6),
     (megatron(late(11, by=100), 32), 6), (megatron(LATE, 32), 2), (megatron(late(1), 3), 6),
     (megatron(late(), 32), 6), (megatron(LATE, 32, "save-checkpoint"), 6),
     (report(LATE, 32, "memory of each rank [MiB]"), 6),
     (report(LATE, 32, "gpu mem by rank, ms"), 6), (report(LATE, 32, "compute of each rank"), 6),
     (report(LATE, 32, "compute of each rank [ms], since start"), 6)],
    ids=["a block that is not aligned", "six", "hosts that are not whole", "two side by side",
         "two apart", "longer than a step", "little of a step", "two tables", "three ranks",
         "none", "a save", "memory", "memory with a time's unit", "no unit", "a sum"],
)  # fmt: skip
def test_near_misses_name_nobody(tmp_path: Path, table: list[str], tables: int) -> None:
    """No one rank and no one host, no part of a step, or too few rows."""
    assert ranks_of(judged(tmp_path, table, tables=tables)) == []


def test_rows_that_are_left_out(tmp_path: Path) -> None:
    """A table that skips a rank, or begins behind the first, is none of all."""
    whole = megatron(LATE, 32)
    (tmp_path / "gap").mkdir()
    (tmp_path / "tail").mkdir()

    assert ranks_of(judged(tmp_path / "gap", [row for row in whole if "rank  7" not in row])) == []
    assert (
        ranks_of(judged(tmp_path / "tail", [row for row in whole if "rank  0" not in row])) == []
    )


HEAD = "per-rank mean seconds over the last 100 steps (data | fwd_bwd | allreduce)"


def columns(
    late: bool, rank: int = 5, head: str = HEAD, where: str = " n{host} gpu{gpu}", apart: int = 1
) -> list[str]:
    """Of twelve ranks on three hosts; the late one fetches its data for long, and waits least."""
    rows = []
    for r in range(12):
        own = late and rank <= r < rank + apart
        at = where.format(host=r // 4, gpu=r % 4)
        values = (1.2 if own else 0.02, 1.02 + r % 3 / 100, 0.03 if own else 1.21 if late else 0.2)
        rows.append(f"    rank {r:2d}{at}  " + " | ".join(f"{value:.3f}" for value in values))
    return [head, *rows]


def among(folder: Path, tables: Sequence[list[str]]) -> Verdict:
    text = []
    for n in range(1, EVERY * len(tables) + 1):
        at = BEGAN + timedelta(seconds=2.4 * n)
        if n % 10 == 0:
            text.append(f"{at:%Y-%m-%d %H:%M:%S} step {n} loss {9 - n / 400:.4f} step_time 2.4")
        if n % EVERY == 0:
            text += tables[n // EVERY - 1]
    (folder / "train.log").write_text("\n".join(text) + "\n")
    (folder / "sacct.psv").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
        f"8|t|COMPLETED|0:0|{BEGAN:%Y-%m-%dT%H:%M:%S}|2026-06-03T05:30:00|3|n[0-2]\n"
    )
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("since", [0, 6])
def test_parts_of_a_step_in_columns(tmp_path: Path, since: int) -> None:
    """Late all the time, or from some table on; where it runs stands in its row."""
    verdict = among(tmp_path, [columns(n >= since) for n in range(14)])

    assert verdict.code == "D3"
    (place,) = verdict.culprits
    assert (place.rank, place.host, place.gpu) == (5, "n1", "1")


@pytest.mark.parametrize(
    "tables",
    [
        [columns(False)] * 14,
        [columns(True, rank=n % 12) for n in range(14)],
        [columns(True, head="per-rank memory (alloc | reserved | peak)")] * 14,
        [columns(True, head="per-rank values (data | fwd_bwd | allreduce)")] * 14,
        [columns(True, head="per-rank seconds (data | fwd_bwd)")] * 14,
        [columns(n > 11) for n in range(14)],
        [columns(True, apart=3)] * 14,
    ],
    ids=["none", "another each time", "no times", "no unit", "another count of columns",
         "twice", "three"],
)  # fmt: skip
def test_columns_that_name_nobody(tmp_path: Path, tables: Sequence[list[str]]) -> None:
    assert among(tmp_path, tables).code != "D3"
