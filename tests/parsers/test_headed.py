"""Tables that a heading explains: notebooks, CSV, Markdown, hand-printed columns."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.collect.tables import MOST_TABLES
from flatline.diagnose import diagnose
from flatline.model import Progress
from flatline.parsers import headed


def said(*lines: str) -> list[Progress]:
    reader = headed.Reader()
    assert not list(reader.feed(lines[0]))
    return [item for _, item in reader.rows(enumerate(lines[1:]))]


@pytest.mark.parametrize(
    "lines",
    [
        ("Step\tTraining Loss\tValidation Loss", "500\t2.500000\t2.750000"),
        ("Step Training Loss Validation Loss", "500 2.500000 2.750000"),
        (
            "| Validation Loss | Epoch | Step | Training Loss |",
            "|:---:|:--|",
            "|2.75|1.0|500|2.5|",
        ),
        ("step,train_loss,lr,val_loss", "500,2.5,0.0003,2.75"),
        ('"epoch","step","train_loss_step","train_loss_epoch","val_loss"', "0,500,2.5,,2.75"),
        ("Step   | train_loss | val_loss | lr", "   500 | 2.5     | 2.75   | 1e-01"),
        ("  step    train loss    valid loss", "------  ----  ----", "  500   2.5    2.75"),
        ("global_step;total_loss;aux_loss;eval_loss", "500;2.5;0.1;2.75"),
        ("step, train/box_loss, train/cls_loss, lr/pg0, val/loss", "500, 1.5, 1.0, 0.1, 2.75"),
    ],
)
def test_a_row_is_what_its_heading_says(lines: tuple[str, ...]) -> None:
    train, evaluated = said(*lines)
    assert (train.kind, train.step, train.loss) == ("train", 500, 2.5)
    assert (evaluated.kind, evaluated.step, evaluated.loss) == ("eval", 500, 2.75)
    assert train.falling


def test_what_is_missing_is_not_said_and_nan_is() -> None:
    """`No log` comes before the first logging step, and `nan` after the last sound one."""
    rows = said("Epoch\tTraining Loss\tAccuracy", "1\tNo log\t0.5", "2\tnan\t0.5")
    assert [(p.epoch, p.step) for p in rows] == [(2.0, None)]
    assert math.isnan(rows[0].loss or 0.0)


@pytest.mark.parametrize(
    "line",
    [
        "step 5, loss 2.5, lr 0.1",
        "Epoch 3, train loss: 2.5",
        "epoch     train_loss  valid_loss  accuracy  time",
        "at every step, we log the loss, the rate",
        "name,size,modified",
        "step | accuracy | time",
        "loss",
        "",
    ],
)
def test_what_is_no_heading(line: str) -> None:
    assert headed.heading(line) is None or line.startswith("at every")


def test_prose_that_looks_like_a_heading_has_no_rows() -> None:
    assert not said("at every step, we log the loss, the rate", "fine, then, 3", "1, 2, 3, 4")


def test_the_table_ends_where_its_lines_do() -> None:
    """Twenty other lines, or another heading; a warning between two rows ends nothing."""
    head = "step,loss"
    warned = said(head, "1,2.5", "UserWarning: x", "", "2,2.4")
    assert [p.step for p in warned] == [1, 2]
    assert len(said(head, "1,2.5", *["text"] * 21, "2,2.4")) == 1
    assert len(said(head, "1,2.5", "epoch,loss", "2,2.4")) == 1
    assert not said(head, "1,2.5,3.5", "x,2.5", "1.5,2.5", "-1,2.5", "inf,2.5", ",")


@pytest.mark.parametrize("heads", ["iter,d_loss,g_loss", "step,loss,mean_reward"])
def test_losses_that_need_not_fall(heads: str) -> None:
    (row,) = said(heads, ",".join(["3"] + ["1.5"] * heads.count(",")))
    assert not row.falling


def test_a_notebook_s_table_is_judged(tmp_path: Path) -> None:
    """Its rows are found though they hold no word, cited by their own lines, and read once."""
    rows = [f"{500 * n}\t{4 / n if n < 9 else math.nan:.6f}" for n in range(1, 15)]
    log = tmp_path / "cell.txt"
    log.write_text("\n".join(["Step\tTraining Loss", *rows, "Some epoch, step or other"]) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))
    assert verdict.code == "E1"
    cites = [cite for told in verdict.shows for cite in told.cites]
    assert {4500, 7000} <= {int(c.text.split("\t")[0]) for c in cites if c.source == "cell.txt"}


@pytest.mark.parametrize("blanks", [1, 2, 6])
def test_a_table_whose_heading_is_padded(tmp_path: Path, blanks: int) -> None:
    """Under its own heading alone; the last line is another."""
    rows = [f"   {n:2} | {0.7 + 0.001 * (n % 3):.4f} | 0.50" for n in range(1, 31)]
    head = f"Epoch{' ' * blanks}| train_loss | val_acc"
    (tmp_path / "job.log").write_text("\n".join([head, *rows, "best 0.50 at epoch 1"]))

    assert diagnose(collect(Request((str(tmp_path),)))).code == "E1"


def test_a_csv_of_losses_is_read_and_one_of_data_is_not(tmp_path: Path) -> None:
    rows = "".join(f"{n},0.5,{4 / (n + 1)}\n" for n in range(30))
    (tmp_path / "log.csv").write_text("epoch,accuracy,loss\n" + rows)
    (tmp_path / "data.csv").write_text("name,price\nCUDA error: out of memory,3\n")
    facts = collect(Request((str(tmp_path),)))
    assert {track.source for track in facts.tracks} == {"log.csv"}
    assert not facts.matches


@pytest.mark.parametrize(
    "head",
    ["step,loss_scale", "epoch,loss_weight", "epoch,best_loss", "step,packet loss,rtt",
     "step,stop_loss,profit", "step,loss,api_key", "| step | loss | password |"],
)  # fmt: skip
def test_columns_that_are_no_loss_and_headings_of_secrets(head: str) -> None:
    """What is lost elsewhere, set or best is no loss; a secret below its name is not quoted."""
    assert headed.heading(head) is None


def test_what_only_balances_is_not_added() -> None:
    (row,) = said("step,lm_loss,aux_loss,z_loss", "10,2.5,0.5,90.0")
    assert (row.loss, row.loss_name) == (2.5, "lm loss")
    assert [p.loss for p in said("step,train_loss_step", "10,2.5")] == [2.5]


def test_an_empty_cell_that_pandas_wrote_is_no_lost_loss() -> None:
    """A loss is lost where nothing else of the row has come to have a value."""
    head = "epoch,step,train_loss,val_acc"
    told = said(head, "0,50,2.5,nan", "0,100,nan,0.5", "1,150,2.4,nan", "1,200,nan,0.6")
    assert [p.loss for p in told] == [2.5, 2.4]
    assert [p.kind for p in said("step,train_loss,val_loss", "50,nan,0.5")] == ["eval"]
    lost = said("epoch,loss,mae,val_loss", "0,2.5,1.0,2.4", "1,nan,nan,nan")
    assert [(p.kind, math.isnan(p.loss or 0.0)) for p in lost] == [
        ("train", False), ("eval", False), ("train", True), ("eval", True)
    ]  # fmt: skip


def test_a_training_loss_that_a_notebook_repeats() -> None:
    head = "Epoch\tTraining Loss\tValidation Loss"
    told = said(head, "1\t0.5523\t0.9", "2\t0.5523\t0.8", "3\t0.5523\t0.8")
    assert [p.epoch for p in told if p.kind == "train"] == [1.0, 3.0]


def test_tables_beyond_a_bound_are_a_gap(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("step,loss\n" * (MOST_TABLES + 2))
    gaps = collect(Request((str(tmp_path),))).gaps
    assert [gap.reason for gap in gaps if gap.need == "every table"] == ["2 or more were left out"]
