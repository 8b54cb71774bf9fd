"""What one card does alone between steps makes no straggler, and what ends a log no progress."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 8, 19, 8, 0, tzinfo=UTC)
EVERY, LONG_S = 250, 70
"""Steps from one evaluation to the next, and how long one takes."""


UTIL, ACTIVE = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_SM_ACTIVE"
ALIKE, FIRST, OTHERS = {UTIL: 99, ACTIVE: 0.7}, {UTIL: 20, ACTIVE: 0.64}, {UTIL: 99, ACTIVE: 0.4}


def evaluated(folder: Path, *, told: bool, metric: str = UTIL) -> Verdict:
    """Four cards of a host, of which the first is given its work late every few minutes, or works
    while the others do not: while the program evaluates, as it says, or for no reason it gives."""
    at, lines, idles = BEGAN, [], []
    for n in range(1, 2001):
        at += timedelta(seconds=1.9 + 0.01 * (n % 3))
        if n % 10 == 0:
            lines.append(f"{at:%Y-%m-%d %H:%M:%S} step {n}/3000 loss {3 - n / 1500:.4f}\n")
        if n % EVERY == 0:
            idles.append((at, at + timedelta(seconds=LONG_S)))
            at += timedelta(seconds=LONG_S)
            if told:
                lines.append(f"{at:%Y-%m-%d %H:%M:%S} step {n} eval loss {3 - n / 1500:.4f}\n")
    (folder / "train.log").write_text("".join(lines))
    (folder / "sacct.txt").write_text(
        "JobID|State|ExitCode|Start|End|NNodes|NodeList\n"
        f"9|TIMEOUT|0:0|{BEGAN:%Y-%m-%dT%H:%M:%S}|{at:%Y-%m-%dT%H:%M:%S}|1|n1\n"
    )
    rows, second = [], BEGAN
    while second < at:
        late = any(begin <= second <= end for begin, end in idles)
        for gpu in range(4):
            used = ((OTHERS if gpu else FIRST) if late else ALIKE)[metric]
            label = f'Hostname="n1",gpu="{gpu}",modelName="A100"'
            ms = int(second.timestamp() * 1000)
            rows.append(f"{metric}{{{label}}} {used} {ms}\n")
        second += timedelta(seconds=15)
    (folder / "metrics.prom").write_text("".join(sorted(rows, key=lambda row: row.split("}")[0])))
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("metric", [UTIL, ACTIVE])
def test_a_card_that_stands_apart_while_the_run_evaluates(tmp_path: Path, metric: str) -> None:
    """The others wait for it then, and no step is slower for it."""
    assert evaluated(tmp_path, told=True, metric=metric).code == "F3"


@pytest.mark.parametrize("metric", [UTIL, ACTIVE])
def test_one_that_does_for_no_reason_that_is_given(tmp_path: Path, metric: str) -> None:
    """It is given its work late, or has more of it."""
    verdict = evaluated(tmp_path, told=False, metric=metric)

    assert verdict.code == "D3"
    assert [(place.host, place.gpu) for place in verdict.culprits] == [("n1", "0")]


@pytest.mark.parametrize(
    ("ends", "code"),
    [("Epoch 26/120\n", "C3"), ("", "C3"), ("Saving the model to disk ...\n", None)],
    ids=["the next heading", "the last row", "what it never did before"],
)
def test_an_epoch_that_was_headed_and_never_told(
    tmp_path: Path, ends: str, code: str | None
) -> None:
    """Keras prints the heading first: behind one the run stood still as behind a row."""
    epochs = "".join(
        f"Epoch {n}/120\n2400/2400 - 200s - 83ms/step - accuracy: 0.{40 + n} - loss: {2 / n:.4f}\n"
        for n in range(1, 26)
    )
    (tmp_path / "nohup.out").write_text(epochs + ends)
    rows = []
    for second in range(0, 15_000, 30):
        ms = int((BEGAN.timestamp() + second) * 1000)
        own = 120 <= second <= 5150
        for gpu, (used, held, power) in enumerate(
            (
                (97 if own else 0, 22_000 if second >= 110 else 10, 300 if own else 60),
                (40 if second % 600 < 120 else 0, 7_400, 90),
            )
        ):
            label = f'Hostname="w2",gpu="{gpu}",modelName="A6000"'
            rows += [
                f"DCGM_FI_DEV_GPU_UTIL{{{label}}} {used} {ms}\n",
                f"DCGM_FI_DEV_FB_USED{{{label}}} {held} {ms}\n",
                f"DCGM_FI_DEV_POWER_USAGE{{{label}}} {power} {ms}\n",
            ]
    (tmp_path / "metrics.prom").write_text("".join(sorted(rows, key=lambda r: r.split("}")[0])))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == code
    assert verdict.confidence < 0.8


def one_card(
    folder: Path, epochs: int, below: str, ends: str, *, works_on: bool = False
) -> Verdict:
    """One card that works for so many epochs of 150 s, of which each is told by a row."""
    log, last = "", 120 + 150 * epochs
    for n in range(1, epochs + 1):
        at = BEGAN + timedelta(seconds=120 + 150 * n)
        log += f"Epoch {n}/40\n610/610 [=====] - 149s 244ms/step - loss: {2 / n:.4f}\n"
        log += below.format(at=f"{at:%Y-%m-%d %H:%M:%S}", n=n)
    (folder / "slurm-44.out").write_text(log + ends)
    (folder / "sacct.txt").write_text(
        "JobID|State|ExitCode|Start|End|NNodes|AllocTRES|NodeList\n"
        f"44|RUNNING|0:0|{BEGAN:%Y-%m-%dT%H:%M:%S}|Unknown|1|gres/gpu=1,node=1|w4\n"
    )
    rows = []
    for second in range(0, 9_000, 30):
        ms, works = int((BEGAN.timestamp() + second) * 1000), 120 <= second <= last or works_on
        label = 'Hostname="w4",gpu="1",modelName="V100"'
        rows += [
            f"DCGM_FI_DEV_GPU_UTIL{{{label}}} {92 if works else 0} {ms}\n",
            f"DCGM_FI_DEV_FB_USED{{{label}}} {20_000 if second >= 90 else 6} {ms}\n",
            f"DCGM_FI_DEV_POWER_USAGE{{{label}}} {230 if works else 55} {ms}\n",
        ]
    (folder / "metrics.prom").write_text("".join(sorted(rows, key=lambda r: r.split("}")[0])))
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("epochs", "below", "ends", "code"),
    [
        (7, "INFO:root:{at} epoch {n} is over\n", "Epoch 8/40\n", "C3"),
        (7, "epoch {n} is over\n", "Epoch 8/40\n", "C3"),
        (3, "epoch {n} is over\n", "Epoch 4/40\n", None),
        (7, "epoch {n} is over\n", "Writing an archive of all features\n", None),
    ],
    ids=["dated below each row", "not dated", "too few", "what it never did before"],
)
def test_a_few_epochs_and_then_none(
    tmp_path: Path, epochs: int, below: str, ends: str, code: str | None
) -> None:
    """What stood behind each row before is no other work; what a line below dates is the last."""
    verdict = one_card(tmp_path, epochs, below, ends)

    assert verdict.code == code
    assert [place.gpu for place in verdict.culprits] == (["1"] if code else [])


def test_a_long_epoch_of_a_card_at_work(tmp_path: Path) -> None:
    verdict = one_card(tmp_path, 7, "INFO:root:{at} over\n", "Epoch 8/40\n", works_on=True)

    assert verdict.code != "C3"
