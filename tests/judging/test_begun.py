"""Whether steps had been made, by the functions that an exception came out of."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.begun import validates
from flatline.model import Crash, Frame, LogCite, Verdict

NOWHERE = LogCite("train.log", 1, "Traceback (most recent call last):")


def out_of(*functions: str) -> Crash:
    frames = tuple(Frame("/w/train.py", 9, name, "step()") for name in ("<module>", *functions))
    return Crash("ValueError", "bad shape", frames, NOWHERE, NOWHERE)


WITHIN = [
    ("train_epoch", "validate"),
    ("train_one_epoch", "evaluate", "forward"),
    ("main", "_train_epoch", "loop", "_validate"),
    ("run_train_epoch", "do_eval_epoch"),
    ("training_epoch", "run_validation"),
    ("fit_epoch", "val"),
]
BESIDE = [
    ("train_epoch",),
    ("main", "validate"),
    ("validate", "train_epoch"),
    ("train", "validate"),
    ("train_epoch", "validate_inputs"),
    ("train_epoch", "run_sanity_check", "validate"),
    ("_sanity_check", "train_epoch", "validate"),
    ("train_epochs", "validate"),
]


@pytest.mark.parametrize("functions", WITHIN)
def test_an_epoch_that_had_come_to_its_validation(functions: tuple[str, ...]) -> None:
    """It is called from within it."""
    assert validates(out_of(*functions))


@pytest.mark.parametrize("functions", BESIDE)
def test_what_validates_before_the_first_step(functions: tuple[str, ...]) -> None:
    """The inputs, a model that is new; and the loop over all epochs may begin with it."""
    assert not validates(out_of(*functions))


def verdict(folder: Path, functions: tuple[str, ...]) -> Verdict:
    frames = "".join(
        f'  File "/w/train.py", line 9, in {name}\n    step()\n'
        for name in ("<module>", *functions)
    )
    text = f"Traceback (most recent call last):\n{frames}ValueError: bad shape (3, 4)\n"
    (folder / "train.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("functions", WITHIN)
def test_steps_had_been_made_then(tmp_path: Path, functions: tuple[str, ...]) -> None:
    """Though none was read, so that it is not sure."""
    found = verdict(tmp_path, functions)

    assert (found.code, found.confidence < 0.8) == ("A3", True)


@pytest.mark.parametrize("functions", BESIDE)
def test_none_is_known_to_have_been_made(tmp_path: Path, functions: tuple[str, ...]) -> None:
    assert verdict(tmp_path, functions).code == "A1"
