"""Passes over the data, and losses of which the line alone does not say which way they go."""

from __future__ import annotations

from math import isfinite

import pytest

from flatline.model import RISING, Progress
from flatline.parsers import boosting, gluonts, lerobot, markers, tqdm, vits


def boosted(*rows: tuple[float, float, float]) -> list[Progress]:
    """CatBoost's rounds of (learn, test, best)."""
    reader = boosting.Reader()
    return [
        item
        for n, (learn, test, best) in enumerate(rows)
        for item in reader.feed(
            f"{n}:\tlearn: {learn:.7f}\ttest: {test:.7f}\tbest: {best:.7f} (0)\ttotal: 10ms"
        )
    ]


@pytest.mark.parametrize(
    ("rows", "named", "falling"),
    [
        ([(0.6, 0.65, 0.65), (0.5, 0.6, 0.6)], "loss", True),
        ([(0.6, 0.65, 0.65), (0.5, 0.7, 0.65)], "loss", True),
        ([(0.6, 0.55, 0.55), (0.7, 0.6, 0.6)], RISING, False),
        ([(0.6, 0.55, 0.55), (0.7, 0.5, 0.55)], RISING, False),
    ],
    ids=["sank", "sank before", "rose", "rose before"],
)
def test_the_best_value_tells_which_way(
    rows: list[tuple[float, float, float]], named: str, falling: bool
) -> None:
    first, second = boosted(*rows)
    assert (first.loss, first.falling) == (None, True)
    assert (second.loss, second.loss_name, second.falling) == (rows[1][0], named, falling)


def test_an_unmoved_best_tells_nothing() -> None:
    assert {point.loss for point in boosted((0.6, 0.5, 0.5), (0.4, 0.5, 0.5))} == {None}
    assert {point.loss for point in boosted((0.6, float("nan"), 0.5))} == {None}


def test_the_best_round_is_told_at_the_end() -> None:
    reader = boosting.Reader()
    assert not list(reader.feed("bestTest = 0.3415281121"))
    assert [one.kind for one in reader.feed("bestIteration = 412")] == ["finished"]
    assert not list(reader.feed("the bestIteration = 412 of the sweep"))


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        ("Best iteration: 88; saved to out/gbm.ubj", ["finished"]),
        ("Model saved to models/higgs_v2.txt", ["finished"]),
        ("saved the booster as 'b.json'", ["finished"]),
        ("Model saved to disk", []),
        ("best iteration so far 88", []),
        ("snapshot of the model saved to a.txt", []),
    ],
)
def test_a_model_that_is_saved_behind_the_rounds(line: str, kinds: list[str]) -> None:
    """All rounds are one call; without any the line is another program's."""
    reader = boosting.Reader()
    assert not list(reader.feed(line))
    (point,) = reader.feed("[99]\teval-auc:0.83")
    assert point.step == 99
    assert [one.kind for one in reader.feed(line)] == kinds


def test_a_whole_count_of_steps() -> None:
    line = "step:{} smpl:64K ep:200 epch:0.35 loss:0.420 grdn:0.814 updt_s:0.1 data_s:0.9"
    (whole,) = lerobot.Reader().feed(line.format(1200))
    (rounded,) = lerobot.Reader().feed(line.format("1.2K"))
    assert (whole.step, whole.step_s, whole.data_s) == (1200, 1.0, 0.9)
    assert (rounded.step, rounded.epoch) == (None, 0.35)


@pytest.mark.parametrize(
    ("shown", "steps"),
    [
        (["600", "800", "1K", "1K", "1K", "2K"], [600, 800, 1000, 1200, 1400, 1600]),
        (["800", "1K", "1K"], [800, None, None]),
        (["600", "800", "3K", "3K"], [600, 800, None, None]),
        (["800", "600", "1K"], [800, 600, None]),
    ],
    ids=["at the distance before", "of one alone it is not known", "another", "began again"],
)
def test_the_rounded_count_that_is_due(shown: list[str], steps: list[int | None]) -> None:
    reader = lerobot.Reader()
    line = "step:{} smpl:64K ep:200 epch:0.35 loss:0.420 grdn:0.814 updt_s:0.1 data_s:0.9"
    assert [one.step for said in shown for one in reader.feed(line.format(said))] == steps


def test_a_checkpoint_between_rounded_counts_is_no_step_of_its_own() -> None:
    """It is saved at the step that was just printed, and the next is as far away as ever."""
    reader = lerobot.Reader()
    line = "step:{} smpl:64K ep:200 epch:0.35 loss:0.420 grdn:0.814 updt_s:0.1 data_s:0.9"
    lines = [*map(line.format, ("600", "800", "1K")), "Checkpoint policy after step 1000",
             line.format("1K")]  # fmt: skip
    assert [one.step for text in lines for one in reader.feed(text)] == [
        600,
        800,
        1000,
        1000,
        1200,
    ]


def test_the_generator_s_loss() -> None:
    (point,) = vits.Reader().feed(
        "INFO:voice:loss_disc=nan, loss_gen=nan, loss_fm=nan,loss_mel=75.000, loss_kl=9.000"
    )
    assert not isfinite(point.loss or 0.0)
    assert not point.falling
    (saved,) = vits.Reader().feed(
        "INFO:voice:Saving model and optimizer state at epoch 10 to ./logs/voice/G_2000.pth"
    )
    assert saved.kind == "checkpoint_saved"


BAR = "{:3.0f}%|####| {}/{} [00:02<00:02, 20.0it/s, epoch={}, avg_loss={}]"


def drawn(*bars: tuple[int, int, str]) -> list[tuple[int | None, int | None]]:
    """Step and plan of bars that show so many of so many, and an epoch behind it."""
    reader = tqdm.Reader()
    return [
        (item.step, item.planned)
        for at, (n, of, epoch) in enumerate(bars)
        for item in reader.feed(BAR.format(100 * n / of, n, of, epoch, 9 - at))
    ]


def test_a_bar_for_each_epoch_that_stands_behind_it() -> None:
    found = drawn(
        (10, 50, "1/3"), (50, 50, "1/3"), (10, 50, "2/3"), (50, 50, "2/3"), (50, 50, "3/3")
    )
    assert found == [(10, None), (50, None), (60, 150), (100, 150), (150, 150)]


def test_one_bar_for_all_epochs() -> None:
    assert drawn((10, 90, "1/3"), (40, 90, "2/3"), (90, 90, "3/3")) == [
        (10, None),
        (40, 90),
        (90, 90),
    ]
    assert drawn((10, 90, "0.4"), (40, 90, "1.2")) == [(10, 90), (40, 90)]


def test_the_trainer_of_gluonts() -> None:
    reader = gluonts.Reader()
    lines = (
        "INFO:gluonts.trainer:Epoch[4] Evaluation metric 'epoch_loss'=4.250000",
        "INFO:gluonts.trainer:Epoch[4] Evaluation metric 'validation_epoch_loss'=5.5",
        "INFO:gluonts.trainer:Start model training",
        "INFO:gluonts.trainer:End model training",
    )
    said = [(one.kind, one.epoch, one.loss) for line in lines for one in reader.feed(line)]
    assert said == [("train", 4.0, 4.25), ("eval", 4.0, 5.5), ("finished", None, None)]


@pytest.mark.parametrize(
    ("line", "ended"),
    [
        ("Training done in 1:07:41, model saved to out/last", True),
        ("INFO training finished after 3.2 hours. Weights written to /x/y.pt", True),
        ("Training done in 1:07:41, model will be saved to out/last", False),
        ("Training done in phase 1, model saved to out/one", False),
    ],
)
def test_how_long_it_took_before_where_it_was_saved(line: str, ended: bool) -> None:
    told = [one.kind for one in markers.Reader().feed(line)]
    assert ("finished" in told) == ended
