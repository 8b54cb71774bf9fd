"""D3 where one line tells the times of every rank."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 6, 3, 4, 30, tzinfo=UTC)
Times = Callable[[int, int], float]
"""(rank, line) -> seconds."""


def waits(rank: int, n: int) -> float:
    return (0.16 if rank == 5 else 0.9) + 0.01 * ((rank + n) % 3)


def works(rank: int, n: int) -> float:
    return (1.8 if rank == 5 else 1.05) + 0.01 * ((rank + n) % 3)


def judged(
    folder: Path, *tables: tuple[str, Times], lines: int = 8, head: str = "", ranks: int = 8
) -> Verdict:
    """A loop of two seconds a step that prints such tables every two hundred of them."""
    text, at = [head] if head else [], BEGAN
    for n in range(1, 200 * lines + 1):
        at += timedelta(seconds=2)
        stamp = f"{at:%Y-%m-%d %H:%M:%S},000 INFO"
        if n % 25 == 0:
            text.append(f"{stamp} step {n}/30000 loss {2 - n / 4000:.4f} step 2.000s")
        if n % 200 == 0:
            text += (
                f"{stamp} timers.py:52 {label}: "
                + " ".join(f"r{r}={took(r, n // 200):.3f}" for r in range(ranks))
                for label, took in tables
            )
    (folder / "train.log").write_text("\n".join(text) + "\n")
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    "table",
    [("per-rank wait in all-reduce [s]", waits), ("per-rank compute [s]", works),
     ("per-rank compute [ms]", lambda rank, n: 1e3 * works(rank, n)),
     ("time until gradients are ready (s)", works), ("compute before sync (s)", works),
     ("rank fwd+bwd ms ", lambda rank, n: 1e3 * works(rank, n))],
    ids=["waits", "work", "milliseconds", "unit alone", "work up to a wait", "of rank"],
)  # fmt: skip
def test_the_rank_that_all_others_wait_for(tmp_path: Path, table: tuple[str, Times]) -> None:
    """It waits least, or works longest."""
    verdict = judged(tmp_path, table)

    assert verdict.code == "D3"
    assert [place.rank for place in verdict.culprits] == [5]


@pytest.mark.parametrize(
    ("table", "lines", "ranks"),
    [
        (("per-rank wait [s]", lambda rank, n: 0.9 + 0.01 * (rank % 3)), 8, 8),
        (("per-rank wait [s]", lambda rank, n: 0.16 if rank == n % 8 else 0.9), 8, 8),
        (("per-rank wait [s]", lambda rank, n: 0.16 if rank in (5, 6) else 0.9), 8, 8),
        (("per-rank wait [s]", lambda rank, n: 0.05 if rank == 5 else 0.1), 8, 8),
        (("per-rank memory [GiB]", works), 8, 8),
        (("per-rank wait", waits), 8, 8),
        (("per-rank checkpoint wait [s]", waits), 8, 8),
        (("per-rank wait [s]", lambda rank, n: 9 * waits(rank, n)), 8, 8),
        (("per-rank wait [s]", waits), 2, 8),
        (("per-rank wait [s]", lambda rank, n: 0.16 if rank == 1 else 0.9), 8, 3),
    ],
    ids=["none", "another each time", "two", "too little of a step", "no times", "no unit",
         "a save", "longer than a step", "two lines",
         "few ranks"],
)  # fmt: skip
def test_near_misses_name_nobody(
    tmp_path: Path, table: tuple[str, Times], lines: int, ranks: int
) -> None:
    """By chance, by design, or of something else."""
    assert judged(tmp_path, table, lines=lines, ranks=ranks).code != "D3"


def grouped(took: Times, head: str) -> str:
    """The ranks behind one another, each with its parts, in tables of a line."""
    each = (f"r{rank} fwdbwd 0.300 allreduce {took(rank, 1):.3f}" for rank in range(8))
    return f"{head}: {' | '.join(each)}"


@pytest.mark.parametrize(
    ("label", "late"),
    [("fwd/wait ms per rank", True), ("fwd/wait per rank", False), ("wait ms per rank", False),
     ("tokens/pad ms per rank", False)],
    ids=["two parts", "no unit", "one name for two", "no times"],
)  # fmt: skip
def test_parts_of_a_rank_as_one(tmp_path: Path, label: str, late: bool) -> None:
    """Names and numbers are parted alike."""
    each = (f"{rank}:{300 + rank}/{1e3 * waits(rank, 1):.0f}" for rank in range(8))
    verdict = judged(tmp_path, (f"{label}: {' '.join(each)} | of", lambda _, n: float(n)))

    assert (verdict.code == "D3") is late
    assert not late or [place.rank for place in verdict.culprits] == [5]


@pytest.mark.parametrize(
    ("head", "late"),
    [("timers (s/step, last 200)", True), ("timers", False), ("memory (GiB)", False)],
)
def test_ranks_behind_one_another(tmp_path: Path, head: str, late: bool) -> None:
    """Their unit stands above them; without one nothing is a time."""
    verdict = judged(tmp_path, (grouped(waits, head) + " | of", lambda _, n: float(n)))

    assert (verdict.code == "D3") == late
    assert [place.rank for place in verdict.culprits] == ([5] if late else [])


def test_its_card_stands_in_the_logs_own_list(tmp_path: Path) -> None:
    """Which is believed of hosts that were measured."""
    ms = int(BEGAN.timestamp() * 1000)
    rows = (f'DCGM_FI_DEV_GPU_UTIL{{Hostname="n{n}",gpu="{g}"}} 99 {ms + 1000 * t}\n'
            for n in (1, 2) for g in range(4) for t in range(0, 3200, 30))  # fmt: skip
    (tmp_path / "metrics.prom").write_text("".join(rows))
    layout = "rank layout: " + " ".join(f"{r}=n{1 + r // 4}/{r % 4}" for r in range(8))
    verdict = judged(tmp_path, ("per-rank wait [s]", waits), head=layout)

    assert verdict.code == "D3"
    assert [(p.host, p.gpu, p.rank) for p in verdict.culprits] == [("n2", "1", 5)]


def in_order(took: Times, head: str, form: str = "{}") -> str:
    """The ranks' times in their order, in milliseconds and without their numbers."""
    listed = " ".join(f"{1e3 * took(rank, 1):.0f}" for rank in range(8))
    return f"it 40 {head}: {form.format(listed)}"


def loads(rank: int, n: int) -> float:
    return (0.7 if rank == 5 else 0.01) + 0.001 * ((rank + n) % 3)


@pytest.mark.parametrize(
    ("head", "took", "form", "late"),
    [
        ("loader wait per rank [ms]", loads, "{}", True),
        ("data time per rank (ms)", loads, "[{}]", True),
        ("fetch time across ranks (ms)", loads, "{}", True),
        ("all-reduce wait per rank [ms]", waits, "{}", True),
        ("wait for data per rank [ms]", waits, "{}", False),
        ("h2d_copy_ms per rank", loads, "{}", True),
        ("fwd_bwd_ms by rank (before grad sync)", loads, "{}", True),
        ("grad_ms by rank (before the norm)", loads, "{}", False),
        ("allreduce_wait_ms per rank", waits, "{}", True),
        ("batches_per_s per rank", loads, "{}", False),
        ("tokens per rank [k]", loads, "{}", False),
        ("loss per rank [ms]", loads, "{}", False),
    ],
    ids=[
        "its loader",
        "in brackets",
        "across ranks",
        "waits",
        "it alone had data",
        "a unit in the name",
        "before what it ends",
        "of no part",
        "of waits",
        "a rate",
        "no time",
        "no part of a step",
    ],
)
def test_ranks_in_their_order(
    tmp_path: Path, head: str, took: Times, form: str, late: bool
) -> None:
    """A wait for data is its own: who waits longest for that is waited for."""
    verdict = judged(tmp_path, (in_order(took, head, form) + " | of", lambda _, n: float(n)))

    assert (verdict.code == "D3") == late
    assert [place.rank for place in verdict.culprits] == ([5] if late else [])


@pytest.mark.parametrize("cards", [[0, 1, 2, 3], [0, 0, 0, 0], [4, 5, 6, 7]],
                         ids=["its own", "each sees one", "others of the node"])  # fmt: skip
def test_its_card_stands_in_its_own_line(tmp_path: Path, cards: list[int]) -> None:
    """Where the ranks of its host name all that were read of it, each another."""
    ms = int(BEGAN.timestamp() * 1000)
    rows = (f'DCGM_FI_DEV_POWER_USAGE{{Hostname="n{n}",gpu="{g}"}} 99 {ms + 1000 * t}\n'
            for n in (1, 2) for g in range(4) for t in range(0, 3200, 30))  # fmt: skip
    (tmp_path / "metrics.prom").write_text("".join(rows))
    (tmp_path / "sacct.txt").write_text(
        "JobID|State|ExitCode|Start|End|NNodes|NodeList\n"
        f"5|RUNNING|0:0|{BEGAN:%FT%T}|Unknown|2|n[1-2]\n"
    )
    head = "\n".join(f"rank {r}/8 on n{1 + r // 4} cuda:{cards[r % 4]}" for r in range(8))
    verdict = judged(tmp_path, ("per-rank wait [s]", waits), head=head)

    assert verdict.code == "D3"
    gpu = "1" if cards[1] == 1 else None
    assert [(p.host, p.gpu, p.rank) for p in verdict.culprits] == [("n2", gpu, 5)]


def listed(form: str, cards: int = 4) -> str:
    rows = (form.format(rank=r, host=f"kq{r // 4}", card=r % cards) for r in range(8))
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("form", "cards", "gpu"),
    [("rank {rank} -> {host} cuda:{card}", 4, "1"), ("rank {rank} @ {host}:gpu{card}", 4, "1"),
     ("rank {rank} -> {host} cuda:{card}", 1, None)],
    ids=["arrow", "at", "one visible to each"],
)  # fmt: skip
def test_its_card_stands_in_a_list_beside_the_log(
    tmp_path: Path, form: str, cards: int, gpu: str | None
) -> None:
    """What the times are of stands before the words `per rank` as well."""
    (tmp_path / "map.txt").write_text(listed(form, cards))
    verdict = judged(tmp_path, ("perf compute_time[s] per rank", works))

    assert verdict.code == "D3"
    assert [(p.rank, p.host, p.gpu) for p in verdict.culprits] == [(5, "kq1", gpu)]


@pytest.mark.parametrize("label", ["tokens seen per rank", "peak mem [s] per rank", "per rank"])
def test_what_is_no_time_before_the_words_per_rank(tmp_path: Path, label: str) -> None:
    assert judged(tmp_path, (label, works)).code != "D3"
