"""Lightning's bars and messages, and NeMo's lines."""

from __future__ import annotations

import re

import pytest

from flatline.model import Progress
from flatline.parsers import lightning


def said(*lines: str) -> list[Progress]:
    reader = lightning.Reader()
    found = []
    for line in lines:
        values = list(reader.feed(line))
        assert not values or any(re.search(t, line) for t in lightning.TRIGGERS), line
        found += values
    return found


def test_epochs_count_from_0() -> None:
    """Batch 120 of the fourth epoch of 1,000."""
    (point,) = said(
        "Epoch 3:  12%|█▏        | 120/1000 [00:10<01:10, 12.50it/s, v_num=0, train_loss=2.25]"
    )
    assert (point.step, point.epoch, point.loss) == (3120, 3.12, 2.25)
    assert (point.planned, point.step_s) == (None, 0.08)


def test_a_loss_belongs_to_the_batch_of_the_second_drawing() -> None:
    """Lightning draws the count, then the metrics: the first drawing shows the batch before."""
    points = said(
        "Epoch 0:  22%|██▏  | 4/18 [00:17<01:02,  4.47s/it, loss=10.5, v_num=19]",
        "Epoch 0:  22%|██▏  | 4/18 [00:17<01:02,  4.47s/it, loss=9.75, v_num=19]",
        "Epoch 0:  28%|██▊  | 5/18 [00:20<00:53,  4.14s/it, loss=9.75, v_num=19]",
        "Epoch 0:  28%|██▊  | 5/18 [00:20<00:53,  4.14s/it, loss=nan, v_num=19]",
        "Epoch 0:  28%|██▊  | 5/18 [00:20<00:53,  4.14s/it, loss=nan, v_num=19]",
    )
    assert [(p.step, str(p.loss)) for p in points] == [
        (4, "10.5"),
        (4, "9.75"),
        (5, "None"),
        (5, "nan"),
    ]


@pytest.mark.parametrize(
    ("line", "step", "loss"),
    [
        ("Epoch 0:  34% 1020/3000 [01:04<02:05, 15.73it/s, loss=1.25, v_num=1024]", 1020, 1.25),
        ("Epoch 0: : 120it [00:10, 12.40it/s, v_num=0, loss=2.5]", 120, 2.5),
        ("Epoch 0: |    | 120/? [00:10<00:00, 12.40it/s, v_num=0, train_loss=2.5]", 120, 2.5),
        ("Epoch 2: |    | 120/? [00:10<00:00, 12.40it/s, v_num=0, train_loss=2.5]", None, 2.5),
        (
            "Epoch 0: :   1%|    | 10/1000 [00:10<10:11,  1.20s/it, v_num=, "
            "reduced_train_loss=10.50, global_step=9.000, train_step_timing in s=1.2]",
            10,
            10.5,
        ),
        (
            "Epoch 0:  1%| | 37/1500 [3:12:36<125:24:04,  0.32it/s, v_num=35a4, val_loss=0.5, "
            "train_loss_step=0.25, train_loss_epoch=0.75]",
            37,
            0.25,
        ),
        ("Epoch 0:  1%| | 37/1500 [0:36<5:24, 0.32it/s, v_num=3, val_loss=0.5]", 37, None),
        ("Epoch 0:  1%| | 37/1500 [0:36<5:24, 0.32it/s, v_num=3, train/crps_step=0.5]", 37, 0.5),
        ("Epoch 0:  1%| | 37/1500 [0:36<5:24, 0.32it/s, v_num=3, train/acc=0.5]", 37, None),
        (
            "Epoch 3:  1%| | 37/1500 [0:36<5:24, 0.32it/s, v_num=3, val_wmse_step=0.9, "
            "train_wmse_step=0.5]",
            4537,
            0.5,
        ),
        ("Epoch 0:  1%| | 37/1500 [0:36<5:24, 0.32it/s, v_num=3, train_wacc_step=0.5]", 37, None),
    ],
)
def test_bars(line: str, step: int | None, loss: float | None) -> None:
    """Colab, unknown lengths, NeMo 1, held-out losses behind a training bar."""
    (point,) = said(line)
    assert (point.kind, point.step, point.loss) == ("train", step, loss)


def test_the_rich_bar_names_the_last_epoch() -> None:
    """`Epoch 2/4` is the third of five."""
    (point,) = said("Epoch 2/4  ━━━━━╸━━━ 10/32 0:00:01 • 0:00:10 8.00it/s train_loss: 1.375")
    assert (point.step, point.planned, point.loss, point.step_s) == (74, 160, 1.375, 0.125)


def test_a_rich_bar_too_narrow_for_its_times_is_read() -> None:
    """The rest stands on the next line."""
    (point,) = said("Epoch 2/2  ━━━━━━━━━━━━━ 32/32 0:00:00 •        1044.26it/s train_loss: 1.5")
    assert (point.step, point.planned, point.loss) == (96, 96, 1.5)


def test_a_rich_bar_without_an_end_plans_nothing() -> None:
    """`max_epochs=-1` prints as -2."""
    (point,) = said("Epoch 1/-2 ━━━━━━━━━ 10/100 0:00:01 • 0:00:10 8.12it/s v_num: 0.000")
    assert (point.step, point.planned) == (110, None)


def test_validation_is_an_evaluation_once() -> None:
    """However often its bar is drawn."""
    points = said(
        "Validation DataLoader 0:  10%|█    | 2/20 [00:01<00:10, 2.00it/s]",
        "Validation DataLoader 0: 100%|█████| 20/20 [00:10<00:00, 2.00it/s]",
        "Validation ━━━━━━━━━━╺━━━━━ 1/32 0:00:00 •       1960.14it/s",
    )
    assert [p.kind for p in points] == ["eval", "eval"]


@pytest.mark.parametrize(
    ("line", "kind", "step", "epoch"),
    [
        ("`Trainer.fit` stopped: `max_steps=50` reached.", "finished", 50, None),
        ("`Trainer.fit` stopped: `max_epochs=3` reached.", "finished", None, 3.0),
        (
            "Restored all states from the checkpoint at /x/epoch=3-step=400.ckpt",
            "resume",
            400,
            3.0,
        ),
        ("Restored all states from the checkpoint file at /x/last.ckpt", "resume", None, None),
    ],
)
def test_messages(line: str, kind: str, step: int | None, epoch: float | None) -> None:
    """Planned ends and resumes."""
    (value,) = said(line)
    assert (value.kind, value.step, value.epoch) == (kind, step, epoch)


@pytest.mark.parametrize(
    ("path", "is_resume"),
    [
        ("/x/.scale_batch_size_3f1c.ckpt", False),
        ("/x/.lr_find_9a0e-41.ckpt", False),
        ("/x/scale_batch_size_3f1c.ckpt", True),
        ("/x/lr_find_best.ckpt", True),
        ("/x/.lr_find/last.ckpt", True),
        ("/x/.hidden/epoch=3-step=400.ckpt", True),
        ("/x/last.ckpt", True),
    ],
)
@pytest.mark.parametrize("said_of", ["the checkpoint at ", "the checkpoint file at "])
def test_what_the_tuner_restores_is_no_resume(path: str, is_resume: bool, said_of: str) -> None:
    """It saved that itself before it tried; any other is one."""
    kinds = [value.kind for value in said(f"Restored all states from {said_of}{path}")]

    assert kinds == (["resume"] if is_resume else [])


def test_a_checkpoint_of_the_best_model_is_also_an_evaluation() -> None:
    """It names the monitored loss."""
    step, evaluation, saved = said(
        "Epoch 0, global step 100: 'val_loss' reached 1.25000 (best 1.25000), saving model to "
        "'/x/epoch=0-step=100.ckpt' as top 1"
    )
    assert (step.kind, step.step) == ("train", 100)
    assert (evaluation.kind, evaluation.step, evaluation.loss) == ("eval", 100, 1.25)
    assert (saved.kind, saved.step) == ("checkpoint_saved", 100)


def test_a_model_no_better_tells_only_how_far_the_run_is() -> None:
    """Before any step it tells nothing, and beside a bar nothing new."""
    line = "Epoch 1, global step {}: 'val_loss' was not in top 1"
    assert [(v.kind, v.step) for v in said(line.format(200))] == [("train", 200)]
    assert said(line.format(0)) == []


def test_nemo_names_the_last_iteration() -> None:
    """`iteration 9/99` is the tenth of 100."""
    (point,) = said(
        "Training epoch 0, iteration 9/99 | lr: 1e-05 | global_batch_size: 512 | global_step: 9 | "
        "reduced_train_loss: 10.75 | train_step_timing in s: 12.5 | consumed_samples: 5120"
    )
    assert (point.step, point.planned, point.loss, point.step_s) == (9, 100, 10.75, 12.5)
    assert point.lr == 1e-5
    assert point.balance is None


def test_nemo_prints_the_balance_of_experts() -> None:
    (point,) = said(
        "Training epoch 0, iteration 9/99 | lr: 1e-05 | global_step: 9 | reduced_train_loss: 10.75"
        " | train_step_timing in s: 12.5 | load_balancing_loss: 1.037"
    )
    assert (point.loss, point.balance) == (10.75, 1.037)


@pytest.mark.parametrize(
    "line",
    [
        "Restoring states from the checkpoint path at /x/epoch=3-step=400.ckpt",
        "Loaded model weights from the checkpoint at /x/epoch=3-step=400.ckpt",
        "`Trainer.fit` stopped: No training batches.",
        "Epoch 0:   0%|          | 0/32 [00:00<?, ?it/s, v_num=0]",
        "                                  0:00:00                      val_loss: 1.318",
        "Epoch 3/10",
    ],
)
def test_near_misses_say_nothing(line: str) -> None:
    """A test's restore, an empty loader, a bar at 0, wrapped metrics."""
    assert said(line) == []


def test_a_bar_of_nemo_without_its_rate() -> None:
    """The step's own time stands behind the bar, where its rate was."""
    line = (
        "Epoch 0: :   0%|          | {}/100000 [00:03:24<30:04:10, v_num=2-10,"
        " reduced_train_loss=6.398, global_step={}.0, train_step_timing in s=1.05]"
    )
    reader = lightning.Reader()
    drawn = [list(reader.feed(line.format(n, n))) for n in (189, 190)]

    assert [(p.step, p.step_s, p.since_s) for (p,) in drawn] == [
        (189, 1.05, 204.0),
        (190, 1.05, 204.0),
    ]


@pytest.mark.parametrize(
    ("logged", "data_s"),
    [
        ("loss=1.2, data_time=1.53", 1.53),
        ("data_wait_s=0.5, loss=1.2", 0.5),
        ("time/data_load_time=2.0, loss=1.2", 2.0),
        ("loss=1.2, data_time=1530.0", None),
        ("loss=1.2, data=1.53", None),
        ("loss=1.2, metadata_time=1.5", None),
    ],
    ids=["its time", "with a unit", "in a group", "milliseconds", "a name of anything", "another"],
)
def test_the_wait_for_data_that_is_logged(logged: str, data_s: float | None) -> None:
    """No longer than the step."""
    (point,) = said(
        f"Epoch 0:   1%|          | 50/8200 [02:05<5:39:35,  0.40it/s, v_num=2, {logged}]"
    )

    assert (point.step_s, point.data_s) == (2.5, data_s)
