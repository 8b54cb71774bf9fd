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
