"""The lines that tutorials and often-copied scripts print."""

from __future__ import annotations

import math
import re
from types import ModuleType

import pytest

from flatline.model import Progress
from flatline.parsers import lightning, plain, tqdm, ultralytics


def said(form: ModuleType, *lines: str) -> list[Progress]:
    reader = form.Reader()
    found = []
    for line in lines:
        values = list(reader.feed(line))
        assert not values or any(re.search(t, line) for t in form.TRIGGERS), line
        found += values
    return found


@pytest.mark.parametrize(
    ("lines", "epoch"),
    [
        (("Epoch: 03 | Epoch Time: 0m 7s", "\tTrain Loss: 2.250 | Train Acc: 60.20%"), 3),
        (("Epoch 3/25", "-----", "train Loss: 2.2500 Acc: 0.71"), 3),
        (("Epoch 3", "-------------------", "Average loss: 2.250"), 3),
        (("===> Epoch: 3", "Loss: 2.250"), 3),
        (("[Epoch 3]", "training loss = 2.250, elapsed 12 s"), 3),
        (("Epoch: 3", " [====>....]  Step: 6ms | Tot: 2s63ms | Loss: 2.250 | Acc: 3.1%"), 3),
    ],
)
def test_a_loss_below_its_epoch_s_line(lines: tuple[str, ...], epoch: float) -> None:
    (point,) = said(plain, *lines)
    assert (point.kind, point.epoch, point.step, point.loss) == ("train", epoch, None, 2.25)


def test_the_held_out_loss_below_an_epoch_s_line_is_an_evaluation() -> None:
    below = "\tTrain Loss: 2.25 | x", "\t Val. Loss: 2.5 |  Val. PPL: 9"
    train, held_out = said(plain, "Epoch: 03 | Time: 0m 7s", *below)
    assert (train.kind, held_out.kind, held_out.loss) == ("train", "eval", 2.5)


@pytest.mark.parametrize(
    ("line", "step", "epoch", "loss"),
    [
        ("Epoch: 0003 cost= 2.250000000", None, 3.0, 2.25),
        ("Cost after iteration 300: 2.25", 300, None, 2.25),
        ("Cost after epoch 3: nan", None, 3.0, math.nan),
        ("Step 3: {'train_loss': 2.25, 'lr': 0.0003}", 3, None, 2.25),
        ("{'step': 3, 'train_loss': 2.25}", 3, None, 2.25),
        ("tensor(2.2500, device='cuda:0', grad_fn=<NllLossBackward0>)", None, None, 2.25),
    ],
)
def test_a_line_that_says_it_all(
    line: str, step: int | None, epoch: float | None, loss: float
) -> None:
    (point,) = said(plain, line)
    assert (point.kind, point.step, point.epoch) == ("train", step, epoch)
    assert point.loss == loss or (math.isnan(loss) and math.isnan(point.loss or 0))
    assert point.falling


def test_the_loss_of_one_of_two_adversaries_need_not_fall() -> None:
    line = "Steps : 5, Gen Loss Total : 40.250, Mel-Spec. Error : 0.344, s/b : 0.401"
    (point,) = said(plain, line)
    assert (point.step, point.loss, point.falling) == (5, 40.25, False)


@pytest.mark.parametrize(
    "lines",
    [
        ("Epoch 3 done, batch_cost: 0.41234 s",),
        ("Epoch 3, total cost: 12.12345 s",),
        ("step 3 time cost 0.41",),
        ("{'loss': 2.25, 'learning_rate': 1e-5, 'epoch': 0.5}",),
        ("Loss: CrossEntropyLoss()",),
        ("Epoch 3/25", "Lossless audio: 44100"),
        ("Epoch 3/25", "Best loss so far 2.25"),
    ],
)
def test_what_is_none(lines: tuple[str, ...]) -> None:
    assert not said(plain, *lines)


def test_a_bar_that_counts_images_gives_epochs() -> None:
    bar = "Epoch 2/5:  50%|█████     | 2290/4580 [05:00<05:00,  7.10img/s, loss (batch)=2.25]"
    (point,) = said(tqdm, "Epoch 1/5:   0%|  | 0/4580 [00:00<?, ?img/s, loss (batch)=3]", bar)
    assert (point.epoch, point.step, point.loss) == (2.5, None, 2.25)
    assert not said(tqdm, "Reading:  50%|█████     | 2290/4580 [05:00<05:00,  7.10img/s, split=a]")


def test_lightning_s_lost_loss_is_told_where_a_bar_is_drawn_once() -> None:
    """The text `nan` is the same at every step: it is no loss of a step before."""
    lines = [f"Epoch 0:  {n}%|# | {n}/100 [00:0{n}<01:00,  1.2it/s, v_num=1, train_loss=nan]"
             for n in range(1, 6)]  # fmt: skip
    points = said(lightning, *lines)
    assert [p.step for p in points] == [1, 2, 3, 4, 5]
    assert all(math.isnan(p.loss or 0.0) for p in points)


def test_a_bar_of_epochs_that_lightning_draws() -> None:
    lines = [f"Epoch {n + 1}/60:   3%|# | {n}/60 [00:02<01:12,  1.2it/s, v_num=1, "
             "train_loss_step=403, train_loss_epoch=415]" for n in (0, 1, 2)]  # fmt: skip
    points = said(lightning, *lines)
    assert [(p.epoch, p.epochs, p.loss) for p in points] == [(1, 60, 403), (2, 60, 403)]


def test_ultralytics_rows_without_their_heading() -> None:
    """An excerpt begins below it; three losses stand first in every task's table."""
    row = (
        "   3/99     6.71G        nan      0.030      0.010        20       640: 100%|#| 10/10 [0"
    )
    (point,) = said(ultralytics, row)
    assert point.epoch == 3
    assert math.isnan(point.loss or 0.0)
