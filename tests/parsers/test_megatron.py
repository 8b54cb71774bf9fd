"""Megatron's iteration line in its dialects, and what may not be taken from it."""

from __future__ import annotations

import math
import re

import pytest

from flatline.model import Progress
from flatline.parsers import megatron

TAIL = "number of skipped iterations:   {} | number of nan iterations:   {} |"


def said(*lines: str) -> list[Progress]:
    reader = megatron.Reader()
    found = []
    for line in lines:
        values = list(reader.feed(line))
        assert not values or any(re.search(t, line) for t in megatron.TRIGGERS), line
        found += values
    return found


def test_the_iteration_line_of_today() -> None:
    """Everything it says, in seconds and per second."""
    (point,) = said(
        " [2026-01-01 09:44:55.123456] iteration      100/    1000 | consumed samples: 51200"
        " | elapsed time per iteration (ms): 250.0 | throughput per GPU (TFLOP/s/GPU): 412.5 |"
        " learning rate: 1.500000E-04 | global batch size:   512 | lm loss: 6.500000E+00 |"
        " loss scale: 1.0 | grad norm: 1.234 | " + TAIL.format(0, 0)
    )
    assert (point.step, point.planned, point.loss, point.loss_name) == (100, 1000, 6.5, "lm loss")
    assert (point.step_s, point.lr, point.grad_norm) == (0.25, 1.5e-4, 1.234)
    assert (point.throughput, point.throughput_unit) == (412.5, "TFLOP/s/GPU")
    assert not point.skipped


@pytest.mark.parametrize(
    ("line", "loss", "step_s"),
    [
        (
            " iteration      100/    1000 | elapsed time per iteration (ms): 520.0 | "
            "learning rate 1.5E-04 | lm loss 6.5E+00 | loss scale 1024.0 |",
            6.5,
            0.52,
        ),
        (
            "  samples/sec: 123.4 | iteration 100/  320000 | elapsed time per iteration (ms): "
            "500.0 | learning rate: 1.000E-04 | lm_loss: 2.5E+00 | loss scale: 4096.0 | "
            + TAIL.format(0, 0),
            2.5,
            0.5,
        ),
        (
            " iteration       10/ 3125000 | consumed samples:          960 | elapsed time per "
            "iteration (s): 7.25 | lm loss: 1.0E+01 | grad norm: 178.5 | " + TAIL.format(0, 0),
            10.0,
            7.25,
        ),
        (
            " iteration 5/ 9 | consumed samples: 40 | elapsed time per iteration (ms): 1000.0 | "
            "load_balancing_loss: 1.0E+00 | reduced_train_loss: 3.0E+00 | loss scale: 1.0 |",
            3.0,
            1.0,
        ),
        (
            "[20260501 05:42:27][rank-7/8][INFO ] [--------trainer.py:2560] :  iteration 5/ 9 | "
            "elapsed time per iteration (ms): 1500.0/1480.2 | tokens per GPU (tokens/s/GPU): "
            "9801.4/9807.3 | lm loss: 2.0E+00 | loss scale: 1.0 | " + TAIL.format(0, 0),
            2.0,
            1.5,
        ),
    ],
)
def test_dialects(line: str, loss: float, step_s: float) -> None:
    """2019 without colons, GPT-NeoX, seconds, a MoE whose first loss is a side one, Primus."""
    (point,) = said(line)
    assert (point.loss, point.step_s) == (loss, step_s)


def test_a_skipped_iteration_has_no_loss_and_is_kept() -> None:
    """Loss scaling skips the first steps of a run: no loss is printed."""
    (point,) = said(
        " iteration        1/       5 | consumed samples: 32 | elapsed time per iteration (ms): "
        "3902.7 | learning rate: 6.0E-05 | loss scale: 4294967296.0 | " + TAIL.format(1, 0)
    )
    assert point.skipped
    assert point.loss is None


def test_nan_iterations_without_a_loss_are_a_nan_loss() -> None:
    """An average is printed only above zero, so a NaN shows in its count alone."""
    (point,) = said(
        " iteration       10/     100 | consumed samples: 320 | elapsed time per iteration (ms): "
        "3902.7 | loss scale: 1.0 | grad norm: inf | " + TAIL.format(1, 1)
    )
    assert point.loss is not None
    assert math.isnan(point.loss)
    assert point.grad_norm == math.inf


def test_a_nan_gradient_claims_no_loss() -> None:
    """bf16 counts no NaN iterations: the gradient norm is all the line says."""
    (point,) = said(
        " iteration 5426/  250000 | consumed samples: 43408 | elapsed time per iteration (ms): "
        "4247.9 | loss scale: 1.0 | grad norm: nan | " + TAIL.format(0, 0)
    )
    assert point.loss is None
    assert point.grad_norm is not None
    assert math.isnan(point.grad_norm)
    assert not point.skipped


@pytest.mark.parametrize(
    ("line", "kind", "step", "loss"),
    [
        (
            " validation loss at iteration 100 | lm loss value: 6.5E+00 | lm loss PPL: 6.7E+02 |",
            "eval",
            100,
            6.5,
        ),
        (
            " validation loss at iteration 50 on validation set | lm loss value: 6.5E+00 |",
            "eval",
            50,
            6.5,
        ),
        (
            " validation loss at the end of training for val data | lm loss value: 5.5E+00 |",
            "eval",
            None,
            5.5,
        ),
        (
            "  successfully saved checkpoint at iteration     500 to /c",
            "checkpoint_saved",
            500,
            None,
        ),
        (
            "  successfully saved checkpoint from iteration     500 to /c [ t 1/1, p 1/1 ]",
            "checkpoint_saved",
            500,
            None,
        ),
        (
            "  successfully loaded checkpoint from /c [ t 1/8, p 1/1 ] at iteration 500",
            "checkpoint_loaded",
            500,
            None,
        ),
        ("Loading checkpoint and starting from iteration 500", "checkpoint_loaded", 500, None),
        ("    will not load any checkpoints and will start from random", "fresh", None, None),
        (
            "[exiting program at iteration 500] datetime: 2026-01-01 09:44:55",
            "finished",
            500,
            None,
        ),
        ("exiting program after 1190.5 minutes", "finished", None, None),
        ("[after training is done] datetime: 2026-01-01 09:44:55", "finished", None, None),
    ],
)
def test_messages(line: str, kind: str, step: int | None, loss: float | None) -> None:
    """Validation, checkpoints that are whole, fresh starts and ends."""
    (value,) = said(line)
    assert (value.kind, value.step, value.loss) == (kind, step, loss)


def test_the_plan_is_read_and_the_end_names_the_last_step() -> None:
    """The end marker itself names none."""
    plan, _, end = said(
        "setting training iterations to 5",
        " iteration        5/       5 | consumed samples: 40 | lm loss: 9.5E+00 | "
        + TAIL.format(0, 0),
        "[after training is done] datetime: 2026-01-01 09:44:55",
    )
    assert plan.planned == 5
    assert (end.kind, end.step) == ("finished", 5)


@pytest.mark.parametrize(
    "line",
    [
        "saving checkpoint at iteration     500 to /c in torch_dist format",
        " loading checkpoint from /c at iteration 500",
        "setting training data start iteration to 0",
        "  train_iters ..................................... 1000",
        "  loss_scale ...................................... None",
        "[Rank 0] (after 1 iterations) memory (MB) | allocated: 10857.5625",
        "time (ms) | forward: 90.5 | backward: 180.1",
        "[exiting program after receiving SIGTERM.] datetime: 2026-01-01 09:44:55",
        "iteration 10/1000 | loss: 2.3 | lr: 1e-4",
    ],
)
def test_near_misses_say_nothing(line: str) -> None:
    """Beginnings, settings, memory and timers, a signal, somebody else's line."""
    assert said(line) == []


def test_waits_for_data_and_the_experts_balance_are_read() -> None:
    """Timers and auxiliary losses stand in the line where they are asked for."""
    (said,) = megatron.Reader().feed(
        " [2026-01-14 05:35:21] iteration        2/     379 | consumed samples: 1024"
        " | elapsed time per iteration (ms): 6207.0 | learning rate: 3.0E-05 | lm loss: 1.08E+01"
        " | load_balancing_loss: 1.615215E+00 | batch-generator: 22.05 | loss scale: 1.0 |"
    )
    assert (said.loss_name, said.data_s, said.balance) == ("lm loss", 0.02205, 1.615215)
