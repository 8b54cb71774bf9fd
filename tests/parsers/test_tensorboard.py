"""Tags of the frameworks are told apart: what is a loss, a rate, an evaluation, or none."""

from __future__ import annotations

import math

import pytest

from flatline.model import Progress
from flatline.parsers.tensorboard import Reader


def read(text: str, reader: Reader | None = None) -> list[Progress]:
    line = f"2023-11-14T22:13:20.250000Z tfevents step 120: {text}"
    return list((reader or Reader()).feed(line))


@pytest.mark.parametrize(
    "tags",
    (
        "train/loss=1.5 train/grad_norm=0.25 train/learning_rate=2e-05 train/epoch=0.5",  # HF
        "reduced_train_loss=1.5 grad_norm=0.25 lr=2e-05 epoch=0.5",  # NeMo
        "train_loss_step=1.5 grad_norm=0.25 lr-AdamW=2e-05 epoch=0.5",  # Lightning
        "lm-loss=1.5 grad-norm=0.25 learning-rate=2e-05 epoch=0.5",  # Megatron
        "lm_loss=1.5 grad-norm=0.25 learning_rate=2e-05 lm_loss_vs_samples=9 epoch=0.5",
        "learning/loss=1.5 learning/grad_norm=0.25 learning/current_learning_rate=2e-05"
        " train/epoch=0.5",  # MaxText
        "loss_metrics/global_avg_loss=1.5 loss_metrics/global_max_loss=7 grad_norm=0.25 lr=2e-05"
        " x/epoch=0.5",  # torchtitan
        "Loss/train=1.5 Loss/valid=3 grad_norm=0.25 Learning_Rate=2e-05 epoch=0.5",
    ),
)
def test_the_frameworks_tags_are_known(tags: str) -> None:
    """Loss, gradient norm, learning rate and epoch at the step."""
    point = next(p for p in read(tags) if p.kind == "train")

    assert (point.step, point.loss, point.grad_norm, point.lr, point.epoch) == (
        120, 1.5, 0.25, 2e-05, 0.5,
    )  # fmt: skip


@pytest.mark.parametrize(
    "tags, step_s, throughput, unit",
    (
        ("loss=1 perf/step_time_seconds=2.5 perf/per_device_tokens_per_sec=900", 2.5, 900.0,
         "tokens/s/device"),
        ("loss=1 iteration-time=2.5", 2.5, None, None),
        ("loss=1 time_metrics/end_to_end(s)=2.5 throughput(tps)=900", 2.5, 900.0, "tokens/s"),
        ("loss=1 train_step_timing_in_s=2.5 train/train_samples_per_second=9", 2.5, 9.0,
         "samples/s"),
    ),
)  # fmt: skip
def test_pace_is_read(
    tags: str, step_s: float, throughput: float | None, unit: str | None
) -> None:
    """Seconds a step and what is done in one, with its unit."""
    (point,) = read(tags)

    assert (point.step_s, point.throughput, point.throughput_unit) == (step_s, throughput, unit)


@pytest.mark.parametrize("tag", ("eval/loss", "val_loss", "Loss/valid", "validation/lm-loss",
                                 "lm-loss-validation", "test/loss", "eval/avg_loss"))  # fmt: skip
def test_a_loss_of_held_out_data_is_an_evaluation(tag: str) -> None:
    """And no training point."""
    assert [(p.kind, p.loss) for p in read(f"{tag}=0.5")] == [("eval", 0.5)]


@pytest.mark.parametrize("tags", ("lr=1e-4", "accuracy=0.5", "epoch=3", "loss_scale=65536",
                                  "lm-loss-vs-samples=2", "glossary=1", "lossless=2"))  # fmt: skip
def test_what_is_no_loss_makes_no_point(tags: str) -> None:
    """A learning rate alone is no step."""
    assert read(tags) == []


def test_samples_and_epochs_are_not_counted_as_steps() -> None:
    """DeepSpeed's axis is samples, Keras's `epoch_loss` counts epochs."""
    (samples,) = read("Train/Samples/train_loss=2.5")
    (epoch,) = read("epoch_loss=2.5")

    assert (samples.step, samples.loss) == (None, 2.5)
    assert (epoch.step, epoch.epoch, epoch.loss) == (None, 120.0, 2.5)


def test_a_loss_that_is_nan_was_written() -> None:
    """It is not an absent one."""
    (point,) = read("train/loss=nan")

    assert point.loss is not None
    assert math.isnan(point.loss)


def test_where_a_reward_is_logged_the_loss_is_not_meant_to_fall() -> None:
    """From then on in the file."""
    reader = Reader()

    assert read("train/loss=0.1 train/reward=0.5", reader)[0].falling is False
    assert read("train/loss=0.2", reader)[0].falling is False


@pytest.mark.parametrize(
    ("tags", "balance"),
    [
        ("lm_loss=2.5 load_balancing_loss=1.25", 1.25),
        ("learning/loss=2.5 learning/moe_lb_loss=0.03", 0.03),
        ("lm_loss=2.5 aux_loss=1.25", None),
    ],
)
def test_the_balance_of_experts(tags: str, balance: float | None) -> None:
    """An auxiliary loss may be of anything."""
    (point,) = read(tags)
    assert point.balance == balance
