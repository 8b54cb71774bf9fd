"""MaxText's step line and its relatives."""

from __future__ import annotations

import re

import pytest

from flatline.model import Progress
from flatline.parsers import maxtext


def said(*lines: str) -> list[Progress]:
    reader = maxtext.Reader()
    found = []
    for line in lines:
        values = list(reader.feed(line))
        assert not values or any(re.search(t, line) for t in maxtext.TRIGGERS), line
        found += values
    return found


@pytest.mark.parametrize(
    ("rest", "loss"),
    [
        (
            "TFLOP/s/device: 207.973, MFU: 8.32%, Tokens/s/device: 3295.125, "
            "total_weights: 6291456, loss: 2.345",
            "2.345",
        ),
        ("TFLOP/s/device: 207.973, Tokens/s/device: 3295.125, total_weights: 9, loss: nan", "nan"),
        ("TFLOP/s/device: 207.973, Tokens/s/device: 3295.125, loss: -0.5", "-0.5"),
        ("Tokens/s/device: 3295.125, total_weights: 9, loss: inf, lm_loss: 2.0", "inf"),
        (
            "Tokens/s/device: 3295.125, loss: 2.5, main_model_loss: 2.25, mtp_loss: 0.25",
            "2.5",
        ),
    ],
)
def test_the_step_line_with_and_without_its_fields(rest: str, loss: str) -> None:
    """The loss is the field of that name alone, and NaN, inf and negative ones are data."""
    (point,) = said(f"completed step: 71, seconds: 30.309, {rest}")
    assert (point.step, point.step_s, str(point.loss)) == (71, 30.309, loss)
    assert (point.throughput, point.throughput_unit) == (3295.125, "tokens/s/device")


def test_a_step_line_without_a_loss_is_a_step() -> None:
    """A newer trainer prints only times."""
    (point,) = said(
        "completed step: 5, seconds: 1.250, train_step_time_ms: 1250.00, TFLOP/s/device: 207.9, "
        "Tokens/s/device: 3295.1, Tokens/s/chip: 3295.1"
    )
    assert (point.step, point.loss) == (5, None)


def test_rates_of_the_forks() -> None:
    """The norm before clipping, where both are printed."""
    (point,) = said(
        "completed step: 0, seconds: 1.5, TFLOP/s/device: 207.9, loss: 9.5, lr: 3.0e-04, "
        "grad_norm: 1.0, raw_grad_norm: 7.5"
    )
    assert (point.step, point.lr, point.grad_norm) == (0, 3e-4, 7.5)
    assert (point.throughput, point.throughput_unit) == (207.9, "TFLOP/s/device")


def test_the_last_planned_step_is_the_end() -> None:
    """Steps count from 0: the last of 50 is 49."""
    values = said(
        "Config param steps: 50",
        "completed step: 48, seconds: 1.5, loss: 2.5",
        "completed step: 49, seconds: 1.5, loss: 2.5",
    )
    assert [(v.kind, v.step, v.planned) for v in values] == [
        ("plan", None, 50),
        ("train", 48, 50),
        ("train", 49, 50),
        ("finished", 49, 50),
    ]


@pytest.mark.parametrize(
    ("line", "kind", "step", "loss"),
    [
        ("eval metrics after step: 39, loss=4.75, total_weights=8751", "eval", 39, 4.75),
        ("eval metrics after step: 39, eval_loss: 2.5", "eval", 39, 2.5),
        ("average loss after step 39: eval_loss=4.75, total_weights=8.0", "eval", 39, 4.75),
        ("restoring from this run's directory step 100", "resume", 100, None),
        ("restoring from this run's directory latest step           100", "resume", 100, None),
        ("No existing checkpoints found, not restoring checkpoint.", "fresh", None, None),
        ("Saved a checkpoint at step 100.", "checkpoint_saved", 100, None),
        ("saved a checkpoint at step 100", "checkpoint_saved", 100, None),
    ],
)
def test_messages(line: str, kind: str, step: int | None, loss: float | None) -> None:
    """Evaluation, restore, fresh start, checkpoint."""
    (value,) = said(line)
    assert (value.kind, value.step, value.loss) == (kind, step, loss)


SAVED = "saved a checkpoint at step {}"


def every(stride: int, last: int) -> list[str]:
    return [f"completed step: {n}, seconds: 1.2, loss: 2.5" for n in range(0, last + 1, stride)]


@pytest.mark.parametrize(
    ("lines", "ends"),
    [
        ([*every(4, 3496), SAVED.format(3499)], True),
        ([*every(1, 1499), SAVED.format(1499)], True),
        ([SAVED.format(0), *every(10, 1490), SAVED.format(1499)], True),
        ([*every(4, 3496), SAVED.format(3500)], False),  # one of those made each so many steps
        ([*every(4, 3416), SAVED.format(3417)], False),  # where it was taken back, say
        ([*every(4, 996), SAVED.format(999), *every(4, 1996), SAVED.format(1999)], False),
        ([*every(4, 3000), SAVED.format(3499)], False),  # steps are missing between
        ([SAVED.format(3499)], False),
        (["Config param steps: 9000", *every(4, 3496), SAVED.format(3499)], False),
    ],
)
def test_a_checkpoint_of_the_last_step(lines: list[str], ends: bool) -> None:
    """Saves count from 0, plans are round: only the end's comes right before a round number."""
    told = said(*lines)

    assert (told[-1].kind == "finished") is ends
    assert [one.kind for one in told].count("checkpoint_saved") == len(
        [line for line in lines if line.startswith("saved")]
    )


@pytest.mark.parametrize(
    "line",
    [
        "Config param checkpoint_period: 200",
        "Config param eval_steps: 10",
        "Config param steps_per_something: 10",
        "checkpoint manager exists so trying to load this run's existing checkpoint",
        "Started an asynchronous checkpoint save for step 100",
        "Completed eval step 3",
        "[INFO] Completed step: inventory",
        "Total memory size: 1.5 GB, Output size: 0.4 GB",
    ],
)
def test_near_misses_say_nothing(line: str) -> None:
    """Settings, attempts, beginnings, other people's steps."""
    assert said(line) == []
