"""How Kaldi, Lightning and RL Zoo end, and epochs whose results bear no name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Progress, Verdict
from flatline.parsers import LineFormat, kaldi, lightning, logger_table, plain


def said(form: LineFormat, *lines: str) -> list[Progress]:
    reader, found = form.Reader(), []
    for line in lines:
        values = list(reader.feed(line))
        assert not values or any(re.search(t, line) for t in form.TRIGGERS), line
        found += [value for value in values if isinstance(value, Progress)]
    return found


def judged(folder: Path, lines: Sequence[str]) -> Verdict:
    (folder / "train.log").write_text("\n".join([*lines, ""]))
    return diagnose(collect(Request((str(folder),))))


SUMMARY = (
    "exp/nnet3/tdnn: num-iters=61 nj=2..4 num-params=5.1M dim=40+100->1824 combine=-0.20->-0.19"
    " (over 2) {0}:train/valid[{1}]=(-0.34,-0.22,-0.20/-0.41,-0.30,-0.28)"
    " accuracy:train/valid[{1}]=(0.71,0.80,0.81/0.68,0.75,0.76)"
)


@pytest.mark.parametrize("name", ["logprob", "loglike"])
@pytest.mark.parametrize("final", ["final", "combined"])
def test_the_summary_of_kaldi(name: str, final: str) -> None:
    """The values of the held-out set are those behind the slash."""
    *told, end = said(kaldi, SUMMARY.format(name, f"39,59,{final}"))

    assert [(one.step, one.loss, one.loss_name) for one in told] == [
        (39, -0.41, name), (59, -0.3, name), (None, -0.28, name),
    ]  # fmt: skip
    assert all(one.kind == "eval" and not one.falling for one in told)
    assert (end.kind, end.planned) == ("finished", 61)


def test_the_summary_of_a_folder_at_work_is_no_end() -> None:
    assert said(kaldi, SUMMARY.format("logprob", "19,39,40")) == []
    assert said(kaldi, "exp/tri3: num-iters=35 nj=4 align prob=-49.1 over 9h tree-impr=4.9") == []


def iterations(upto: int) -> list[str]:
    return [
        f"2020-02-03 {10 + n // 60}:{n % 60:02d}:00,000 [steps/nnet3/train_dnn.py:368 - train -"
        f" INFO ] Iter: {n}/60   Jobs: 4   Epoch: {n / 20:.2f}/3.0   lr: 0.001000   "
        for n in range(upto)
    ]


def late(final: str) -> str:
    told = SUMMARY.format("logprob", "39,59,final")
    return told.replace("-0.41,-0.30,-0.28", f"-0.41,{final},{final}")


@pytest.mark.parametrize(
    ("lines", "healthy"),
    [
        ([*iterations(61), SUMMARY.format("logprob", "39,59,final")], True),
        ([*iterations(40), SUMMARY.format("logprob", "19,38,39")], False),
        (iterations(61), False),
        ([*iterations(61), SUMMARY.format("logprob", "39,59,final").replace("-0.28", "-0.47")],
         False),
        ([*iterations(61), late("-0.39")], True),
        ([*iterations(61), late("-0.408")], False),
        ([*iterations(61), late("-0.39").replace("[39,", "[9,")], False),
    ],
    ids=["whole", "at work", "not combined", "the final one is worse", "better by little, late",
         "no better", "better by little since early on"],
)  # fmt: skip
def test_a_recipe_of_kaldi(tmp_path: Path, lines: list[str], healthy: bool) -> None:
    assert (judged(tmp_path, lines).code == "G1") is healthy


def bars(epochs: range) -> list[str]:
    return [
        f"Epoch {epoch}: {n}%|##  | {2 * n}/200 [00:{n // 2:02d}<00:50,  4.00it/s, v_num=7,"
        f" train_loss={0.4 + 3 / (1 + epoch + n / 100):.4f}]"
        for epoch in epochs
        for n in range(10, 101, 10)
    ]


STOPS = "Monitored metric valid/wer did not improve in the last {} records. Best score: 0.210."
SIGNALS = " Signaling Trainer to stop."


@pytest.mark.parametrize(
    ("lines", "healthy"),
    [
        ([*bars(range(7)), STOPS.format(3) + SIGNALS], True),
        ([*bars(range(7)), "Stopping threshold reached: acc = 0.99 > 0.98." + SIGNALS], True),
        ([*bars(range(5)), STOPS.format(3) + SIGNALS, *bars(range(5, 7))], False),
        ([*bars(range(7)), STOPS.format(3)], False),
        ([*bars(range(7)), "Monitored metric wer = nan is not finite." + SIGNALS], False),
        ([*bars(range(7)), STOPS.format(3) + SIGNALS, "Traceback (most recent call last):",
          '  File "fit.py", line 3, in <module>', "    test(net)", "ValueError: no rows"], False),
        ([STOPS.format(3) + SIGNALS, *bars(range(7))], False),
    ],
    ids=["no better", "good enough", "it went on", "no signal", "no number", "raised behind it",
         "before any step"],
)  # fmt: skip
def test_what_early_stopping_of_lightning_ends(
    tmp_path: Path, lines: list[str], healthy: bool
) -> None:
    assert (judged(tmp_path, lines).code == "G1") is healthy


def updates(rise: float) -> list[str]:
    rows = []
    for n in range(1, 41):
        values = {
            "ep_len_mean": 100 + n % 7,
            "ep_rew_mean": round(-90 + rise * n, 1),
            "iterations": n,
            "approx_kl": 0.008 + n % 3 / 1000,
            "loss": 3 + n % 5 / 9,
        }
        rows += [
            "-" * 40,
            *(f"|    {name:<20} | {value:<10.6g} |" for name, value in values.items()),
        ]
    return [*rows, "-" * 40]


@pytest.mark.parametrize(
    ("lines", "healthy"),
    [
        ([*updates(3.0), "Saving to out/sac/Hopper-v4_12"], True),
        (updates(3.0), False),
        ([*updates(0.0), "Saving to out/sac/Hopper-v4_12"], False),
        ([*updates(3.0), "Saving to out/sac/best_model.zip"], False),
        ([*updates(3.0), "Saving to out/sac/Hopper-v4_12 every 10000 steps"], False),
    ],
    ids=["whole", "no word", "the reward stands", "another file", "a plan"],
)
def test_where_rl_zoo_saves(tmp_path: Path, lines: list[str], healthy: bool) -> None:
    assert (judged(tmp_path, lines).code == "G1") is healthy


def test_what_is_saved_before_any_table_is_no_end() -> None:
    assert said(logger_table, "Saving to out/sac/Hopper-v4_12") == []


@pytest.mark.parametrize(
    "line",
    [
        "Epoch 007 | train 0.4310 | val 0.5120 | 61.2 s",
        "2026-03-04 08:00:00 [INFO] epoch 7/90, train: 0.4310, valid: 0.5120",
        "Epoch: 7  train=0.4310 / test=nan",
        "Epoch   7 |   3360s | train 0.4310 | val 0.5120",
        "epoch 7/90 - 00:56:02 - train 0.4310, val 0.5120",
    ],
)
def test_results_of_an_epoch_without_a_name(line: str) -> None:
    """They may be accuracies."""
    (point,) = said(plain, line)

    assert (point.kind, point.epoch, point.loss, point.falling) == ("train", 7.0, 0.431, False)
    assert point.step is None


@pytest.mark.parametrize(
    "line",
    [
        "Epoch 7 | train 50000 | val 10000",
        "Epoch 7 | train 41.20 s | val 5.10 s",
        "Epoch 7 | train 91.20% | val 88.10%",
        "Epoch 7 | train 0.4310",
        "Epoch 7 | 3360s | train 41.20 s | val 5.10 s",
        "Epoch 7 | 3360 images | train 0.4310 | val 0.5120",
        "best train 0.4310 | val 0.5120",
    ],
)
def test_numbers_of_an_epoch_that_are_no_results(line: str) -> None:
    assert said(plain, line) == []


def test_a_limit_that_epochs_without_a_name_ran_into(tmp_path: Path) -> None:
    epochs = [
        f"Epoch {n:03d} | train {1 / n:.4f} | val {2 / n:.4f} | 60.0 s" for n in range(1, 31)
    ]
    limit = (
        "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-04T05:00:20 DUE TO TIME LIMIT ***"
    )

    assert judged(tmp_path, [*epochs, limit]).code == "F3"
    assert judged(tmp_path, [limit]).code != "F3"


def test_messages_of_lightning_that_stop_nothing() -> None:
    assert said(lightning, STOPS.format(3), "Signaling Trainer to stop") == []


def blocks(rewards: Sequence[float]) -> list[str]:
    return [
        line
        for n, reward in enumerate(rewards, 1)
        for line in ("-" * 33, f"|    ep_rew_mean      | {reward:<8.4g} |",
                     "|    fps              | 812      |",
                     f"|    total_timesteps  | {4096 * n:<8} |", "-" * 33)
    ]  # fmt: skip


MEASURED = "mean_reward=212.40 +/- 9.80"


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([*blocks([8.0 * n for n in range(30)]), MEASURED], "G1"),
        ([*blocks([8.0 * n for n in range(30)]), MEASURED.replace("=", ": ")], "G1"),
        ([MEASURED, *blocks([8.0 * n for n in range(30)])], None),
        (blocks([8.0 * n for n in range(30)]), None),
        ([*blocks([8.0 * n for n in range(15)]), MEASURED, *blocks([125.0] * 3)], None),
        ([*blocks([200.0 - 8 * n for n in range(30)]), MEASURED], None),
        (["epoch 3 loss 0.5", MEASURED], None),
    ],
    ids=["learnt", "in other words", "measured first", "cut off", "it went on", "fell",
         "another loop"],
)  # fmt: skip
def test_blocks_without_a_count(tmp_path: Path, lines: list[str], code: str | None) -> None:
    """Environment steps are no steps, and what is measured behind all blocks is the end."""
    assert judged(tmp_path, lines).code == code


def test_a_count_that_blocks_name_is_theirs() -> None:
    rows = ["| ep_rew_mean | 3.0 |", "| iterations | 2 |", "| total_timesteps | 4096 |"]
    assert said(logger_table, *rows) == []
