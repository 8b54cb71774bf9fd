"""Folds that one process trains one after the other are no tries of one run."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

ABOVE = ("config: lr 0.001", "dataset: 9000 images", "device: cuda:0", "workers: 8")


def judged(
    folder: Path,
    heads: tuple[tuple[str, ...], ...],
    *,
    ends: tuple[int, ...] = (300, 300, 300),
    measured: bool = True,
    between: str = "",
) -> Verdict:
    """Rounds from step 0 on, that save as they go, each below its head."""
    lines: list[str] = []
    for n, (head, end) in enumerate(zip(heads, ends, strict=True), 1):
        lines += [*head, "No checkpoint found, starting from epoch 0"]
        for step in range(0, end + 1, 10):
            lines.append(f"step {step} loss {2.0 - step / 400:.4f}")
            lines += [f"Saved checkpoint at step {step}"] if step and step % 100 == 0 else []
        lines += ["eval: acc 0.81 over 900 images"] if measured else []
        lines += [between] if between and n < len(heads) else []
    stamped = (
        f"2026-03-04 {8 + at // 3600:02d}:{at // 60 % 60:02d}:{at % 60:02d} INFO {text}"
        for at, text in zip(range(0, 9 * len(lines), 9), lines, strict=True)
    )
    (folder / "train.log").write_text("\n".join(stamped) + "\n")
    return diagnose(collect(Request((str(folder),))))


FOLDS = tuple((f"=== fold {n}/3 ===",) for n in (1, 2, 3))


def test_rounds_that_end_alike_and_are_measured(tmp_path: Path) -> None:
    """Though each says that it found no checkpoint, and the one before had saved some."""
    assert judged(tmp_path, (ABOVE, (), ())).code != "E2"


def test_rounds_that_are_numbered(tmp_path: Path) -> None:
    """They may end where they will: early, or with less data."""
    assert judged(tmp_path, FOLDS, ends=(300, 280, 310), measured=False).code != "E2"


@pytest.mark.parametrize(
    ("heads", "ends", "measured", "between"),
    [
        ((ABOVE, ABOVE, ABOVE), (300, 300, 300), True, ""),
        ((ABOVE, (), ()), (300, 260, 330), True, ""),
        ((ABOVE, (), ()), (300, 300, 300), False, ""),
        (FOLDS[:1] * 3, (300, 260, 330), True, ""),
        (FOLDS, (300, 280, 310), True, "RuntimeError: CUDA error: an illegal memory access was"
         " encountered"),
    ],
    ids=["begun as a process", "anywhere", "not measured", "one fold thrice", "it failed"],
)  # fmt: skip
def test_tries_of_one_run(
    tmp_path: Path,
    heads: tuple[tuple[str, ...], ...],
    ends: tuple[int, ...],
    measured: bool,
    between: str,
) -> None:
    """What was saved was to be gone on from."""
    verdict = judged(tmp_path, heads, ends=ends, measured=measured, between=between)

    assert verdict.code == "E2"
