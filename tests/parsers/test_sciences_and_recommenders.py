"""Lines of trainers for fields, potentials, pictures, clouds of points and recommendations."""

from __future__ import annotations

from math import isnan
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Progress, Verdict
from flatline.parsers import (
    LineReader,
    cyclegan,
    deepmd,
    fourcastnet,
    keras,
    lightgcn,
    litgpt,
    marian,
    modded_nanogpt,
    nequip,
    openpcdet,
    raft,
    stylegan,
    tabnet,
    tqdm,
)


def said(reader: LineReader, *lines: str) -> list[Progress]:
    return [one for line in lines for one in reader.feed(line) if isinstance(one, Progress)]


def judged(folder: Path, text: str, **beside: str) -> Verdict:
    (folder / "train.log").write_text(text)
    for name, other in beside.items():
        (folder / name.replace("_", ".")).write_text(other)
    return diagnose(collect(Request((str(folder),))))


def test_lightgcn() -> None:
    """No sign stands between its loss and the number."""
    one, lost = said(
        lightgcn.Reader(),
        "EPOCH[3/90] loss0.412-|Sample:0.35|",
        "EPOCH[4/90] lossnan-|Sample:0.35|",
    )
    assert (one.epoch, one.epochs, one.loss) == (3.0, 90.0, 0.412)
    assert lost.loss is not None
    assert isnan(lost.loss)


def test_openpcdet() -> None:
    """Its count is that of the run; another's end of training is none of its."""
    line = (
        "2026-01-04 09:00:10,100   INFO  epoch: 1/20, acc_iter=150, cur_iter=49/100, batch_size=4,"
        " time_cost(epoch): 00:19/00:20, time_cost(all): 00:59/12:01, loss=1.25,"
        " d_time=0.02(0.03), f_time=0.30(0.31), b_time=0.35(0.36), lr=0.0031"
    )
    one, end = said(
        openpcdet.Reader(),
        line,
        "2026-01-04 09:30:10,100   INFO  **********End training of teachers",
        f"2026-01-04 09:30:10,100   INFO  {'*' * 22}End training models/cp(one){'*' * 22}",
    )
    assert (one.step, one.planned, one.epoch, one.per_epoch) == (150, 2000, 1.0, 100)
    assert (one.loss, one.step_s, one.data_s, one.lr) == (1.25, 0.35, 0.02, 0.0031)
    assert end.kind == "finished"


def test_fourcastnet() -> None:
    """An epoch stands in the line above its losses; that a rank is done tells of no training
    where none was seen."""
    reader, head = fourcastnet.Reader(), "2026-01-04 09:00:10,100 - root - INFO - "
    assert not said(reader, f"{head}DONE ---- rank 0")
    plan, trained, held_out, end = said(
        reader,
        f"{head}max_epochs 30",
        f"{head}Train loss: 0.9. Valid loss: 0.8",
        f"{head}Time taken for epoch 1 is 812.25 sec",
        f"{head}Train loss: 0.305. Valid loss: 0.308",
        f"{head}DONE ---- rank 0",
    )
    assert (plan.kind, plan.epochs) == ("config", 30.0)
    assert (trained.epoch, trained.loss, held_out.loss) == (1.0, 0.305, 0.308)
    assert end.kind == "finished"


def test_modded_nanogpt() -> None:
    """What is measured on held-out text is the loss, until one of training is printed."""
    first, bare, trained, later, end = said(
        modded_nanogpt.Reader(),
        "step:0/900 val_loss:10.82 train_time:0ms step_avg:0.00ms",
        "step:1/900 train_time:120ms step_avg:120.00ms",
        "step:2/900 train_loss:9.81 train_time:240ms step_avg:120.00ms",
        "step:5/900 val_loss:9.02 val_bpb:3.10 train_time:600ms step_avg:120.00ms",
        "stopping_early: wallclock_cap train_time:60000ms step:500/900",
    )
    assert (first.kind, first.step, first.planned, first.loss) == ("train", 0, 900, 10.82)
    assert (bare.kind, bare.step, bare.loss) == ("train", 1, None)
    assert (trained.loss, later.kind, end.kind) == (9.81, "eval", "finished")


def test_raft() -> None:
    """The rate is no loss; a row of other numbers is another loop's."""
    one, lost = said(
        raft.Reader(),
        "[   300,  0.0000736]     0.2723,     0.3114,     0.3196,     8.7106, ",
        "[   400,  0.0000928]     0.0000,     0.0000,     0.0000,        nan, ",
        "[   400,  0.0000928]     1.2723,     3.3114,     7.3196,     8.7106, ",
        "[   400,  0.0000928]     0.2723,     8.7106, ",
    )
    assert (one.step, one.lr, one.loss) == (300, 7.36e-05, 8.7106)
    assert lost.loss is not None
    assert isnan(lost.loss)


def test_deepctr() -> None:
    """An epoch's head and its losses stand behind it, without a bar."""
    (one,) = said(
        keras.Reader(),
        "896it [01:38,  9.04it/s]",
        "Epoch 2/20",
        "103s - loss:  0.4586 - binary_crossentropy:  0.4575 - val_auc:  0.7847",
    )
    assert (one.epoch, one.loss) == (2.0, 0.4586)


def test_a_bar_for_each_epoch_that_bears_its_number() -> None:
    """Each full one is no end of the run."""
    bar = "Train {:5d}: 100%|##########| 300/300 [00:43<00:00,  8.88it/s, GPU RAM: 3.11 G]"
    one, two = said(tqdm.Reader(), bar.format(0), bar.format(1))
    assert (one.step, two.step, two.planned) == (300, 600, None)


def test_marian_says_how_far_it_goes() -> None:
    steps, epochs = said(
        marian.Reader(),
        "[2026-01-04 10:00:00] [config] after-batches: 90000",
        "[2026-01-04 10:00:00] [config] after-epochs: 0",
        "[2026-01-04 10:00:00] [config] after: 20e",
    )
    assert (steps.planned, epochs.epochs) == (90000, 20.0)


@pytest.mark.parametrize(
    ("reader", "line", "ends"),
    [
        (nequip.Reader, "! Stop training: max epochs", True),
        (nequip.Reader, "! Stop training for eaching max epochs", True),
        (nequip.Reader, "! Stop training: early stopping: validation_loss > 10", False),
        (litgpt.Reader, "Final evaluation | val loss: 1.267 | val ppl: 3.550", True),
        (litgpt.Reader, "Final evaluation | val loss: pending", False),
        (
            tabnet.Reader,
            "Early stopping occurred at epoch 9 with best_epoch = 4 and best_val_auc = 0.9",
            True,
        ),
        (
            tabnet.Reader,
            "Stop training because you reached max_epochs = 9 with best_epoch = 4 and best_a = 1",
            True,
        ),
        (tabnet.Reader, "Early stopping occurred at epoch 9", False),
    ],
)
def test_words_behind_the_last_step(reader: type[LineReader], line: str, ends: bool) -> None:
    assert any(one.kind == "finished" for one in said(reader(), line)) == ends


def test_folds_end_with_the_same_words() -> None:
    line = "Early stopping occurred at epoch 9 with best_epoch = 4 and best_val_auc = 0.9"
    assert len(said(tabnet.Reader(), line, line, line)) == 1


def test_pix2pix() -> None:
    """Only the loss that holds to a target is meant to fall; the last epoch's end is the run's."""
    place = "(epoch: 40, iters: 100, time: 0.062, data: 0.198) "
    reader = cyclegan.Reader()
    assert not said(reader, "End of epoch 40 / 40 \t Time Taken: 61 sec")
    held, free, lost, end = said(
        reader,
        f"{place}G_GAN: 2.308 G_L1: 21.024 D_real: 0.176 D_fake: 0.182 ",
        f"{place}G_GAN: 2.308 D_real: 0.176 D_fake: 0.182 ",
        f"{place}G_GAN: nan G_L1: 21.024 D_real: 0.176 D_fake: 0.182 ",
        "End of epoch 39 / 40 \t Time Taken: 61 sec",
        "End of epoch 40 / 40 \t Time Taken: 61 sec",
    )
    assert (held.loss, held.falling, free.loss, free.falling) == (21.024, True, 2.308, False)
    assert lost.loss is not None
    assert isnan(lost.loss)
    assert (end.kind, end.epoch) == ("finished", 40.0)


HEADING = "#  step      rmse_val    rmse_trn    rmse_e_val  rmse_e_trn         lr"


def test_the_curve_of_deepmd() -> None:
    """The rows below its heading, until a line is none."""
    reader = deepmd.Reader()
    assert not said(reader, HEADING)
    rows = [
        (1, "      0     2.38e+01     2.17e+01     1.08e-02     1.08e-02    1.0e-03"),
        (2, "# a remark"),
        (3, "    500          nan          nan     1.06e-02     1.06e-02    9.7e-04"),
        (4, "DEEPMD INFO    finished training"),
        (5, "   1000     2.38e+01     2.17e+01     1.08e-02     1.08e-02    1.0e-03"),
    ]
    told = [one for _, one in reader.rows(rows) if one.kind == "train"]
    assert [(one.step, one.lr) for one in told] == [(0, 1e-3), (500, 9.7e-4)]
    assert told[0].loss == 21.7
    assert told[1].loss is not None
    assert isnan(told[1].loss)


def test_what_edm_keeps_of_its_ticks(tmp_path: Path) -> None:
    """Its losses stand in a file beside the log."""
    (one,) = said(
        stylegan.Reader(),
        '{"Loss/loss": {"num": 512, "mean": 0.25, "std": 0.1}, "Progress/tick": {"num": 1,'
        ' "mean": 7.0, "std": 0}, "timestamp": 1.0}',
    )
    assert (one.kind, one.step, one.loss) == ("train", 7, 0.25)

    ticks = "".join(
        f"tick {n:<5d} kimg {50.2 * n:<9.1f} time {n}m 00s       sec/tick 60.0    sec/kimg 1.20"
        "    maintenance 0.1    cpumem 5.0   gpumem 11.8\n"
        for n in range(41)
    )
    rows = "".join(
        f'{{"Loss/loss": {{"num": 512, "mean": {0.9 * 0.97**n + 0.01 * (n % 3)}, "std": 0.1}},'
        f' "Progress/tick": {{"num": 1, "mean": {n}, "std": 0}}, "timestamp": {1e9 + 60 * n}}}\n'
        for n in range(41)
    )
    start = "Training for 2000 kimg...\n\n"
    verdict = judged(tmp_path, f"{start}{ticks}\nExiting...\n", stats_jsonl=rows)
    assert verdict.code == "G1"


@pytest.mark.parametrize(("kept", "code"), [(200, "G1"), (120, None)])
def test_a_warmed_up_schedule_is_no_loss(tmp_path: Path, kept: int, code: str | None) -> None:
    """It rises once and then falls without a rise: the number beside it is the loss."""
    rows = [
        f"at {10 * n} q {min(n / 20, (200 - n) / 180) * 1e-3:.7f}"
        f" w {5 * 0.985**n + n % 4 / 40:.4f} grad {1 + n % 5 / 10:.2f}"
        for n in range(1, 201)
    ]
    text = "\n".join(["planned are 2000 steps", *rows[:kept], ""])
    (tmp_path / "train.log").write_text(text)
    facts = collect(Request((str(tmp_path),)))
    (track,) = facts.tracks
    assert track.loss[0] > 1
    assert diagnose(facts).code == code
