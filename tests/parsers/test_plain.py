"""Hand-written loops: many shapes, counters that start anew, and what only looks like a step."""

from __future__ import annotations

import math
import re

import pytest

from flatline.model import Progress
from flatline.parsers import plain


def said(*lines: str) -> list[Progress]:
    reader = plain.Reader()
    found = []
    for line in lines:
        values = list(reader.feed(line))
        assert not values or any(re.search(t, line) for t in plain.TRIGGERS), line
        found += values
    return found


def test_a_line_says_all_it_says() -> None:
    """Step of plan, loss, gradient norm, seconds, tokens per second."""
    (point,) = said(
        "2026-01-01 15:47:30,151 [rank3] INFO step 10/2000 loss 5.0625 grad_norm 0.375 "
        "step_time 43.5 ms tok/s 9436"
    )
    assert (point.kind, point.step, point.planned) == ("train", 10, 2000)
    assert (point.loss, point.grad_norm, point.step_s) == (5.0625, 0.375, 0.0435)
    assert (point.throughput, point.throughput_unit) == (9436.0, "tokens/s")


@pytest.mark.parametrize(
    ("line", "step", "planned", "loss"),
    [
        ("step: 10, loss: 2.25", 10, None, 2.25),
        ("step 0 loss 4.5", 0, None, 4.5),
        ("Step 100 | loss 2.25 | lr 1e-4", 100, None, 2.25),
        ("[100/1000] loss=2.25", 100, 1000, 2.25),
        ("iter 100: loss 2.25, time 120.50ms, mfu 12.25%", 100, None, 2.25),
        ("Step 1,234/10,000 | Loss: 2.25 | 12.5 samples/s", 1234, 10000, 2.25),
        (
            "[titan] 2026-01-01 16:04:46,338 - root - INFO - step: 14  loss:  3.25  grad_norm:  "
            "0.83  memory:  9.46GiB(64.99%)  tps: 7,282  tflops: 0.52  mfu: 0.17%",
            14,
            None,
            3.25,
        ),
        (
            "iteration: 10 / 1000 | consumed_tokens: 20.5M | time_per_iteration_ms: 1.2K | "
            "tokens_per_sec: 12.5K | lm_loss: 10.25 | lr: 0.0001 | grad_norm: 1.25",
            10,
            1000,
            10.25,
        ),
        ("iteration 10/1000 | loss: 2.25 | lr: 1e-4", 10, 1000, 2.25),
        (
            "step    1/19560 | loss 11.25 (+nanz)| norm 15.3 (+nanz)| lr 6.99e-07 | 123.67 ms | "
            "50.0% bf16 MFU | 12345 tok/s",
            1,
            19560,
            11.25,
        ),
        ("step:100/1375 train_loss:3.25 train_time:12345ms step_avg:123.5ms", 100, 1375, 3.25),
        (
            " eta: 0:10:00  iter: 19  total_loss: 2.25  loss_cls: 1.2  loss_box_reg: 0.3",
            19,
            None,
            2.25,
        ),
        (
            "Iter(train) [  50/40000]  lr: 1.0e-02  eta: 5:00:00  time: 0.5  loss: 2.25",
            50,
            40000,
            2.25,
        ),
        ("INFO:tensorflow:loss = 2.25, step = 100 (12.345 sec)", 100, None, 2.25),
        ("Average loss at step  2000 :  5.25", 2000, None, 5.25),
        ("Step 50/ 100000; acc: 1.2; ppl: 1234.5; xent: 9.75; lr: 0.001", 50, 100000, 9.75),
        (
            "I0101 12:00:00.000000 140 logging_writer.py:48] [100] lr=0.1, loss=2.25",
            100,
            None,
            2.25,
        ),
        (
            "I1009 21:18:40.195406 3 metric_writers.py:41] [50] steps_per_sec=1.2, train/loss=1.5",
            50,
            None,
            1.5,
        ),
        ("[p0] step 20 loss 491520.0", 20, None, 491520.0),
        ('{"step": 10, "loss": 2.25, "lr": 0.0001}', 10, None, 2.25),
        ("step: 10  acc: 0  loss:  2.25  grad: 1.2e+00  wps: 1.2e+4  lr: 1e-4", 10, None, 2.25),
        ("train iter: 100 loss_net: 0.25 loss_scale: 785.4200 norm: 1.5", 100, None, 0.25),
        ("training step 7 - aux_loss 0.125 - loss 1.5", 7, None, 1.5),
    ],
)
def test_shapes_without_epochs(line: str, step: int, planned: int | None, loss: float) -> None:
    """One training point each."""
    (point,) = said(line)
    assert (point.kind, point.step, point.planned, point.loss) == ("train", step, planned, loss)


@pytest.mark.parametrize(
    ("line", "step", "planned", "epoch", "loss"),
    [
        (
            "Epoch: [0][  10/5005]\tTime  0.234 ( 0.345)\tLoss 6.5000e+00 (6.9523e+00)",
            10,
            None,
            0,
            6.5,
        ),
        (
            "Epoch: [0]  [  20/3658]  eta: 0:10:00  lr: 0.001  loss: 2.5 (2.4)  time: 0.1",
            20,
            None,
            0,
            2.5,
        ),
        (
            "Epoch: [1]  [  20/3658]  eta: 0:10:00    time: 0.1  data: 0.0  max mem: 9",
            20,
            None,
            1,
            None,
        ),
        ("12:00:00 INFO ep 1 10/100 loss=2.5", 10, None, 1, 2.5),
        ("[epoch   2/120] train_dice_ce=0.75 val_dice=0.4", None, None, 2, 0.75),
        ("Epoch(train)  [1][ 10/100]  lr: 1.0e-03  time: 0.5  loss: 2.5", 10, None, 1, 2.5),
        ("Epoch [1][10/100]\tlr: 1.000e-02, eta: 0:10:00, time: 0.5, loss: 2.5", 10, None, 1, 2.5),
        (
            "Train: 0 [  50/1251 (  4%)]  Loss: 6.5 (6.95)  Time: 0.345s, 2968.12/s",
            50,
            None,
            0,
            6.5,
        ),
        ("Train: [0/300][5/1251]\teta 1 day lr 0.000001\tloss 6.5 (6.91)", 5, 375300, 0, 6.5),
        (
            "| epoch   1 |   200/ 2983 batches | lr 20.00 | ms/batch 12.3 | loss  7.5",
            200,
            None,
            1,
            7.5,
        ),
        (
            "epoch 001:    100 / 1000 loss=10.5, nll_loss=9.8, num_updates=100, gnorm=2.5",
            100,
            None,
            1,
            10.5,
        ),
        ("epoch: 1 step: 10, loss is 2.5", 10, None, 1, 2.5),
        ("Epoch: 0, Batch: 7, Global Step: 7, Step Time: 1.5, Loss: 327.5", 7, None, 0, 327.5),
        ("[1,  2000] loss: 2.5", 2000, None, 1, 2.5),
        (
            "Epoch 1 | iter 10 step 2 | loss train: 2.5, val: n/a | iter time: 123.50 ms",
            2,
            None,
            1,
            2.5,
        ),
        ("epoch 0 loss 0.875", None, None, 0, 0.875),
        ("Epoch: 2/5 Step: 10/200 Loss: tensor(2.5, device='cuda:0')", 210, None, 2, 2.5),
    ],
)
def test_shapes_with_epochs(
    line: str, step: int | None, planned: int | None, epoch: float, loss: float | None
) -> None:
    """Counters within an epoch and beside one."""
    (point,) = said(line)
    assert (point.step, point.planned, point.epoch, point.loss) == (step, planned, epoch, loss)


def test_samples_are_not_steps() -> None:
    """The MNIST example counts them; how far the epoch is remains."""
    (point,) = said("Train Epoch: 1 [30000/60000 (50%)]\tLoss: 2.5")
    assert (point.step, point.epoch, point.loss) == (None, 1.5, 2.5)


def test_a_nested_counter_is_counted_on() -> None:
    """100 batches an epoch, epochs from 0."""
    points = said(
        "Epoch: [0][ 90/100]\tLoss 6.5",
        "Epoch: [1][  0/100]\tLoss 6.25",
        "Epoch: [2][ 10/100]\tLoss 6.0",
    )
    assert [p.step for p in points] == [90, 100, 210]


def test_a_counter_beside_an_epoch_is_its_own_once_it_falls() -> None:
    """Then its total is an epoch's, and the plan is all epochs'."""
    points = said(
        "Epoch [1/10], Step [100/600], Loss: 2.5",
        "Epoch [1/10], Step [500/600], Loss: 2.25",
        "Epoch [2/10], Step [100/600], Loss: 2.0",
    )
    assert [(p.step, p.planned) for p in points] == [(100, None), (500, 6000), (700, 6000)]


def test_a_counter_beside_an_epoch_is_the_runs_once_both_rise() -> None:
    """600 steps in all."""
    points = said(
        "epoch 1 step 100/600 loss 2.5",
        "epoch 2 step 300/600 loss 2.25",
    )
    assert [(p.step, p.planned) for p in points] == [(100, None), (300, 600)]


def test_a_counter_without_a_total_is_counted_on() -> None:
    """By the steps that were seen."""
    points = said(
        "epoch 1 step 10 train_loss=2.5",
        "epoch 1 step 20 train_loss=2.25",
        "epoch 2 step 10 train_loss=2.0",
    )
    assert [p.step for p in points] == [10, 20, 40]


@pytest.mark.parametrize("text", ["nan", "NaN", "inf", "-inf", "-0.25", "1e30", "Infinity"])
def test_any_value_is_kept(text: str) -> None:
    """NaN, inf and negative losses are data."""
    (point,) = said(f"step 7 loss {text} lr 1e-3")
    assert str(point.loss) == str(float(text))
    assert point.lr == 1e-3


def test_a_shape_is_read_alike_with_other_numbers() -> None:
    """Whether the numbers are short or long, and the loss a number or not."""
    points = said(
        "step 9 loss 9.5 lr 1e-3",
        "step 10 loss 10.25 lr 1e-3",
        "step 11 loss nan lr 1e-3",
        "step 12 loss -8 lr 0.001",
        "step 1300000000000000000 loss 1.0 lr 1e-3",
    )
    assert [p.step for p in points[:4]] == [9, 10, 11, 12]
    assert [str(p.loss) for p in points[:4]] == ["9.5", "10.25", "nan", "-8.0"]


def test_a_loss_padded_with_noughts() -> None:
    """Python's `f"{loss:07.5f}"` writes so, and the number before is no other layout's."""
    points = said("Step 10: loss = 3.98384", "Step 20: loss = 0000nan", "Step 30: loss = 0000inf")
    assert [str(p.loss) for p in points] == ["3.98384", "nan", "inf"]


def test_non_finite_losses_told_in_words() -> None:
    """With a step, or as the whole message."""
    first, second = said("WARNING: NaN loss at step 1234", "Loss is nan, stopping training")
    assert (first.step, str(first.loss)) == (1234, "nan")
    assert (second.step, str(second.loss)) == (None, "nan")


def test_validation_is_an_evaluation() -> None:
    """By the name of the loss, or by what stands before the counter."""
    values = said(
        "step:125/1375 val_loss:3.25 train_time:12345ms",
        "| end of epoch   1 | time: 10.12s | valid loss  5.25 | valid ppl   273.1",
        "Validation loss at iteration 100: 2.25",
        "Test: [ 10/100]\tTime  0.234 ( 0.345)\tLoss 6.25 (6.95)",
        "eval step 10 loss 2.5",
    )
    assert [(v.kind, v.step, v.loss) for v in values] == [
        ("eval", 125, 3.25),
        ("eval", None, 5.25),
        ("eval", 100, 2.25),
        ("eval", None, 6.25),
        ("eval", None, 2.5),
    ]


def test_a_line_with_both_losses_is_both() -> None:
    """nanoGPT's estimate."""
    train, held_out = said("step 2000: train loss 1.75, val loss 1.875")
    assert (train.kind, train.step, train.loss) == ("train", 2000, 1.75)
    assert (held_out.kind, held_out.step, held_out.loss) == ("eval", 2000, 1.875)


def test_a_best_loss_is_not_the_loss() -> None:
    """It is carried along from before."""
    train, held_out = said("Epoch 3: train_loss=0.5 val_loss=0.625 best_val_loss=0.25")
    assert (train.loss, held_out.loss) == (0.5, 0.625)


@pytest.mark.parametrize(
    "line",
    [
        "step:4 - global_seqlen/min:210047.000 - actor/pg_loss:0.010 - critic/score/mean:-0.643",
        "[0/25][50/1583]\tLoss_D: 1.25\tLoss_G: 5.5\tD(x): 0.5",
        "step 10 loss 0.5 reward 1.25",
        "step 10: {'train/loss': 0.5, 'train/pg_loss': -0.25, 'train/ppo_kl': 0.0625}",
        "step 10 policy_loss 0.5 value_loss 1.25",
        "step 10 loss 6.5 d_loss 0.5 g_loss 6.0",
        "step 10 train loss: 6.5, disc_loss: 0.5, gen_loss: 6.0",
        '{"step": 10, "loss": 6.5, "episode_return": 1.25}',
    ],
)
def test_losses_that_are_not_meant_to_fall(line: str) -> None:
    """Policies, adversaries, anything beside a reward."""
    (point,) = said(line)
    assert not point.falling


def test_one_side_alone_makes_no_adversary() -> None:
    """A sum beside the loss of a generator that has no opponent, as of speech."""
    (point,) = said("step 10 loss 6.5 gen_loss 6.0 mel_loss 0.5")
    assert point.falling


def test_a_header_and_the_loss_below_it() -> None:
    """OLMo and Composer print a step over several lines."""
    points = said(
        "[step=10/1000,epoch=0]",
        "    optim/total_grad_norm=1.5",
        "    train/CrossEntropyLoss=10.5",
        "[batch=11/1000]:",
        "\t Train loss/train/total: 2.25",
    )
    assert [(p.step, p.planned, p.loss) for p in points] == [
        (10, 1000, None),
        (10, None, 10.5),
        (11, 1000, None),
        (11, None, 2.25),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "logging_steps=10",
        "max_steps: 1000",
        "loss_scale: 65536",
        "step 10 loss_scale 65536",
        "  loss_scale ...................... 10  step 3",
        "Namespace(steps=400, slow_rank=-1, loss=0.5, step=10)",
        "TrainingArguments(output_dir='x', logging_steps=10, step=10, loss=0.1)",
        "Config: step=10, loss=0.5",
        "+ python train.py step 10 loss 0.5",
        "python train.py step 10 --loss 0.5",
        "wandb:       train/loss 2.3 step 10",
        "| 10 | 2.3 | 0.5 |",
        "|    loss                 | 20.1        |",
        "    loss = criterion(output, target)  # step 10 loss 2.3",
        '    print(f"step {step} loss {loss:.4f}")',
        "best loss 2.3 at step 100",
        "Step 100: new best loss 2.3!",
        "Early stopping at step 100, best val loss: 2.3",
        "Final loss: 0.1 at step 1000",
        "target loss 2.0 step 10",
        "Saved checkpoint at step 100, loss 2.3",
        "Loaded checkpoint (step 100, loss 2.3)",
        "Resuming at step 100, loss 2.3",
        "steps per epoch: 100, loss weights: 0.5",
        "batch_size: 32, loss: 0.5",
        "epochs: 10 loss: mse",
        "num_steps 1000 loss_coef 0.1",
        "Number of steps 1000 and loss 0.5",
        "Epoch: [1] Total time: 0:10:00 (0.1234 s / it)",
        "[45/58] : (avg (std), med) = (  0.000 [   0.000] (  0.000),   0.000)  # actor/ppo_kl",
        "[12/100] Building CXX object loss.cpp.o",
        "step:0 - val-core/openai/gsm8k/acc/mean@1:0.508",
        "GPU step 1 loss%: 10%",
        "step 10 aux_loss 0.125",
        "step 120ms loss 2.3",
        "{'loss': 2.3, 'learning_rate': 5e-05, 'epoch': 0.02, 'step': 100}",
        "completed step: 71, seconds: 30.309, TFLOP/s/device: 207.973, loss: 2.345",
        "steps: 10 loss: 2.5 iter time (s): 0.512 samples/sec: 12.345",
        "10/100 ━━━━ 1s 12ms/step - accuracy: 0.1 - loss: 2.3",
        "Epoch 3:  12%|█▏  | 120/1000 [00:10<01:10, 12.40it/s, v_num=0, train_loss=2.3]",
    ],
)
def test_near_misses_say_nothing(line: str) -> None:
    """Configuration, code, summaries, checkpoints, side losses, and other formats' lines."""
    assert said(line) == []


def test_a_batch_without_an_epoch_is_a_step() -> None:
    """A loop of one pass counts batches alone; NaN is a value."""
    first, second = said("batch: 0, main_loss: 7.5, total_loss: nan", "batch: 1, main_loss: nan")
    assert [(p.step, p.epoch) for p in (first, second)] == [(0, None), (1, None)]
    assert math.isnan(second.loss or 0.0)


def test_a_validation_batch_is_no_step() -> None:
    """Only a batch that begins the message counts."""
    assert not [p for p in said("Validation batch 3, loss: 2.5") if p.kind == "train"]


def test_phases_below_an_epoch_line() -> None:
    """The loop of the transfer-learning tutorial: the epoch stands above its two losses."""
    points = said(
        "Epoch 0/24", "----------", "train Loss: 2.5 Acc: 0.25", "val Loss: 2.0 Acc: 0.5"
    )
    assert [(p.kind, p.step, p.epoch, p.loss) for p in points] == [
        ("train", None, 0.0, 2.5),
        ("eval", None, 0.0, 2.0),
    ]


def test_phases_without_an_epoch_line_say_nothing() -> None:
    """Evaluation scripts print the same line."""
    assert said("train Loss: 2.5 Acc: 0.25") == []


def test_a_loss_alone_is_a_point_without_a_step() -> None:
    """`print("Loss:", loss.item())` at each step, until a better line is known."""
    values = [p.loss for p in said("Loss: 2.5", "loss = 2.25", "train loss: 2.0")]
    assert values == [2.5, 2.25, 2.0]
    assert [p.step for p in said("step 3 loss 2.5", "Loss: 9.0")] == [3]


@pytest.mark.parametrize(
    "line",
    [
        "Test loss: 2.5",
        "Average loss: 2.5",
        "Final loss: 2.5",
        "Loss: 2.5 (target 2.0)",
        "Loss: 4 GB",
    ],
)
def test_what_may_be_a_summary_is_no_point(line: str) -> None:
    """A loss alone counts only in the plainest words."""
    assert said(line) == []


@pytest.mark.parametrize(
    ("line", "kind", "step_s"),
    [
        ('{"step": 5, "loss": 2.5, "step_time_s": 0.5}', "train", 0.5),
        ('{"step": 5, "loss": 2.5, "step_time_ms": 500.0}', "train", 0.5),
        ('{"step": 5, "train": {"loss": 2.5}, "iter_time": 0.5}', "train", 0.5),
        ('{"step": 5, "val": {"loss": 2.5}}', "eval", None),
    ],
)
def test_rows_of_json(line: str, kind: str, step_s: float | None) -> None:
    """A unit may stand in a name, and what was measured on in the name around a loss's."""
    (point,) = said(line)

    assert (point.kind, point.step, point.loss, point.step_s) == (kind, 5, 2.5, step_s)


@pytest.mark.parametrize(
    ("line", "took_s"),
    [
        ("step 10 loss 0.8042 sec/step 1.050", 1.05),
        ("step 10 lr 0.1 loss 0.8042, s/step: 1.05", 1.05),
        ("step 10 loss 0.8042 1.05 s/step", 1.05),
        ("step 10 loss 0.8042 grad_norm 0.5 ms/step 105.0", 0.105),
    ],
)
def test_a_unit_behind_a_loss_is_the_next_numbers(line: str, took_s: float) -> None:
    """And the loss no step's time."""
    (point,) = said(line)
    assert (point.loss, point.step_s) == (0.8042, took_s)


def test_a_part_of_so_many_is_no_speed() -> None:
    """The unit behind it names the number that follows."""
    (point,) = plain.Reader().feed("step 50 loss 0.103 queue_depth 30/32 samples/s 836863")

    assert (point.throughput, point.throughput_unit) == (836863.0, "samples/s")


def test_a_place_in_the_code_is_no_step() -> None:
    """loguru names module, function and line before the message."""
    line = "2026-01-22 08:01:31.204 | INFO     | longctx.train:step:208 - step {}/6000 loss={} x=1"
    reader = plain.Reader()
    told = [one for n in (10, 20) for one in reader.feed(line.format(n, 2.0 - n / 100))]

    assert [(one.step, one.planned) for one in told] == [(10, 6000), (20, 6000)]
