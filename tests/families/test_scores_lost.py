"""A table of spaCy's, and a score of held-out cases that fell to nought."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Progress, Verdict
from flatline.parsers import headed, spacy

HEADING = "E    #       LOSS TOK2VEC  LOSS TAGGER  TAG_ACC  SCORE \n"
RULE = "---  ------  ------------  -----------  -------  ------\n"
SAVED = "✔ Saved pipeline to output directory\nout/model-last\n"
RISES = (0.0, 0.4, 0.61, 0.7, 0.74, 0.78)


def table(scores: Sequence[float], loss: str = "") -> str:
    rows = (
        f"{n // 4:3d}  {200 * n:6d}  {40 + n:12.2f}  {loss or f'{90 + 7 * n:.2f}':>11}"
        f"  {100 * score:7.2f}  {score:6.2f}\n"
        for n, score in enumerate(scores)
    )
    return HEADING + RULE + "".join(rows)


def judged(folder: Path, text: str) -> Verdict:
    (folder / "train.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


def rows(loss: str) -> list[Progress]:
    reader = headed.Reader()
    lines = table((0.5,), loss).splitlines()
    assert not list(reader.feed(lines[0]))
    return [item for _, item in reader.rows(enumerate(lines[1:]))]


def test_what_a_row_says() -> None:
    """Its sums need not fall; a score does not either."""
    trained, scored = rows("412.50")
    assert (trained.kind, trained.step, trained.loss) == ("train", 0, None)
    assert (scored.kind, scored.loss, scored.falling) == ("eval", 0.5, False)
    lost, _ = rows("nan")
    assert lost.loss is not None
    assert not isfinite(lost.loss)


def test_a_run_whose_score_rose(tmp_path: Path) -> None:
    assert judged(tmp_path, table(RISES) + SAVED).state == "healthy"
    assert not list(spacy.Reader().feed("ℹ Saving to output directory: out"))


def test_a_score_that_fell_to_nought(tmp_path: Path) -> None:
    verdict = judged(tmp_path, table((*RISES, *[0.0] * 6)))

    assert verdict.code == "E1"
    assert "it had been 0.78" in verdict.headline
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    "scores",
    [(*RISES, 0.0, 0.0), (*RISES, *[0.0] * 6, 0.7), [0.0] * 12, (0.0, 0.1, *[0.0] * 8),
     (*RISES, *[0.02] * 6)],
    ids=["twice", "came back", "never good", "hardly good", "not quite"],
)  # fmt: skip
def test_near_misses(tmp_path: Path, scores: Sequence[float]) -> None:
    assert judged(tmp_path, table(scores)).code != "E1"


def test_losses_that_are_none(tmp_path: Path) -> None:
    assert judged(tmp_path, table([0.0] * 8, "nan")).code == "E1"
