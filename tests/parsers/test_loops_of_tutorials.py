"""The lines that tutorials and often-copied scripts print."""

from __future__ import annotations

import math
import re
from types import ModuleType

import pytest

from flatline.model import Progress
from flatline.parsers import (
    boosting,
    caffe,
    lightning,
    logger_table,
    plain,
    seq2seq,
    tfod,
    tqdm,
    ultralytics,
)


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


@pytest.mark.parametrize(
    ("line", "epoch"),
    [
        ("[11:20:01] Epoch 3/90: val_acc 0.7110", 3),
        ("epoch=3, lr 0.1, test top1: 71.10 (412 s)", 3),
        ("Epoch: 3 | train_acc 0.81 | val_acc 0.71", 3),
        ("Epoch 3: best val_acc 0.7110", None),
        ("Epoch 3 iter 20/90 acc: 0.7110", None),
        ("Epoch 3: map 12 workers", None),
    ],
)
def test_what_an_epoch_came_to_is_an_evaluation(line: str, epoch: int | None) -> None:
    """Where no loss is told."""
    points = said(plain, line)
    assert [(one.kind, one.epoch) for one in points] == ([("eval", epoch)] if epoch else [])


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


@pytest.mark.parametrize(
    "line", ["第3轮 训练损失: 2.25", "第 3 轮，损失值：2.25", "轮次: 3, 损失: 2.25 准确率: 0.5"]
)
def test_a_loop_that_speaks_chinese(line: str) -> None:
    (point,) = said(plain, line)
    assert (point.kind, point.epoch, point.loss) == ("train", 3.0, 2.25)


def test_a_loss_and_an_evaluation_in_chinese() -> None:
    train, held_out = said(plain, "迭代: 300 训练损失: 2.25 验证损失: 2.5")
    assert (train.kind, train.step, train.loss) == ("train", 300, 2.25)
    assert (held_out.kind, held_out.loss) == ("eval", 2.5)


def test_a_block_of_a_logger() -> None:
    block = ["----------", "| grad_norm | 0.5     |", "| loss      | 2.25    |",
             "| samples   | 12800   |", "| step      | 1.2e+03 |", "----------"]  # fmt: skip
    (point,) = said(logger_table, *block)
    assert (point.step, point.loss, point.grad_norm, point.falling) == (1200, 2.25, 0.5, True)


def test_a_block_of_a_policy_s_training() -> None:
    """Its first block has no loss yet."""
    first = [
        "| rollout/        |      |",
        "|    ep_rew_mean  | 20.1 |",
        "|    iterations   | 1    |",
    ]
    second = [
        *first[:2],
        "|    iterations   | 2    |",
        "| train/ |  |",
        "|    loss         | 2.25 |",
    ]
    (point,) = said(logger_table, *first, *second)
    assert (point.step, point.loss, point.falling) == (2, 2.25, False)


@pytest.mark.parametrize(
    ("line", "step", "loss"),
    [
        ("[12]\ttrain-mlogloss:2.25000\teval-mlogloss:2.5", 12, 2.25),
        ("[12]\tvalidation_0-rmse:2.25000", 12, 2.25),
        ("[12]\ttraining's binary_logloss: 2.25\tvalid_1's auc: 0.5", 12, 2.25),
        ("12:\tlearn: 2.2500000\ttotal: 1.2s\tremaining: 3s", 12, 2.25),
        ("[12]\ttrain-auc:0.91\teval-auc:0.9", 12, 0.91),
        ("[12]\ttrain-error:0.09\teval-error:0.1", 12, None),
        ("[12]\tvalid_0's l2: 2.5", 12, None),
    ],
)
def test_rounds_of_boosting(line: str, step: int, loss: float | None) -> None:
    (point,) = said(boosting, line)
    assert (point.step, point.loss) == (step, loss)


def test_the_losses_of_a_dict_below_their_step() -> None:
    lines = ["INFO:tensorflow:Step 100 per-step time 0.303s",
             "INFO:tensorflow:{'Loss/classification_loss': 1.25,", " 'Loss/total_loss': 2.25,",
             " 'learning_rate': 0.0133}"]  # fmt: skip
    (point,) = said(tfod, *lines)
    assert (point.step, point.loss, point.step_s) == (100, 2.25, 0.303)
    assert not said(tfod, *lines[1:])


def test_the_translation_tutorial() -> None:
    (point,) = said(seq2seq, "1m 2s (- 20m 3s) (5000 6%) 2.2500")
    assert (point.step, point.loss) == (5000, 2.25)


def test_what_lightning_s_own_mean_is_beside_nemo_s_loss() -> None:
    """It is never fed there, and stays nan."""
    bar = ("Epoch 0:   3%|# | {n}/201 [00:1{n}<01:00, 13.71s/it, loss=nan, v_num=, val_loss_step="
           "11.30, reduced_train_loss=2.25, gradient_norm=1.011]")  # fmt: skip
    points = said(lightning, *(bar.format(n=n) for n in (1, 2, 2, 3, 3)))
    assert {(p.loss_name, p.loss) for p in points if p.loss} == {("reduced_train_loss", 2.25)}


def test_a_step_beside_a_drawn_bar() -> None:
    (point,) = said(plain, "Training ━━━━━╸━━━━━  24% step: 7200 loss: 2.250 :: Speed: 0.21it/s")
    assert (point.step, point.loss) == (7200, 2.25)
    assert not said(plain, "Epoch 3/9 ━━━╸━━━ 7/201 0:00:01 • 0:00:12 2.3it/s loss: 2.250")


def test_numbers_that_are_printed_and_nothing_else() -> None:
    """They may be anything, so only what is no number tells."""
    points = said(plain, "tensor(2.2500, device='cuda:0')", "tensor(nan, device='cuda:0')")
    assert [p.falling for p in points] == [False, False]
    assert not said(plain, "tensor([2.25, 2.5], device='cuda:0')", "tensor(3)")


def test_caffe_says_that_it_is_done() -> None:
    (end,) = said(caffe, "I0511 21:04:57.324327  6604 solver.cpp:327] Optimization Done.")
    assert end.kind == "finished"
    assert not said(caffe, "I0511 21:04:57.3  6604 notes.cpp:3] Optimization Done.")


def test_blocks_of_a_policy_s_training_that_name_no_loss() -> None:
    """An iteration is followed by an update; those that name a loss are told once."""
    rows = [f"|    iterations      | {n}     |" for n in range(1, 5)]
    assert [point.step for point in said(logger_table, *rows)] == [2, 3]
    told = [row for n in range(1, 4) for row in (rows[n], "|    loss            | 2.25   |")]
    assert [point.step for point in said(logger_table, *told)] == [2, 3, 4]
    steps = ["| step            | 10    |", "| step            | 20    |"]
    assert said(logger_table, *steps) == []


@pytest.mark.parametrize(
    "clock", ["", "2026-03-04 09:00:55 ", "[09:00:55] ", "09:00:55,120 INFO "]
)
def test_batches_below_the_line_of_their_epoch(clock: str) -> None:
    """They are counted on over the epochs, whatever clock stands before them; NaN is a value."""
    points = said(
        plain,
        *(f"{clock}{text}" for epoch in (1, 2) for text in (
            f"Epoch {epoch}/90 lr 0.001000", "  batch 100/437 loss 2.250 acc 0.48",
            "  batch 400/437 loss nan acc 0.48", "val: acc 0.4725 mIoU 0.37258")),
    )  # fmt: skip
    assert [one.step for one in points] == [100, 400, 537, 837]
    assert [one.epoch for one in points] == [1, 1, 2, 2]
    assert math.isnan(points[-1].loss or 0)


@pytest.mark.parametrize("said_of", ["Validation batch 3/40", "test batch 3/40", "eval: batch"])
def test_a_clock_before_a_batch_of_another_set(said_of: str) -> None:
    """Only a batch that begins the message is one of training."""
    points = said(plain, f"2026-03-04 09:00:55   {said_of} loss 2.5")
    assert not [one for one in points if one.kind == "train"]
