"""Formats that remember: fastai's and Ultralytics' tables, Composer's headings, configurations.

The lines were printed by real runs on a CPU: fastai 2.8, ultralytics 8.4, composer 0.32.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest

from flatline.model import Progress
from flatline.parsers import composer, config, fastai, hf_trainer, levanter, ultralytics


def said(module: ModuleType, *lines: str) -> list[Progress]:
    reader = module.Reader()
    values: list[Progress] = []
    for line in lines:
        found = list(reader.feed(line))
        assert not found or any(re.search(t, line) for t in module.TRIGGERS), line
        values += found
    return values


# --- fastai -------------------------------------------------------------------------------------


def test_fastai_prints_a_list_for_each_epoch() -> None:
    """Where there is no terminal: one training point and one evaluation."""
    train, valid = said(fastai, "[4, 1.9518343210220337, 0.11283264309167862, 0.2589, '00:00']")
    assert (train.kind, train.epoch, train.loss) == ("train", 4.0, 1.9518343210220337)
    assert (valid.kind, valid.loss_name, valid.loss) == ("eval", "valid_loss", 0.11283264309167862)


def test_fastai_prints_a_table_below_a_heading() -> None:
    """Its rows are read only below it."""
    row = "0         0.851312    0.627114    0.750000  00:12     "
    heading = "epoch     train_loss  valid_loss  accuracy  time    "
    assert said(fastai, row) == []
    train, valid = said(fastai, heading, row)
    assert (train.epoch, train.loss, valid.loss) == (0.0, 0.851312, 0.627114)


@pytest.mark.parametrize(
    "line",
    ["[0, 1, 2, 3]", "[1, 0.5, 'a', '00:01']", "3 0.5 0.25 00:12:33:44", "12 jobs 00:12"],
)
def test_fastai_near_misses(line: str) -> None:
    """Lists and columns of others."""
    assert said(fastai, line) == []


# --- Ultralytics --------------------------------------------------------------------------------

HEADING = "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size"
OWN_BAR = "        2/3         0G      4.296      2.912      2.759          4         96: 100% ━━━━━━━━━━━━ 3/3 14.4it/s 0.2s"  # noqa: E501
TQDM = "      1/100      2.51G      1.25      2.5      1.25         20        640: 100%|██████████| 8/8 [00:02<00:00,  3.50it/s]"  # noqa: E501
TABLE = "                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100% ━━━━━━━━━━━━ 2/2 21.8it/s 0.1s"  # noqa: E501


def test_ultralytics_adds_up_its_losses() -> None:
    """Epochs count from 1, the plan is theirs times the batches of one."""
    (value,) = said(ultralytics, HEADING, OWN_BAR)
    assert (value.step, value.planned, value.epoch, value.per_epoch) == (6, 9, 2.0, 3)
    assert value.loss == pytest.approx(4.296 + 2.912 + 2.759)


def test_ultralytics_with_tqdm() -> None:
    """As versions before 8.3.200 draw it."""
    (value,) = said(ultralytics, HEADING, TQDM)
    assert (value.step, value.planned, value.loss) == (8, 800, pytest.approx(5.0))


def test_a_terminal_too_narrow_for_the_bar() -> None:
    """Cuts the counts of batches off: the losses are known, the steps are not."""
    row = "       1/50      1.61G        nan        nan        nan         19        640:  21%|██▏"
    first, second = said(ultralytics, HEADING, row, row, row.replace("21%", "22%"))
    assert math.isnan(first.loss or 0.0)
    assert (first.step, first.planned, first.per_epoch, first.epochs) == (None, None, None, 50.0)
    assert second.epoch == 1.0


def test_yolov5_counts_from_zero() -> None:
    """`0/99` is the first of a hundred epochs."""
    first = TQDM.replace("1/100 ", "0/99  ")
    (value,) = said(ultralytics, HEADING, first)
    assert (value.step, value.planned, value.epochs) == (8, 800, 100.0)


def test_yolov5_names_its_losses_without_the_word() -> None:
    """And counts labels beside them, which are no loss."""
    heading = "     Epoch   gpu_mem       box       obj       cls    labels  img_size"
    row = "   0/4  1.79G  {}  0.25  0.125  108  640: 100%|███| 16/16 [00:25<00:00,  1.59s/it]"
    (value,) = said(ultralytics, heading, row.format("0.5"))
    assert value.loss == pytest.approx(0.875)
    (lost,) = said(ultralytics, heading, row.format("nan"))
    assert lost.loss is not None
    assert math.isnan(lost.loss)


def test_a_bar_drawn_again_says_nothing_new() -> None:
    """Nor does one that stands at its beginning."""
    begun = OWN_BAR.replace("100% ━━━━━━━━━━━━ 3/3", "0% ──────────── 0/3")
    assert len(said(ultralytics, HEADING, begun, OWN_BAR, OWN_BAR)) == 1


def test_ultralytics_evaluation_is_one_each_time() -> None:
    """However often its bar is drawn."""
    values = said(
        ultralytics, HEADING, OWN_BAR, TABLE, TABLE, OWN_BAR.replace("2/3 ", "3/3 "), TABLE
    )
    assert [v.kind for v in values] == ["train", "eval", "train", "eval"]


@pytest.mark.parametrize(
    ("line", "kind", "field", "value"),
    [
        ("Starting training for 100 epochs...", "plan", "epochs", 100.0),
        ("Resuming training y/last.pt from epoch 5 to 100 total epochs", "resume", "epoch", 5.0),
        ("100 epochs completed in 0.125 hours.", "finished", "epoch", 100.0),
    ],
)
def test_ultralytics_messages(line: str, kind: str, field: str, value: float) -> None:
    """The plan, a resume and the end."""
    (found,) = said(ultralytics, line)
    assert (found.kind, getattr(found, field)) == (kind, value)


@pytest.mark.parametrize(
    "line",
    [
        "train: Scanning ds/labels/train... 12 images, 0 backgrounds, 0 corrupt: 100% ━━━━ 12/12 1.1Kit/s",  # noqa: E501
        "                   all         12         12          0          0          0          0",
        "  0                  -1  1       464  ultralytics.nn.modules.conv.Conv  [3, 16, 3, 2]",
    ],
)
def test_ultralytics_near_misses(line: str) -> None:
    """Scanning, the evaluation's rows, the table of layers."""
    assert said(ultralytics, HEADING, line) == []


# --- Composer -----------------------------------------------------------------------------------


def test_composer_says_a_step_and_below_it_its_loss_and_norm() -> None:
    """Two points of one step, and the norm as a third."""
    values = said(
        composer,
        "[batch=15/20]:",
        "\t Train time/batch: 14",
        "\t Train loss/train/total: 0.4451",
        "\t Train lr-DecoupledAdamW/group0: 0.0100",
        "\t Train l2_norm/grad/global: 0.4592",
    )
    assert [(v.step, v.planned, v.loss, v.grad_norm) for v in values] == [
        (15, 20, None, None),
        (15, None, 0.4451, None),
        (15, None, None, 0.4592),
    ]


def test_composer_in_epochs_counts_on() -> None:
    """The counter is its epoch's."""
    (value, loss) = said(composer, "[epoch=3][batch=2/8]:", "\t Train loss/train/total: nan")
    assert (value.step, value.epoch, value.per_epoch) == (18, 3.0, 8)
    assert loss.loss is not None
    assert loss.loss != loss.loss


def test_composer_evaluation_and_tokens() -> None:
    """A loss below an evaluation's heading is not training's; tokens are no steps."""
    evaluated = said(
        composer, "[Eval batch=1/2] Eval on eval data", "\t Train loss/train/total: 1"
    )
    tokens = said(composer, "[token=1024/4096]:", "\t Train loss/train/total: 2.5")
    assert [v.kind for v in evaluated] == ["eval"]
    assert [(v.step, v.loss) for v in tokens] == [(None, 2.5)]


# --- configurations -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "plans"),
    [
        ("Namespace(arch='resnet50', epochs=90, start_epoch=0)", [(None, 90.0)]),
        (
            "+ torchrun train.py --epochs 90 --lr 0.1 --max-steps=5000",
            [(5000, None), (None, 90.0)],
        ),
        ("  train_iters ..................................... 500000", [(500_000, None)]),
        ("  max_steps: 100", [(100, None)]),
        ('    "num_train_epochs": 3.0,', [(None, 3.0)]),
        ("num_train_epochs=3.0,", [(None, 3.0)]),
        ("Overriding: max_iters = 2000", [(2000, None)]),
        ("trainer.max_epochs: 12", [(None, 12.0)]),
        ("{'epochs': 10, 'lr': 0.1}", [(None, 10.0)]),
        ("max_train_steps = 1_000", [(1000, None)]),
    ],
)
def test_a_configuration(line: str, plans: Sequence[tuple[int | None, float | None]]) -> None:
    """As it is echoed, dumped or given on a command line."""
    values = said(config, line)
    assert sorted(map(str, [(v.planned, v.epochs) for v in values])) == sorted(map(str, plans))
    assert {v.kind for v in values} == {"config"}


@pytest.mark.parametrize(
    "line",
    [
        "max_steps=-1,",
        "warmup_epochs=5, lr_decay_epochs=30",
        "max_steps_per_epoch: 100",
        "eval_max_steps: 100",
        "self.max_steps = 100",
        "optim.sched.max_steps: 100",
        "lr_scheduler: {max_steps: 100}",
        "  --epochs N            number of epochs (default: 90)",
        "    parser.add_argument('--epochs', default=90)",
        "def train(model, epochs=90):",
        "trained for 3 epochs: 5 minutes",
        "epochs: 0.5",
        "--num-epochs-without-improvement 5",
    ],
)
def test_what_is_no_plan(line: str) -> None:
    """Counts of something else, code, help, an epoch begun."""
    assert said(config, line) == []


def test_a_value_is_said_once() -> None:
    """However many ranks print their configuration into one stream."""
    assert len(said(config, *["Namespace(epochs=90)"] * 3, "Namespace(epochs=30)")) == 2


# --- transformers -------------------------------------------------------------------------------

COUNTED = (
    "{'loss': '3.728', 'grad_norm': '1.324', 'learning_rate': '0.004375', 'epoch': '0.5', "
    "'num_input_tokens_seen': 512, 'train_runtime': '0.0476', 'train_tokens_per_second': '10750'}"
)


def test_a_dict_with_a_loss_is_no_end() -> None:
    """`include_num_input_tokens_seen` adds the time of the run to each of them."""
    (value,) = said(hf_trainer, COUNTED)
    assert (value.kind, value.loss, value.throughput) == ("train", 3.728, 10750.0)


@pytest.mark.parametrize(
    ("line", "epochs", "planned"),
    [
        ("[transformers]   Num Epochs = 3", 3.0, None),
        ("   \\\\   /|    Num examples = 1,000 | Num Epochs = 2 | Total steps = 60", 2.0, 60),
    ],
)
def test_planned_epochs(line: str, epochs: float, planned: int | None) -> None:
    """The Trainer's line, and Unsloth's."""
    (value,) = said(hf_trainer, line)
    found: Any = (value.kind, value.epochs, value.planned)
    assert found == ("plan", epochs, planned)


# --- Levanter -----------------------------------------------------------------------------------


def test_levanter_rounds_its_counts_from_a_thousand_on() -> None:
    """The step is then about right and the plan is none."""
    small, large = said(
        levanter,
        "Progress on:train 19.0it/70.0it rate:76.8s/it remaining:1:05:15 elapsed:31:40"
        " postfix:loss=9.5",
        "Progress on:train 1.23kit/10.0kit rate:2.0it/s elapsed:31:40 postfix:loss=nan",
    )
    assert (small.step, small.planned, small.loss, small.step_s) == (19, 70, 9.5, 76.8)
    assert (large.step, large.planned, large.step_s) == (1230, None, 0.5)


def test_levanter_evaluates_once() -> None:
    """And its loading is nothing."""
    bar = "Progress on:eval 5.00it/10.0it rate:2.0it/s remaining:00:02 elapsed:00:03 postfix:-"
    assert [v.kind for v in said(levanter, bar, bar)] == ["eval"]
    assert said(levanter, bar.replace("eval", "tokenizing")) == []


def test_fastai_1_counts_from_1_and_says_when_it_is_done() -> None:
    """Rows without a time, under a heading without one; other columns of numbers are none."""
    heading, row = (
        "epoch     train_loss  valid_loss  accuracy",
        "1         2.489521    2.734049    0.482433",
    )
    values = said(fastai, heading, row, "Total time: 11:01:47")
    assert [(v.kind, v.loss) for v in values] == [
        ("train", 2.489521), ("eval", 2.734049), ("finished", None),
    ]  # fmt: skip
    assert said(fastai, row, "Total time: 11:01:47") == []
    assert said(fastai, heading + "  time", row) == []
