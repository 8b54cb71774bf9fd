"""D3 by the reports of the program's own detection of stragglers."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Place, Verdict

WARNING = (
    "[NeMo W 2026-03-02 14:08:00 straggler_det_callback:203] STRAGGLER DETECTION WARNING: Some"
    " GPUs have worse relative performance. Affected ranks: {}\n"
)
SCORES = " GPU {} performance:\n  Rank={} Node={} Score={:.2f}\n  Rank=2 Node=n1 Score=0.99\n"


def judged(folder: Path, reports: dict[int, str], world: int = 16) -> Verdict:
    """Six hundred steps, with what is reported behind some of them."""
    lines = [f"world_size: {world}\n" if world else "begin\n"]
    for n in range(1, 601):
        lines += [f"step {n}/600 loss {4 - n / 300:.4f} step_time 2.0s\n", reports.get(n, "")]
    (folder / "train.log").write_text("".join(lines) + "Training completed\n")
    return diagnose(collect(Request((str(folder),))))


def every(said: str, steps: range = range(50, 600, 50)) -> dict[int, str]:
    return dict.fromkeys(steps, said)


SLOW = WARNING.format("[11]") + SCORES.format("relative", 11, "n2", 0.69)


def test_a_rank_that_is_reported_throughout(tmp_path: Path) -> None:
    """With the node that its scores name; by the program's word alone it is not sure."""
    verdict = judged(tmp_path, every(SLOW))

    assert (verdict.code, verdict.confidence < 0.8) == ("D3", True)
    assert [(place.host, place.rank) for place in verdict.culprits] == [("n2", 11)]


def test_scores_tell_where_ranks_are(tmp_path: Path) -> None:
    """Of all that they name; a node that has a number alone is no host's name."""
    judged(tmp_path, every(SLOW + "  Rank=3 Node=4 Score=0.98\n"))
    facts = collect(Request((str(tmp_path),)))

    assert [facts.on_host(Place(rank=rank)).host for rank in (11, 2, 3)] == ["n2", "n1", None]


def test_ranks_as_later_versions_print_them(tmp_path: Path) -> None:
    """Digits of a node's name are no ranks."""
    listed = "{StragglerId(rank=11, node='3')}"
    verdict = judged(tmp_path, every(WARNING.format(listed)))

    assert [place.rank for place in verdict.culprits] == [11]


def unsized(folder: Path, said: str) -> Verdict:
    """Reports without a table, of a world whose size nothing tells."""
    return judged(folder, every(WARNING.format(said)), world=0)


@pytest.mark.parametrize("said", ["[37]", "[37 (score: 0.62)]", "[37 (score: 0.62), 12 (0.66)]"])
def test_ranks_among_as_many_as_their_numbers_tell(tmp_path: Path, said: str) -> None:
    verdict = unsized(tmp_path, said)

    assert verdict.code == "D3"
    assert verdict.culprits[0].rank in (12, 37)


@pytest.mark.parametrize(
    "said", ["[3]", "[3 (score: 0.62)]", "[28 (0.6), 29 (0.6), 30 (0.6), 31 (0.6)]"]
)
def test_ranks_that_may_be_a_large_part(tmp_path: Path, said: str) -> None:
    assert unsized(tmp_path, said).code != "D3"


STOP = (
    "[NeMo E 2026-03-02 14:08:01 straggler_det_callback:201] Detected stragglers."
    " Terminating training...\n"
)


def stopped(folder: Path, said: str, more: str = "", world: int = 16) -> Verdict:
    """A hundred steps, and what is reported behind the last, and more behind that."""
    lines = [f"world_size: {world}\n"]
    lines += [f"step {n}/600 loss {4 - n / 300:.4f} step_time 2.0s\n" for n in range(1, 101)]
    (folder / "train.log").write_text("".join(lines) + said + more)
    return diagnose(collect(Request((str(folder),))))


def test_a_run_that_its_program_ended_for_a_rank(tmp_path: Path) -> None:
    """However few its reports, they ended it; a line of scores may stand for the rank."""
    said = WARNING.format("Rank=11 Node=n2 Score=0.69") + SCORES.format("relative", 11, "n2", 0.69)
    verdict = stopped(tmp_path, said + STOP)

    assert (verdict.code, verdict.confidence < 0.8) == ("D3", True)
    assert [(place.host, place.rank) for place in verdict.culprits] == [("n2", 11)]
    assert "the program ended the run for it" in verdict.headline


@pytest.mark.parametrize(
    ("said", "more"),
    [
        (SLOW, ""),
        (SLOW + STOP, "".join(f"step {n}/600 loss 3.1\n" for n in range(101, 160))),
        (WARNING.format("[8, 9, 10, 11]") + STOP, ""),
        (STOP, ""),
    ],
    ids=["not ended", "went on", "a stage", "of nobody"],
)
def test_no_run_that_was_ended_for_a_rank(tmp_path: Path, said: str, more: str) -> None:
    assert stopped(tmp_path, said, more).code != "D3"


@pytest.mark.parametrize(
    ("reports", "world"),
    [
        (every(SLOW, range(5, 20, 5)), 16),
        (every(SLOW, range(500, 600, 20)), 16),
        ({300: 4 * SLOW}, 16),
        (every(WARNING.format("[8, 9, 10, 11]")), 16),
        ({n: WARNING.format(f"[{n // 50}]") for n in range(50, 600, 50)}, 16),
        (every(SCORES.format("individual", 11, "n2", 0.31)), 16),
        (every(WARNING.format("[3]")), 4),
    ],
    ids=["at first", "at last", "once", "a stage", "now this and now that", "its own best", "few"],
)
def test_near_misses(tmp_path: Path, reports: dict[int, str], world: int) -> None:
    """What passes, or is so by design, holds nobody back."""
    assert judged(tmp_path, reports, world).code != "D3"


def cut(folder: Path, steps: int, at: tuple[int, ...]) -> Verdict:
    """A log that ends amid a run, whose tables alone tell of how many ranks there are."""
    table = (
        "GPU relative performance:\n Worst performing 2/64 ranks:\n  Rank=40 Node=n5 Score=0.61\n"
        "  Rank=2 Node=n1 Score=0.98\n Best performing 2/64 ranks:\n  Rank=9 Node=n2 Score=1.00\n"
        "  Rank=8 Node=n2 Score=1.00\n"
    )
    lines = []
    for n in range(1, steps + 1):
        lines.append(f"step {n}/9000 loss {4 - n / 300:.4f} step_time 2.0s\n")
        lines.append(table + WARNING.format("[40]") if n in at else "")
    (folder / "train.log").write_text("".join(lines))
    return diagnose(collect(Request((str(folder),))))


def test_reported_up_to_where_no_more_was_due(tmp_path: Path) -> None:
    """A report each thirty steps, and less than thirty behind the last."""
    verdict = cut(tmp_path, 88, (1, 31, 61))

    assert (verdict.code, verdict.confidence < 0.8) == ("D3", True)
    assert [(place.host, place.rank) for place in verdict.culprits] == [("n5", 40)]


def test_no_longer_reported(tmp_path: Path) -> None:
    """What was due was not told again."""
    assert cut(tmp_path, 130, (1, 31, 61)).code != "D3"


def table(*worst: float, of: str = "relative") -> str:
    """The five worst of 16 ranks, rank 11 first, and the best."""
    ranks = (11, 3, 7, 2, 14)
    rows = [f"  Rank={r} Node=n{r // 8 + 1} Score={s:.2f}\n"
            for r, s in zip(ranks, worst, strict=True)]  # fmt: skip
    best = "".join(f"  Rank={r} Node=n1 Score=0.99\n" for r in (0, 1, 4, 5, 6))
    return (
        f"[NeMo I 2026-03-02 14:08:00 straggler_det_callback:147] \nGPU {of} performance:\n"
        f" Worst performing 5/16 ranks:\n{''.join(rows)} Best performing 5/16 ranks:\n{best}"
    )


def test_a_rank_that_tables_alone_set_apart(tmp_path: Path) -> None:
    """Above the score at which the program warns."""
    verdict = judged(tmp_path, every(table(0.74, 0.98, 0.98, 0.98, 0.99)))

    assert (verdict.code, verdict.confidence < 0.8) == ("D3", True)
    assert [(place.host, place.rank) for place in verdict.culprits] == [("n2", 11)]
    assert "down to 0.74" in " ".join(claim.text for claim in verdict.shows)


@pytest.mark.parametrize(
    "said",
    [
        table(0.92, 0.98, 0.98, 0.98, 0.99),  # as cards scatter
        table(0.84, 0.87, 0.90, 0.93, 0.96),  # one after the other
        table(0.70, 0.70, 0.71, 0.71, 0.72),  # a stage of a pipeline
        table(0.70, 0.71, 0.71, 0.98, 0.99),  # three of 16
        table(0.74, 0.98, 0.98, 0.98, 0.99, of="individual"),  # beside its own best
    ],
)
def test_tables_that_set_no_rank_apart(tmp_path: Path, said: str) -> None:
    """Nor do two of them, or such as name now this rank and now that."""
    assert judged(tmp_path, every(said)).code != "D3"


def test_a_table_that_was_printed_once_or_names_others_later(tmp_path: Path) -> None:
    """One report is a passing one."""
    apart = table(0.74, 0.98, 0.98, 0.98, 0.99)
    even = table(0.96, 0.98, 0.98, 0.98, 0.99)

    assert judged(tmp_path, {300: apart}).code != "D3"
    assert judged(tmp_path, {n: (apart, even)[n // 50 % 2] for n in every("")}).code != "D3"


def row(*worst: float, of: str = "relative") -> str:
    """The same table as one line of a log, without the best."""
    ranks = (11, 3, 7, 2, 14)
    said = ", ".join(f"rank={r} (n{r // 8 + 1}) score={s:.3f}"
                     for r, s in zip(ranks, worst, strict=True))  # fmt: skip
    return f"[14:08:00] report: GPU {of} performance: Worst performing 5/16 ranks: {said}\n"


def test_a_rank_that_tables_of_one_line_set_apart(tmp_path: Path) -> None:
    """They tell of how many ranks there are, too, and where they run."""
    verdict = judged(tmp_path, every(row(0.741, 0.982, 0.983, 0.985, 0.991)), world=0)

    assert (verdict.code, verdict.confidence < 0.8) == ("D3", True)
    assert [(place.host, place.rank) for place in verdict.culprits] == [("n2", 11)]
    assert "down to 0.74" in " ".join(claim.text for claim in verdict.shows)


@pytest.mark.parametrize(
    "said",
    [
        row(0.92, 0.98, 0.98, 0.98, 0.99),
        row(0.70, 0.71, 0.71, 0.98, 0.99),
        row(0.74, 0.98, 0.98, 0.98, 0.99, of="individual"),
    ],
    ids=["as cards scatter", "three of 16", "beside its own best"],
)
def test_tables_of_one_line_that_set_no_rank_apart(tmp_path: Path, said: str) -> None:
    assert judged(tmp_path, every(said)).code != "D3"
