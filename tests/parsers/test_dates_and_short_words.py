"""Months that are words, and epochs by a short name."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Progress, Verdict
from flatline.parsers import begun_anew, markers, plain


def judged(folder: Path, lines: list[str]) -> Verdict:
    (folder / "train.log").write_text("\n".join([*lines, ""]))
    return diagnose(collect(Request((str(folder),))))


def kinds(reader: markers.Reader | begun_anew.Reader, line: str) -> list[str]:
    return [said.kind for said in reader.feed(line)]


@pytest.mark.parametrize(
    "stamp",
    [
        "04 May 11:02    INFO ",
        "May  4 11:02:09 INFO ",
        "[Sun May 4 2025] INFO ",
        "4/May/2025 INFO ",
    ],
)
def test_a_month_is_no_doubt(stamp: str) -> None:
    """What is said in May is said."""
    assert kinds(markers.Reader(), f"{stamp} Finished training, best result in epoch 4") == [
        "finished"
    ]
    text = f"{stamp} no checkpoint found under /runs/a, starting at step 0"
    assert kinds(begun_anew.Reader(), text) == ["fresh"]


@pytest.mark.parametrize("doubt", ["may have", "May have", "MAY have"])
def test_a_doubt_is_one(doubt: str) -> None:
    assert kinds(markers.Reader(), f"INFO the run {doubt} loaded its checkpoint at step 400") == []


def read(lines: list[str]) -> list[Progress]:
    reader = plain.Reader()
    return [said for line in lines for said in reader.feed(line)]


def test_a_counter_of_a_short_epoch() -> None:
    """It begins anew with each, and no run with it."""
    lines = [f"ep {e:02d} it {n:4d}/800 loss 2.5" for e in range(3) for n in range(0, 800, 200)]

    assert [said.step for said in read(lines)][-5:] == [1400, 1600, 1800, 2000, 2200]
    assert read(["ep 12 loss 2.5 reward 3.0"]) == []
    assert [said.epoch for said in read(["deep 12 step 40 loss 2.5"])] == [None]


def test_a_loss_that_stands_over_short_epochs(tmp_path: Path) -> None:
    """With no gradient it learns nothing, in whichever epoch."""
    line = "ep {:02d} it {:4d}/800 loss {} gnorm {}"
    at = [(e, n) for e in range(8) for n in range(0, 800, 100)]
    still = [line.format(e, n, 4.605, 0.0) for e, n in at]
    learns = [line.format(e, n, round(4.6 * 0.97 ** (8 * e + n / 100), 4), 0.8) for e, n in at]

    assert judged(tmp_path, still).code == "E1"
    assert judged(tmp_path, learns).code != "E1"


def table(count: int, reward: float) -> list[str]:
    return [
        "-----------------------------------",
        f"| rollout/           | {'':12} |",
        f"|    ep_rew_mean     | {reward:<12.5g} |",
        f"| time/              | {'':12} |",
        f"|    iterations      | {count:<12} |",
        f"|    total_timesteps | {count * 512:<12} |",
        f"| train/             | {'':12} |",
        f"|    approx_kl       | {0.004:<12} |",
        "-----------------------------------",
    ]


@pytest.mark.parametrize(
    ("rewards", "healthy"),
    [
        ([20.0 + 9 * n for n in range(40)], True),
        ([-900.0 + 20 * n for n in range(40)], True),
        ([20.0] * 40, False),
        ([20.0 + 9 * n for n in range(30)] + [21.0] * 10, False),  # it was lost again
        ([20.0 + 9 * n for n in range(39)] + [float("nan")], True),
    ],
    ids=["rises", "below nought", "stands", "lost again", "no episode ended last"],
)
def test_a_policy_by_its_reward(tmp_path: Path, rewards: list[float], healthy: bool) -> None:
    """Where no table names a loss, the reward tells whether it learnt."""
    lines = [row for n, reward in enumerate(rewards, 1) for row in table(n, reward)]

    assert (judged(tmp_path, [*lines, "Saving to out/ppo/Cart-v1_3"]).code == "G1") is healthy
    assert judged(tmp_path, lines).code != "G1"
