"""Losses and paces in words that other lines of the same formats do not use."""

from __future__ import annotations

import math

import pytest

from flatline.judging.leads import STEP_LIKE
from flatline.parsers import composer, plain, tqdm, ultralytics

BAR = "Epoch 61/200: 100%|█████| 5994/5994 [58:27<00:00,  1.70 batches/s, {}]"


@pytest.mark.parametrize(
    ("postfix", "loss"),
    [
        ("Loss 5.8861, Raw Acc (0.51, 2.66)", 5.8861),
        ("train loss 0.5, lr 1e-4", 0.5),
        ("packet loss 3.0, lr 1e-4", None),
        ("kl_loss_weight 3.0, lr 1e-4", None),
        ("weight loss 12.0%, lr 1e-4", None),
    ],
)
def test_a_loss_without_a_sign_behind_a_bar(postfix: str, loss: float | None) -> None:
    """Other things are lost as well."""
    told = [point.loss for point in tqdm.Reader().feed(BAR.format(postfix))]

    assert [one for one in told if one is not None] == ([] if loss is None else [loss])


def test_rows_of_a_results_file() -> None:
    """YOLOv5's: three losses, their sum, targets and size."""
    row = "     3/149    0.611G    0.05    0.03    0.02    0.10    27    640    0.5    0.4"
    (point,) = ultralytics.Reader().feed(row)
    (nothing,) = ultralytics.Reader().feed(row.replace("0.03", "nan"))

    assert (point.epoch, point.loss) == (3.0, pytest.approx(0.10))
    assert nothing.loss is not None
    assert math.isnan(nothing.loss)


def test_batches_a_second_are_a_steps_time() -> None:
    """They stand below the heading that counts the step; evaluation has its own."""
    reader = composer.Reader()
    list(reader.feed("[batch=20/20000]:"))
    (point,) = reader.feed("\t Train throughput/batches_per_sec: 0.5000")
    list(reader.feed("[Eval batch=1/10] Eval on eval data:"))

    assert (point.step, point.step_s) == (20, 2.0)
    assert list(reader.feed("\t Train throughput/batches_per_sec: 0.5000")) == []


@pytest.mark.parametrize(
    ("line", "like"),
    [
        ("[004100] d: 0.8508; g: 0.9042; real: 1.4458; time: 2.22", True),
        ("000010 | nll: 5.2, acc: 0.1, lr: 3e-4, wall: 20", True),
        ("[004100] workers: 4", False),
        ("10 files: 3, dirs: 2", False),
    ],
)
def test_rows_that_look_like_steps(line: str, like: bool) -> None:
    """A counter and three numbers by name."""
    assert (STEP_LIKE.search(line) is not None) is like


@pytest.mark.parametrize(
    ("line", "step_s"),
    [
        ("step   50/19560 | loss 7.500000 | norm 3.1 | lr 1.20e-04 | (234.5 ms | 34567 tok/s)",
         0.2345),
        ("| step     50 | loss  5.221 | gnorm  2.93 |   2092.7 ms |  1002.1k tok/s |", 2.0927),
        ("step 50 loss 5.221 801ms 12.3k tokens/s", 0.801),
        ("step 50 loss 5.221 data 801 ms 12.3k tokens/s", math.nan),
        ("step 50 loss 5.221 | eval 801 ms | 12.3k tokens/s", math.nan),
        ("step 50 loss 5.221 | 801 ms | 3.2 steps", math.nan),
    ],
)  # fmt: skip
def test_milliseconds_without_a_name_beside_throughput(line: str, step_s: float) -> None:
    """What makes the throughput is the step's time; a part of it has a name."""
    reader = plain.Reader()
    told = [
        point.step_s for n in range(50, 61) for point in reader.feed(line.replace("50", str(n), 1))
    ]

    assert told
    assert (math.nan if told[-1] is None else told[-1]) == pytest.approx(step_s, nan_ok=True)


@pytest.mark.parametrize(
    ("line", "speed"),
    [
        ("step: 1155 loss: 3.7244 grad_norm: 0.615 tok/s/gpu: 2947 mem: 141.2GiB", 2947.0),
        ("step 5 loss 3.1 step_time 10.040 tok/s 6527", 6527.0),
        ("step 5 loss 3.1 801ms 12.3k tok/s", 12300.0),
        ("step 5 loss 3.1 lr 3e-4 6527.5 tok/s/gpu", 6527.5),
    ],
)
def test_a_number_before_the_name_of_a_throughput_is_another_ones(line: str, speed: float) -> None:
    """Where a word before it names it."""
    reader = plain.Reader()
    told = [point.throughput for _ in range(4) for point in reader.feed(line)]

    assert told[-1] == speed
