"""What stands right above an exception that was raised without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

HEAD = "Traceback (most recent call last):\n"
LOOP = '  File "/home/u/ssl/train/loop.py", line 212, in fit\n    {}\n'
DATA = (
    '  File "/home/u/ssl/train/loop.py", line 180, in fit\n    for batch in loader:\n'
    '  File "/home/u/ssl/data/dataset.py", line 77, in __getitem__\n    raise AssertionError\n'
)
STEPS = "".join(
    f"2026-02-03 04:{n // 6:02d}:{n % 6 * 10:02d} INFO step {n * 10}/9000 loss {3 + 4 / n:.4f}"
    " lr 3e-4\n"
    for n in range(1, 60)
)
NAN = "2026-02-03 04:10:01 ERROR NaN detected\n"


def verdict(folder: Path, text: str) -> Verdict:
    (folder / "train.log").write_text(STEPS + text)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("said", "code", "raised"),
    [
        (NAN, "raise AssertionError", "AssertionError\n"),
        ("2026-02-03 04:10:01 ERROR Loss is nan at step 590\n\n", "raise RuntimeError()",
         "RuntimeError\n"),
        ("ERROR: NaN or Inf encountered in loss\n", "raise AssertionError", "AssertionError\n"),
    ],
)  # fmt: skip
def test_the_line_above_says_why(tmp_path: Path, said: str, code: str, raised: str) -> None:
    found = verdict(tmp_path, said + HEAD + LOOP.format(code) + raised)
    assert (found.code, found.fault_class) == ("E1", "non-finite")


def test_of_other_ranks_that_raise_the_same(tmp_path: Path) -> None:
    """Each prints its traceback between the word of one and what the others raise."""
    text = NAN
    for rank in range(6):
        block = HEAD + LOOP.format("raise AssertionError") + "AssertionError\n"
        text += "".join(f"[rank{rank}]: {line}" for line in block.splitlines(keepends=True))
    assert verdict(tmp_path, text).code == "E1"


@pytest.mark.parametrize(
    "text",
    [
        HEAD + LOOP.format("raise AssertionError") + "AssertionError\n",
        NAN + "2026-02-03 04:10:02 INFO saved\n" * 4 + HEAD + LOOP.format("raise AssertionError")
        + "AssertionError\n",
        NAN + HEAD + DATA + "AssertionError\n",
        NAN + HEAD + LOOP.format("assert a.shape == b.shape") + "AssertionError: 7 rows, not 8\n",
        "2026-02-03 04:10:01 WARNING NaN detected in column 3, rows dropped\n" + HEAD
        + LOOP.format("raise AssertionError") + "AssertionError\n",
    ],
)  # fmt: skip
def test_nothing_above_or_a_word_of_its_own(tmp_path: Path, text: str) -> None:
    """Lines between, a data set's own check, a message: another matter."""
    assert verdict(tmp_path, text).code == "A3"


def test_a_step_that_went_on(tmp_path: Path) -> None:
    """Said of a step and followed by others, nothing is told of an end."""
    later = STEPS.replace("step ", "step 6")
    assert verdict(tmp_path, NAN + later).code != "E1"
