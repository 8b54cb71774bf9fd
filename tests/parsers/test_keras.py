"""Keras: the bar below an epoch, in every dialect."""

from __future__ import annotations

import math
import re
from typing import cast

import pytest

from flatline.model import Progress
from flatline.parsers import LineFormat, keras, logger_table, reader_of


def said(*lines: str) -> list[Progress]:
    reader = keras.Reader()
    found = []
    for line in lines:
        values = list(reader.feed(line))
        assert any(re.search(t, line) for t in keras.TRIGGERS), line
        found += values
    return found


@pytest.mark.parametrize(
    "bar",
    [
        "10/58 ━━━━━━━━━━━━━━━━━━━━ 32s 500ms/step - accuracy: 0.25 - loss: 1.75",
        "10/58 [====>.........................] - ETA: 1:23 - loss: 1.75 - accuracy: 0.25",
        "10/58 - 1s - 500ms/step - accuracy: 0.25 - loss: 1.75",
        "10/58 - 1s - loss: 1.75 - accuracy: 0.25 - 1s/epoch - 500ms/step",
        " 10/58 [====>.........................] - 2s 500ms/step - loss: 1.75",
    ],
)
def test_dialects(bar: str) -> None:
    """Keras 2 and 3, verbose 1 and 2."""
    (point,) = said("Epoch 1/3", bar)
    assert (point.kind, point.step, point.planned, point.loss) == ("train", 10, 174, 1.75)
    assert point.epoch == 1.0
    assert point.step_s in (0.5, None)


def test_steps_count_over_epochs() -> None:
    """Each epoch has 58 batches; a bar drawn again is no step."""
    points = said(
        "Epoch 1/2",
        " 1/58 ━━━━━━━━━━ 32s 573ms/step - loss: 1.75",
        "58/58 ━━━━━━━━━━ 1s 4ms/step - loss: 1.5",
        "58/58 ━━━━━━━━━━ 1s 4ms/step - loss: 1.5 - val_loss: 1.25",
        "Epoch 2/2",
        " 1/58 ━━━━━━━━━━ 3s 57ms/step - loss: nan",
    )
    assert [(p.kind, p.step, str(p.loss)) for p in points] == [
        ("train", 1, "1.75"),
        ("train", 58, "1.5"),
        ("train", 59, "nan"),
    ]


def test_a_full_bar_with_a_held_out_loss_is_also_an_evaluation() -> None:
    """verbose=2 prints one line an epoch."""
    train, held_out = said(
        "Epoch 1/3", "58/58 - 1s - 11ms/step - loss: 1.5 - val_accuracy: 0.25 - val_loss: 1.25"
    )
    assert (train.kind, train.step, train.loss) == ("train", 58, 1.5)
    assert (held_out.kind, held_out.step, held_out.loss) == ("eval", 58, 1.25)


def test_the_bar_of_evaluate_is_an_evaluation() -> None:
    """It looks like training, but its epoch is over."""
    points = said(
        "Epoch 1/1",
        "58/58 ━━━━━━━━━━ 1s 4ms/step - loss: 1.5",
        " 1/13 ━━━━━━━━━━ 1s 4ms/step - loss: 1.75",
        "13/13 ━━━━━━━━━━ 0s 1ms/step - accuracy: 0.97 - loss: 0.25",
    )
    assert [(p.kind, p.loss) for p in points] == [("train", 1.5), ("eval", 0.25)]


def test_without_an_epoch_nothing_is_training() -> None:
    """`evaluate` alone."""
    (value,) = said("313/313 [==============================] - 0s 1ms/step - loss: 0.07")
    assert (value.kind, value.loss) == ("eval", 0.07)


def test_a_resumed_fit_counts_from_its_first_epoch() -> None:
    """`initial_epoch=3`: three epochs went before."""
    (point,) = said("Epoch 4/10", "10/100 ━━━━━━━━━━ 1s 12ms/step - loss: 2.5")
    assert (point.step, point.planned) == (310, 1000)


def test_an_unknown_length_plans_nothing_until_it_is_known() -> None:
    """A generator's first epoch."""
    first, last, second = said(
        "Epoch 1/2",
        "     10/Unknown 1s 12ms/step - loss: 2.5",
        "20/20 ━━━━━━━━━━ 1s 12ms/step - loss: 2.25",
        "Epoch 2/2",
        " 5/20 ━━━━━━━━━━ 1s 12ms/step - loss: 2.0",
    )
    assert (first.step, first.planned) == (10, None)
    assert (last.step, second.step, second.planned) == (20, 25, 40)


def test_the_first_tensorflow_printed_no_count() -> None:
    """verbose=2 of 2017: the epoch alone."""
    (point,) = said("Epoch 2/5", " - 1s - loss: 2.5 - acc: 0.5")
    assert (point.kind, point.step, point.epoch, point.loss) == ("train", None, 2.0, 2.5)


@pytest.mark.parametrize(
    ("line", "kind", "epoch"),
    [
        ("Epoch 00001: loss improved from inf to 1.5, saving model to m", "checkpoint_saved", 1.0),
        ("Epoch 3: saving model to ckpt/3.keras", "checkpoint_saved", 3.0),
        ("Epoch 5: early stopping", "finished", 5.0),
    ],
)
def test_callbacks(line: str, kind: str, epoch: float) -> None:
    """Checkpoints and a deliberate end."""
    (value,) = said(line)
    assert (value.kind, value.epoch) == (kind, epoch)


def test_an_invalid_loss_is_a_nan_at_its_batch() -> None:
    """`TerminateOnNaN`."""
    (value,) = said("Batch 10: Invalid loss, terminating training")
    assert (value.kind, value.step) == ("train", 10)
    assert value.loss is not None
    assert math.isnan(value.loss)


@pytest.mark.parametrize(
    "line",
    [
        "13/13 ━━━━━━━━━━━━━━━━━━━━ 0s 2ms/step",
        "Epoch 3/10",
        "Epoch 5: ReduceLROnPlateau reducing learning rate to 0.0001.",
        "Restoring model weights from the end of the best epoch: 3.",
    ],
)
def test_near_misses_say_nothing(line: str) -> None:
    """`predict`, an epoch's own line, other callbacks."""
    assert list(keras.Reader().feed(line)) == []


FULL = "80/80 [==============================] - 90s 1s/step - loss: 0.75"


def test_a_bar_glued_to_the_number_before_it_is_read_by_its_width() -> None:
    """Copies lose the carriage return between two drawings; the count is as wide as the total."""
    first = " 1/80 [..............................] - ETA: 3s - loss: 1.5"
    half = "40/80 [==============>...............] - ETA: 2s - loss: 1.25"
    (point,) = said("Epoch 2/4", first + half)
    assert (point.step, point.planned, point.loss) == (120, 320, 1.25)
    (point,) = said("Epoch 1/4", " - loss: 1.2512" + FULL)
    assert (point.step, point.loss) == (80, 0.75)


def test_a_held_out_loss_tells_a_bar_of_fit_without_its_epoch() -> None:
    """`evaluate` and `predict` print none; which epoch it was is not known, nor of which fold. One
    that was not redrawn here may be shown of another run."""
    assert [p.kind for p in said(FULL + " - acc: 0.5 - val_loss: 0.5")] == ["eval"]
    (point,) = said("ETA: 0s - acc: 0.8312" + FULL + " - acc: 0.5 - val_loss: 0.5")
    assert (point.kind, point.step, point.loss) == ("train", None, None)
    assert [p.kind for p in said("acc: 0.8312" + FULL)] == ["eval"]


def test_a_count_beyond_its_total_is_no_bar() -> None:
    assert said("ETA: 0s - 0.5999/80 [=====] - 90s 1s/step - loss: 0.75 - val_loss: 0.5") == []


STAMPS = [
    "2026-04-02 07:20:31 ",
    "2026-04-02T07:20:31.250Z ",
    "[2026-04-02 07:20:31,250] INFO - ",
    "2026-04-02 07:20:31,250 | INFO | ",
    "Apr  2 07:20:31 ",
    "Thu Apr  2 07:20:31 2026: ",
    "[07:20:31] ",
]


@pytest.mark.parametrize("stamp", STAMPS)
def test_behind_a_stamp_of_others(stamp: str) -> None:
    """As `ts` puts one before each line, and loggers that output is led through."""
    reader, found = reader_of(cast(LineFormat, keras)), []
    for line in ("Epoch 2/3", "58/58 - 12s - loss: 1.5 - 12s/epoch - 206ms/step"):
        found += [*reader.feed(stamp + line)]

    assert [(p.step, p.loss) for p in found if isinstance(p, Progress)] == [(116, 1.5)]


@pytest.mark.parametrize(
    ("epoch", "read"),
    [
        ("Epoch 2/3 [2026-04-02 07:20:31]", True),
        ("Epoch 2/3 07:20:31", True),
        ("Epoch 2/3 [12]", False),
        ("Epoch 2/3 of 2026-04-02", False),
    ],
)
def test_before_a_stamp_of_others(epoch: str, read: bool) -> None:
    """As a callback prints when an epoch begins."""
    reader, found = reader_of(cast(LineFormat, keras)), []
    for line in (epoch, "58/58 - 12s - loss: 1.5 - 12s/epoch - 206ms/step"):
        found += [*reader.feed(line)]

    assert [p.kind for p in found if isinstance(p, Progress)] == ["train" if read else "eval"]


@pytest.mark.parametrize(
    "lead", ["trained on 2026-04-02 07:20:31 ", "58/58 ", "2026-04-02 ", "build 07:20:31 "]
)
def test_what_is_no_stamp_stays(lead: str) -> None:
    reader = reader_of(cast(LineFormat, keras))

    assert [*reader.feed(lead + "Epoch 2/3")] == []
    assert [*reader.feed("58/58 - 12s - loss: 1.5 - 12s/epoch - 206ms/step")] == [
        Progress("eval", loss=1.5)
    ]


def test_rows_of_tables_keep_their_first_bar() -> None:
    """A stamp ends before it; the table is another format's, told by the same start."""
    reader, found = reader_of(cast(LineFormat, logger_table)), []
    for row in ("| train/step | 40 |", "| train/loss | 0.25 |"):
        found += [*reader.feed("2026-04-02 07:20:31 " + row)]

    assert [(p.step, p.loss) for p in found if isinstance(p, Progress)] == [(40, 0.25)]
