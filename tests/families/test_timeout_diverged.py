"""A limit that ended a run whose loss had been lost long before: the loss is the verdict."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

START, STEPS, EACH_S = datetime(2026, 4, 3, 8, tzinfo=UTC), 400, 30


def fell(n: int) -> float:
    return 2 + 6 / (1 + n / 20) + 0.02 * (n % 7 - 3)


def spiked(n: int) -> float:
    return fell(n) if n < 200 else 7.4 + 0.03 * (n % 5)


def came_back(n: int) -> float:
    return fell(n) if n < 200 or n > 215 else 7.4


def not_a_number(n: int) -> float:
    return fell(n) if n < 200 else float("nan")


@pytest.mark.parametrize(
    ("loss", "code"),
    [(fell, "F3"), (came_back, "F3"), (spiked, "E1"), (not_a_number, "E1")],
)
def test_what_a_limit_cut_short(tmp_path: Path, loss: Callable[[int], float], code: str) -> None:
    """A spike that is come back from is none."""
    lines = [
        f"{START + timedelta(seconds=EACH_S * n):%Y-%m-%d %H:%M:%S} step {n}/5000"
        f" loss {loss(n):.4f}"
        for n in range(STEPS)
    ]
    end = START + timedelta(seconds=EACH_S * STEPS)
    lines.append(f"slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT {end:%Y-%m-%dT%H:%M:%S} DUE TO"
                 " TIME LIMIT ***")  # fmt: skip
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")

    told = diagnose(collect(Request((str(tmp_path),))))

    assert (told.code, told.confidence >= 0.8) == (code, True)
    assert {one.finding.code for one in told.findings} >= {"F3"}


def evaluated(epochs: list[int]) -> str:
    told = "".join(f"Epoch {n}: val_loss {2 / (1 + n):.4f} (12.2 min)\n" for n in epochs)
    return told + "TERM_RUNLIMIT: job killed after reaching LSF run time limit.\nExited\n"


@pytest.mark.parametrize(
    ("epochs", "code"),
    [([*range(1, 30)], "F3"), ([1, 2], None), ([5, 6, 7, 1, 2], None)],
    ids=["one after the other", "two", "out of their order"],
)
def test_epochs_alone_are_weak_progress(
    tmp_path: Path, epochs: list[int], code: str | None
) -> None:
    (tmp_path / "job.log").write_text(evaluated(epochs))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code if verdict.state == "found" else None) == code
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(("undated", "code"), [(60, "F3"), (0, None)])
def test_steps_that_went_on_without_a_readable_date(
    tmp_path: Path, undated: int, code: str | None
) -> None:
    """The last date is not that of the last step: it shows no silence."""
    lines = [
        f"{START + timedelta(seconds=EACH_S * n):%Y-%m-%d %H:%M:%S} step {n}/5000"
        f" loss {fell(n):.4f}"
        for n in range(60)
    ]
    lines += [f"2026-04-03 {24 + n // 60}:{n % 60:02d}:00 step {n}/5000 loss {fell(n):.4f}"
              for n in range(60, 60 + undated)]  # fmt: skip
    lines.append("slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2026-04-04T08:00:00 DUE TO TIME"
                 " LIMIT ***")  # fmt: skip
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")

    told = diagnose(collect(Request((str(tmp_path),))))
    assert (told.code == code) if code else (told.code != "F3")


@pytest.mark.parametrize(("ended", "code"), [("14:20:40", "F3"), ("23:50:40", None)])
def test_epochs_that_tell_an_accuracy_alone(tmp_path: Path, ended: str, code: str | None) -> None:
    """Their dates tell whether it still moved as the limit came."""
    lines = [
        f"[{START + timedelta(minutes=40 * n):%Y-%m-%d %H:%M:%S}] epoch {n}: test_acc {n / 50:.4f}"
        for n in range(1, 10)
    ]
    limit = f"slurmstepd: error: *** JOB 5 ON n7 CANCELLED AT 2026-04-03T{ended} DUE TO TIME LIMIT"
    (tmp_path / "slurm-5.out").write_text("\n".join([*lines, f"{limit} ***", ""]))

    assert diagnose(collect(Request((str(tmp_path),)))).code == code
