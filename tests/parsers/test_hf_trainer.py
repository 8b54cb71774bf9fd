"""The Hugging Face Trainer: dicts of both dialects, and which bars count as training."""

from __future__ import annotations

import math
import re

import pytest

from flatline.model import Progress
from flatline.parsers import hf_trainer


def said(*lines: str) -> list[Progress]:
    reader = hf_trainer.Reader()
    found = []
    for line in lines:
        values = list(reader.feed(line))
        assert not values or any(re.search(t, line) for t in hf_trainer.TRIGGERS), line
        found += values
    return found


def test_a_dict_of_transformers_4_is_one_training_point() -> None:
    """Numbers stand bare; the dict names no step."""
    (point,) = said("{'loss': 2.3125, 'grad_norm': 1.07, 'learning_rate': 5e-05, 'epoch': 0.02}")
    assert (point.kind, point.loss, point.grad_norm, point.lr) == ("train", 2.3125, 1.07, 5e-05)
    assert point.epoch == 0.02
    assert point.step is None


def test_a_dict_of_transformers_5_says_the_same_in_strings() -> None:
    """Values are quoted from version 5 on."""
    old = said("{'loss': 5.377, 'grad_norm': 1.262, 'learning_rate': 9.167e-06, 'epoch': 1.562}")
    new = said(
        "{'loss': '5.377', 'grad_norm': '1.262', 'learning_rate': '9.167e-06', 'epoch': '1.562'}"
    )
    assert old == new


@pytest.mark.parametrize("text", ["nan", "'nan'", "inf", "'-inf'", "-0.5", "'0'"])
def test_a_loss_that_is_not_a_plain_number_is_kept(text: str) -> None:
    """NaN, inf, zero and negative losses are values."""
    (point,) = said(f"{{'loss': {text}, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 0.5}}")
    expected = float(text.strip("'"))
    assert point.loss == expected or (math.isnan(expected) and math.isnan(point.loss or 0.0))
    assert point.grad_norm is not None
    assert math.isnan(point.grad_norm)


def test_values_in_a_wrapper_are_read() -> None:
    """NumPy 2 and torch print their scalars with a name around them."""
    (point,) = said(
        "{'loss': np.float64(2.25), 'grad_norm': tensor(1.5, device='cuda:0'), 'epoch': 0.1}"
    )
    assert (point.loss, point.grad_norm) == (2.25, 1.5)


def test_a_dict_with_a_step_of_its_own_gives_it() -> None:
    """ms-swift names step and plan, old transformers the step."""
    swift, old = said(
        "{'loss': 1.25, 'grad_norm': 1.0, 'learning_rate': 1e-05, 'epoch': 0.01, "
        "'global_step/max_steps': '7/873', 'train_speed(iter/s)': 0.25}",
        "{'loss': 2.5, 'learning_rate': 5e-05, 'epoch': 0.02, 'step': 500}",
    )
    assert (swift.step, swift.planned, swift.throughput) == (7, 873, 0.25)
    assert old.step == 500


@pytest.mark.parametrize(
    "line",
    [
        "{'loss': '0', 'grad_norm': '1.9', 'learning_rate': '1e-06', 'reward': '15.5', "
        "'reward_std': '0.58', 'epoch': '0.01'}",
        "{'loss': 0.6931, 'grad_norm': 2.1, 'learning_rate': 5e-07, 'rewards/chosen': 0.0, "
        "'logps/chosen': -100.5, 'epoch': 0.01}",
        "{'loss': 0.5, 'learning_rate': 5e-07, 'kl': 0.25, 'epoch': 0.01}",
        "{'objective/kl': 0.5, 'policy/approxkl_avg': 0.01, 'loss/policy_avg': -0.02, "
        "'loss/value_avg': 0.3, 'lr': 3e-06, 'episode': 64, 'epoch': 0.01}",
    ],
)
def test_a_loss_beside_rewards_is_not_meant_to_fall(line: str) -> None:
    """GRPO, DPO, KTO and PPO optimise something else."""
    (point,) = said(line)
    assert point.kind == "train"
    assert not point.falling
    assert point.loss is not None


def test_an_evaluation_is_told_from_training() -> None:
    """`eval_loss` and metrics without a loss are evaluations, `train_runtime` is the end, with the
    mean loss of all steps."""
    kinds = [
        (value.kind, value.loss)
        for value in said(
            "{'eval_loss': '5.381', 'eval_runtime': '0.0091', 'epoch': '0.9375'}",
            "{'eval_accuracy': 0.5, 'eval_runtime': 1.5, 'epoch': 1.0}",
            "{'train_runtime': '0.4973', 'train_loss': '5.383', 'epoch': '1.875'}",
        )
    ]
    assert kinds == [("eval", 5.381), ("eval", None), ("finished", 5.383)]


@pytest.mark.parametrize(
    ("line", "kind", "step", "planned"),
    [
        ("  Total optimization steps = 1,500", "plan", None, 1500),
        ("O^O/ \\_/ \\    Total batch size = 8 | Total steps = 60", "plan", None, 60),
        ("  Continuing training from global step 500", "resume", 500, None),
        (
            "Checkpoint detected, resuming training at out/checkpoint-250. To avoid this",
            "resume",
            250,
            None,
        ),
        ("Saving model checkpoint to out/checkpoint-30", "checkpoint_saved", 30, None),
        ("Saving model checkpoint to out", "checkpoint_saved", None, None),
        ("Loading model from out/checkpoint-30.", "checkpoint_loaded", 30, None),
        (
            "TrainOutput(global_step=60, training_loss=5.38, metrics={'train_runtime': 0.5})",
            "finished",
            60,
            None,
        ),
        ("Training completed. Do not forget to share your model", "finished", None, None),
    ],
)
def test_messages(line: str, kind: str, step: int | None, planned: int | None) -> None:
    """What the Trainer logs of its plan, its checkpoints and its end."""
    (value,) = said(line)
    assert (value.kind, value.step, value.planned) == (kind, step, planned)


def test_bars_of_the_announced_total_are_steps() -> None:
    """The plan is announced in the same stream."""
    points = said(
        "  Total optimization steps = 16",
        "  0%|          | 0/16 [00:00<?, ?it/s]",
        "  6%|▋         | 1/16 [00:58<14:41, 58.76s/it]",
        "  0%|          | 0/4 [00:00<?, ?it/s]",
        " 50%|█████     | 2/4 [00:01<00:01,  1.50it/s]",
        " 12%|█▎        | 2/16 [02:00<13:54, 59.61s/it]",
    )[1:]
    assert [(p.step, p.planned) for p in points] == [(1, 16), (2, 16)]
    assert points[0].step_s == 58.76


def test_a_bar_through_which_a_training_dict_was_logged_is_training() -> None:
    """The dict takes the step of a slow bar, which tqdm cannot have left stale."""
    points = said(
        "  1%|          | 10/1000 [00:15<25:00,  1.51s/it]",
        "{'loss': 2.5, 'learning_rate': 5e-05, 'epoch': 0.02}",
        "  1%|          | 11/1000 [00:16<25:00,  1.51s/it]",
    )
    assert [(p.step, p.planned, p.loss) for p in points] == [(10, 1000, 2.5), (11, 1000, None)]


def test_a_fast_bar_lends_no_step_to_a_dict() -> None:
    """Above 10 it/s the count that is drawn lags behind."""
    points = said(
        "  2%|▏         | 1/60 [00:00<00:01, 58.35it/s]",
        "{'loss': '5.4', 'learning_rate': '5e-05', 'epoch': '0.1562'}",
    )
    assert [p.step for p in points] == [None]


def test_a_dict_glued_to_its_bar_is_one_point() -> None:
    """Both on one line: one step, one loss."""
    (point,) = said(
        "  0%|          | 2/13000 [00:28<54:33:11, 15.11s/it]"
        "{'loss': 0.25, 'reward': 1.25, 'learning_rate': 5e-05}"
    )
    assert (point.step, point.planned, point.loss) == (2, 13000, 0.25)
    assert (point.since_s, point.step_s) == (28.0, 15.11)


def test_a_bare_bar_is_anybodys_until_it_is_redrawn_in_place_twice() -> None:
    """A loop that prepares data draws each count once; one that logs draws it again."""
    prepares = [f" {n}%|#    | {n}/100 [00:0{n}<01:00,  1.0{n}it/s]" for n in range(1, 9)]
    assert said(*prepares) == []
    logs = [bar for bar in prepares for _ in range(2)]
    assert [p.step for p in said(*logs)] == [2, 3, 4, 5, 6, 7, 8]


def test_a_full_bar_is_not_drawn_again_by_another_rank() -> None:
    """Two nodes, two bars of one total, one after the other: the steps are counted once."""
    bars = ["  0%|     | 0/3 [00:00<?, ?it/s]"]
    bars += [f" {n}%|#    | {n}/3 [00:0{n}<00:03,  1.00s/it]" for n in (1, 2, 3)]
    points = said("  Total optimization steps = 3", *bars, *bars)[1:]
    assert [p.step for p in points] == [1, 2, 3]


def test_a_bar_that_begins_again_unfinished_is_a_restart() -> None:
    """A requeued run appends to its log: its steps are given again."""
    first = [f" {n}%|#    | {n}/9 [00:0{n}<00:09,  1.00s/it]" for n in (1, 2, 3)]
    new = "  0%|     | 0/9 [00:00<?, ?it/s]"
    points = said("  Total optimization steps = 9", new, *first, new, *first)[1:]
    assert [p.step for p in points] == [1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize(
    "line",
    [
        "{'loss': 1.0, 'bbox': 5.0, 'giou': 2.0}",
        "{'loss_weight': 0.5, 'learning_rate': 1e-4, 'epochs': 10}",
        "Loading best model from out/checkpoint-500 (score: 0.9).",
        "  train_loss               =     5.3830",
        "100%|██████████| 523/523 [00:12<00:00, 43.10it/s]",
        "  Gradient Accumulation steps = 4",
        "Writing model shards: 100%|██████████| 1/1 [00:00<00:00, 465.83it/s]",
    ],
)
def test_near_misses_say_nothing(line: str) -> None:
    """Weights, settings, summaries and the bars of others."""
    assert said(line) == []
