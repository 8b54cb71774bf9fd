"""Labelled bars: which are training, and what their counts count."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Progress
from flatline.parsers import tqdm


def said(*lines: str) -> list[Progress]:
    reader = tqdm.Reader()
    found = []
    for line in lines:
        values = list(reader.feed(line))
        assert not values or any(re.search(t, line) for t in tqdm.TRIGGERS), line
        found += values
    return found


def test_a_bar_of_steps_counts_steps() -> None:
    """diffusers: the label is the word for a step, the loss stands behind."""
    (point,) = said(
        "Steps:  12%|█▏        | 120/1000 [01:23<10:11,  1.25it/s, lr=1e-5, step_loss=0.125]"
    )
    assert (point.step, point.planned, point.loss, point.lr) == (120, 1000, 0.125, 1e-5)
    assert point.step_s == 0.8


def test_an_epochs_bar_is_counted_on_over_the_epochs() -> None:
    """The stream begins with epoch 0, so epoch 1 begins after one epoch's batches."""
    points = said(
        "Epoch 0:  50%|█████     | 16/32 [00:10<00:10,  1.60it/s, loss=2.5]",
        "Epoch 0: 100%|██████████| 32/32 [00:20<00:00,  1.60it/s, loss=2.25]",
        "Epoch 1:  50%|█████     | 16/32 [00:10<00:10,  1.60it/s, loss=2]",
    )
    assert [(p.step, p.loss, p.planned) for p in points] == [
        (16, 2.5, None),
        (32, 2.25, None),
        (48, 2.0, None),
    ]


def test_numbered_epochs_of_a_known_number_give_a_plan() -> None:
    """`Epoch 1/3` of 1,000 batches plans 3,000."""
    first, later = said(
        "Epoch 1/3:  12%|█▏        | 120/1000 [01:23<10:11,  1.44it/s, loss=0.5]",
        "Epoch 2/3:  12%|█▏        | 120/1000 [01:23<10:11,  1.44it/s, loss=0.4]",
    )
    assert (first.step, first.planned) == (120, 3000)
    assert (later.step, later.planned) == (1120, 3000)


@pytest.mark.parametrize(
    ("count", "step"),
    [("update=5010", 5010), ("update=5000", 5010), ("step=1010", None)],
)
def test_a_count_behind_an_epochs_bar(count: str, step: int | None) -> None:
    """F5-TTS goes on in epoch 3 of 9 and tells the updates so far, as of the step before; a count
    within the epoch is none of the run's."""
    point, *_ = said(
        f"Epoch 3/9:  25%|██▌       | 1010/2000 [03:20<22:10,  1.82it/s, loss=0.647, {count}]"
    )
    assert (point.step, point.planned) == (step, 18_000 if step else None)


def test_a_stream_that_begins_at_a_later_epoch_gives_no_step() -> None:
    """Epoch 3 is the third or the fourth: that cannot be told."""
    (point,) = said("Epoch 3:  12%|█▏        | 120/1000 [01:23<10:11,  1.44it/s, loss=0.5]")
    assert point.step is None
    assert point.epoch == pytest.approx(3.12)


def test_a_bar_of_epochs_counts_no_steps() -> None:
    """`Epoch: 1/3` is one epoch of three."""
    (point,) = said("Epoch:  33%|███▎      | 1/3 [06:40<13:20, 400.00s/it]")
    assert (point.step, point.planned, point.epoch) == (None, None, 1.0)


def test_a_bar_drawn_again_says_nothing_new() -> None:
    """Refreshing is not progress."""
    bar = "Steps:  12%|█▏        | 120/1000 [01:23<10:11,  1.44it/s, loss=0.5]"
    assert len(said(bar, bar, bar)) == 1


def test_losses_beside_a_count_that_stands_still_are_kept_without_a_step() -> None:
    """A fast loop draws its losses ten times while the count is not redrawn."""
    points = said(
        "Epoch 0:   0%|          | 0/32 [00:00<?, ?it/s]",
        "Epoch 0:   0%|          | 0/32 [00:00<?, ?it/s, loss=2.0]",
        "Epoch 0:   0%|          | 0/32 [00:00<?, ?it/s, loss=nan]",
        "Epoch 0:   0%|          | 0/32 [00:00<?, ?it/s, loss=1.5]",
        "Epoch 0: 100%|██████████| 32/32 [00:00<00:00, 2621.49it/s, loss=1.5]",
    )
    assert [p.step for p in points] == [None, None, 32]
    assert [str(p.loss) for p in points] == ["2.0", "nan", "1.5"]


def test_torchtune_writes_epoch_step_and_loss_into_the_label() -> None:
    """The second number is the step over all epochs."""
    (point,) = said("1|10|Loss: 1.25:   1%|▏         | 10/1000 [00:10<16:30,  1.00s/it]")
    assert (point.epoch, point.step, point.loss) == (1.0, 10, 1.25)


def test_torchtune_says_that_the_last_epoch_was_saved() -> None:
    """Its bar counts the steps of an epoch."""
    ends = "INFO:torchtune.utils._logging:Saving final epoch checkpoint."
    step, end = said("2|14|Loss: 0.75: 100%|##| 7/7 [00:10<00:00,  1.40s/it]", ends)

    assert (step.step, step.per_epoch, end.kind) == (14, 7, "finished")
    assert said(ends) == []


@pytest.mark.parametrize(
    ("epochs", "per_epoch", "code"), [(1, 6, "E3"), (2, 6, None), (1, 60, "G1")]
)
def test_a_short_recipe_of_torchtune(
    tmp_path: Path, epochs: int, per_epoch: int, code: str | None
) -> None:
    bar = "1|{0}|Loss: {2:.3f}:  50%|##| {0}/{1} [00:{0:02d}<00:09,  1.00s/it]"
    lines = [f"epochs: {epochs}"]
    lines += [bar.format(n, per_epoch, 2.4 * 0.9**n) for n in range(1, per_epoch + 1)]
    (tmp_path / "train.log").write_text("\n".join([*lines, "Saving final epoch checkpoint.\n"]))
    found = diagnose(collect(Request((str(tmp_path),)))).code

    assert found == code or (code is None and found != "E3")


def test_an_evaluation_bar_is_one_evaluation() -> None:
    """However often it is drawn; the next one that begins is another."""
    points = said(
        "Evaluating:  12%|█▏        | 12/100 [00:10<01:10,  1.25it/s]",
        "Evaluating:  50%|█████     | 50/100 [00:40<00:40,  1.25it/s]",
        "Evaluating:   1%|          | 1/100 [00:01<01:10,  1.25it/s]",
    )
    assert [p.kind for p in points] == ["eval", "eval"]


@pytest.mark.parametrize(
    "line",
    [
        "Training:  12%|█▏        | 120/1000 [01:23<10:11,  1.44it/s]",
        "Train epoch [1/1]:  12%|█▏        | 120/1000 [01:23<10:11,  1.44it/s, loss=1.2]",
        "Training Progress:   1%|          | 4/435 [10:00<20:00:00, 150.00s/it]",
        "Iteration:  12%|█▏        | 120/1000 [01:23<10:11,  1.44it/s]",
        "my run:  12%|█▏        | 120/1000 [01:23<10:11,  1.44it/s, loss=inf]",
        "training: 120it [00:10, 12.40it/s, loss=2.5]",
    ],
)
def test_training_bars(line: str) -> None:
    """A word for training first, or a loss behind."""
    (point,) = said(line)
    assert point.kind == "train"


@pytest.mark.parametrize(
    "line",
    [
        "Downloading: 100%|██████████| 1.20G/1.20G [00:10<00:00, 120MB/s]",
        "Map:  12%|█▏        | 1200/10000 [00:01<00:10, 800.00 examples/s]",
        "Loading checkpoint shards:  50%|█████     | 2/4 [00:10<00:10,  5.00s/it]",
        "Generating train split:  12%|█▏   | 1200/10000 [00:01<00:10, 800.00 examples/s]",
        "Tokenizing train dataset:  12%|█▏        | 120/1000 [00:01<00:10, 80.00it/s]",
        "Training tokenizer:  12%|█▏        | 120/1000 [00:01<00:10, 80.00it/s]",
        "Running tokenizer on dataset:  10%|█         | 1/10 [00:01<00:10, 1.00ba/s]",
        "Adding EOS to train dataset: 100%|████| 128/128 [00:00<00:00, 42578.39 examples/s]",
        "Fetching 4 files:  25%|██▌       | 1/4 [00:01<00:03,  1.00s/it]",
        "Processed prompts: 100%|██████████| 16/16 [00:10<00:00,  1.60it/s]",
        "Capturing CUDA graphs:  12%|█▏        | 8/67 [00:01<00:10,  5.00it/s]",
        "Calculating FID activations:  12%|█▏        | 8/67 [00:01<00:10,  5.00it/s]",
        "Epoch 3:  12%|█▏  | 120/1000 [00:10<01:10, 12.40it/s, v_num=0, train_loss=2.3]",
    ],
)
def test_near_misses_say_nothing(line: str) -> None:
    """Preparation, other units, and the bars of another format."""
    assert said(line) == []


@pytest.mark.parametrize("before", ["", "  0%|          | 0/100 [00:00<?, ?it/s]"])
def test_an_unlabelled_bar_is_told_as_a_bar(before: str) -> None:
    """The last of those that a log without carriage returns holds on one line."""
    (told,) = said(before + "  5%|▌         | 5/100 [00:05<01:40,  1.00it/s]")

    assert (told.kind, told.step, told.planned) == ("bar", 5, 100)


def test_the_bar_of_pytorch_ignite_counts_batches_of_its_epoch() -> None:
    """Counts before the bar, values behind it, the next message on the same line."""
    (point,) = said("Epoch [2/5]: [30/400]   8%|▊       , loss=0.5, acc=0.9 [00:21<04:34]Saved.")
    assert (point.step, point.loss, point.epoch) == (None, 0.5, pytest.approx(2.075))
    (first,) = said("Epoch [1/5]: [30/400]   8%|▊       , nll=-3.5 [00:21<04:34]")
    assert (first.step, first.planned, first.loss) == (30, 2000, None)


def test_an_evaluation_bar_of_pytorch_ignite_is_no_training() -> None:
    """Its description says so."""
    points = said("Validation [1/5]: [30/400]   8%|▊       , loss=0.5 [00:21<04:34]")
    assert [p.kind for p in points] == ["eval"]


def test_a_loss_in_the_label_is_read() -> None:
    """`set_description(f"loss: {loss}")` puts it before the bar, new at each step."""
    points = said(
        "Epoch 1 loss: 0.75:  10%|█         | 10/100 [00:10<01:30,  1.00it/s]",
        "Epoch 1 loss: 0.5:  11%|█         | 11/100 [00:11<01:29,  1.00it/s]",
    )
    assert [(p.step, p.loss) for p in points] == [(10, 0.75), (11, 0.5)]


def test_a_validation_loss_in_the_label_is_no_training_point() -> None:
    """Whatever stands before the word loss."""
    points = said(
        "val loss: 0.75:  10%|█         | 10/100 [00:10<01:30,  1.00it/s]",
        "val_loss: 0.5:  11%|█         | 11/100 [00:11<01:29,  1.00it/s]",
    )
    assert not [p for p in points if p.kind == "train"]


def test_a_line_of_bars_tells_that_they_moved() -> None:
    """What is left of a bar where carriage returns were taken out."""
    bars = "  ".join(
        f"{n * 2}%|{'█' * (n // 5)}   | {n}/50 [{n * 10}:00<{500 - n * 10}:00, 600.1s/it]"
        for n in range(24)
    )
    assert [(one.kind, one.step, one.planned) for one in said(f"  {bars}")] == [
        ("bar", 12, 50),
        ("bar", 23, 50),
    ]


def test_passes_over_the_data_are_no_plan_of_the_run() -> None:
    """Bars of two lengths, and one that begins anew after its end."""
    ends = ["loss: 2.5 ||: 100%|###| 31/31 [00:02<00:00, 11.1it/s]",
            "loss: 2.4 ||: 100%|###| 125/125 [00:52<00:00, 2.3it/s]"]  # fmt: skip
    assert [v.planned for v in said(*ends)] == [31, 0]
    again = [f"{n * 25:3d}%|###| {n}/4 [00:02<00:00, 2.0it/s, loss=2.{9 - n}]" for n in (2, 4)]
    assert [v.planned for v in said(*again, *again)] == [4, 4, 0, 0]


def bars(total: int, *drawn: tuple[int, float | None]) -> list[str]:
    """Unlabelled ones, with a loss or without."""
    return [
        f"{100 * n // total:3d}%|###  | {n}/{total} [00:0{n * 9 // total}<00:10,  2.0it/s"
        + ("]" if loss is None else f", train_loss={loss}]")
        for n, loss in drawn
    ]


def test_a_bar_of_each_pass_is_counted_on() -> None:
    """The one between them, shorter and without a loss, evaluates; it is no plan."""
    passes = [*bars(40, (10, 5.0), (40, 4.0)), *bars(9, (4, None), (9, None)),
              *bars(41, (10, 4.2), (41, 3.0)), *bars(9, (4, None)),
              *bars(40, (10, 3.1))]  # fmt: skip
    points = said(*passes)

    assert [p.step for p in points if p.kind == "train"] == [10, 40, 50, 81, 91]
    assert [(p.kind, p.planned) for p in points if p.kind != "train"] == [("eval", None)] * 2
    assert points[-1].planned == 0


@pytest.mark.parametrize(
    ("before", "loss", "step"),
    [((40, 2.0), 4.9, 10), ((30, 4.5), 4.6, 10), ((40, 4.9), 5.0, 50), ((40, 2.0), 2.9, 50)],
    ids=["a new model", "cut short", "nothing learnt yet", "somewhat worse"],
)
def test_a_bar_that_begins_again_is_another_run(
    before: tuple[int, float], loss: float, step: int
) -> None:
    """Where the one before it was cut short, or its loss is again that of the first pass."""
    points = said(*bars(40, (10, 5.0), before, (10, loss)))

    assert [p.step for p in points] == [10, before[0], step]


def test_a_bar_without_a_loss_before_any_training() -> None:
    """What it counts is not known, nor what one of the same length does."""
    points = said(*bars(9, (4, None)), *bars(40, (40, 4.0)), *bars(40, (20, None)))

    assert [p.kind for p in points] == ["bar", "train", "bar"]


@pytest.mark.parametrize(
    ("rate", "step_s"),
    [("1.25update/s", 0.8), ("1.06s/update", 1.06), ("2.00s/step", 2.0), ("4.00s/batch", 4.0),
     ("2.00iter/s", 0.5), ("512.3sample/s", None)],
)  # fmt: skip
def test_units_of_their_own(rate: str, step_s: float | None) -> None:
    """tqdm puts the unit below the fraction where it is faster, above it where it is slower."""
    (said,) = tqdm.Reader().feed(
        f"Epoch 1/100:   2%|▏  | 60/3000 [01:03<52:04, {rate}, loss=1.56]"
    )
    assert (said.kind, said.loss, said.step_s) == ("train", 1.56, step_s)
