"""What a message says below its first line, and checks that count what was read."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.startup_class import startup_class
from flatline.model import Frame, Verdict

STEPS = "".join(
    f"[2025-03-01 09:00:{n:02d},000] [    INFO] - loss: {4 - n / 20:.4f}, global_step: {n}\n"
    for n in range(1, 41)
)
RAISED = (
    "Traceback (most recent call last):\n"
    '  File "finetune.py", line 88, in <module>\n'
    "    trainer.train()\n"
    "SystemError: (Fatal) Operator {} exception.\n"
    "The exception content is\n"
    ":ResourceExhaustedError: \n"
    "\n"
)
BAD_ALLOC = RAISED.format("gelu raises an paddle::memory::allocation::BadAlloc")
ASKED = (
    "Out of memory error on GPU 2. Cannot allocate 3.500000GB memory on GPU 2, 37.1GB memory has"
    " been allocated and available memory is only 912.0MB.\n"
)


def judged(folder: Path, end: str) -> Verdict:
    (folder / "job.log").write_text(STEPS + end)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("below", [ASKED, ""], ids=["with the block", "cut off"])
def test_an_allocator_s_exception(tmp_path: Path, below: str) -> None:
    """It is memory whatever stands below it, and the block that was asked for where that does."""
    verdict = judged(tmp_path, BAD_ALLOC + below)
    assert verdict.code == "B1"
    assert [place.gpu for place in verdict.culprits] == (["2"] if below else [])


def test_another_exception_of_an_operator(tmp_path: Path) -> None:
    end = RAISED.format("gelu raises an thrust::system::system_error")
    assert judged(tmp_path, end).code == "A3"


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("assert angles.shape == (N_img, 3), 'other count'", "data"),
        ("assert labels.shape[0] == self.num_samples", "data"),
        ("assert logits.shape == (num_classes, 3)", "config"),
        ("assert x.shape[1] == num_samples", "config"),
        ("assert x.shape[0] == num_image_tokens", "config"),
    ],
)
def test_a_check_of_as_many_rows_as_records(code: str, wanted: str) -> None:
    frames = [Frame("/home/u/rec/run.py", 9, "main", code)]
    assert startup_class("AssertionError", "shapes are (7, 3) and (6, 3)", frames) == wanted


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("[E1] There is no proper sample data to initialize the model of 'tagger'", "data"),
        ("there is no training data to train on", "data"),
        ("there is no training data type of that name", "config"),
    ],
)
def test_no_data_to_begin_with(said: str, wanted: str) -> None:
    assert startup_class("ValueError", said, []) == wanted
