"""What a model starts from does not grow with the run."""

from __future__ import annotations

from pathlib import Path

from agent.scripted import bench
from flatline.agent.bench import Bench
from flatline.agent.prompts import PACK_TOKENS, instructions, pack
from render import verdicts

LOST = 5
TOKEN = 3
"""Characters of a token, as few as there are of English or of log lines."""


def hung(folder: Path, ranks: int) -> Bench:
    """All ranks but one report that a collective did not end."""
    folder.mkdir()
    with (folder / "job.log").open("w") as log:
        for step in range(1, 60):
            log.write(
                f"[2026-03-01 04:00:{step:02d}] iteration {step}/ 1000 | elapsed time per"
                f" iteration (ms): 1000.0 | lm loss: {9 / step**0.3:.4f} |\n"
            )
        for rank in range(ranks):
            if rank != LOST:
                log.write(
                    f"[rank{rank}]:[E301 04:12:00] [Rank {rank}] Watchdog caught collective"
                    " operation timeout: WorkNCCL(SeqNum=59, OpType=ALLREDUCE, Timeout(ms)=600000)"
                    " ran for 600029 milliseconds before timing out.\n"
                )
    return bench(folder)


def test_a_run_of_131072_gpus_has_a_pack_like_one_of_8(tmp_path: Path) -> None:
    """2,000 tokens at most, and of the same size but for the digits of the counts."""
    small = pack(hung(tmp_path / "small", 8), "why?")
    large = pack(hung(tmp_path / "large", 131_072), "why?")
    assert "C2 collective-hang" in small
    assert "C2 collective-hang" in large
    assert len(large) <= PACK_TOKENS * TOKEN
    assert abs(len(large) - len(small)) <= 40 * TOKEN


def test_everything_by_the_thousand_is_bounded_and_counted() -> None:
    """Culprits, claims, findings, gaps: what is left out is said, and quotations stay closed."""
    own = bench()
    big = pack(Bench(own.request, own.facts, verdicts.huge()), "why?")
    assert len(big) <= PACK_TOKENS * TOKEN
    assert big.count("<run-text>") == big.count("</run-text>")
    assert "in all: " in big or "left out" in big


def test_the_task_is_short_and_names_every_family() -> None:
    """It is sent with every call."""
    text = instructions()
    assert len(text) < 1_500 * TOKEN
    assert "\nG1 healthy\n" in text
