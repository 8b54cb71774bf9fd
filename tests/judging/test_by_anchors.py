"""Steps without dates between a library's lines that have them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.throughput import course
from flatline.model import Verdict

BEGAN = datetime(2026, 4, 5, 6, tzinfo=UTC)
EVERY, SAVE_S, TOOK_S = 60, 130.0, 8.0
STEP = (
    "Training epoch 0, iteration {n}/9000 | lr: 0.0001 | global_batch_size: 64 | global_step: {n}"
    " | reduced_train_loss: {loss:.3f} | train_step_timing in s: {said:.3f}"
    " | consumed_samples: {samples}\n"
)
SAYS = "[NeMo I {at:%Y-%m-%d %H:%M:%S} nemo_logging:393] "


def run(
    folder: Path, *, took_s: float = TOOK_S, slow_from: int = 999, silent_s: float = 5.0
) -> Path:
    """180 steps that say what they took, a save after each sixty, the record's now behind it."""
    at = BEGAN + timedelta(seconds=120)
    lines = [f"[NeMo I {at:%Y-%m-%d %H:%M:%S} utils:302] Setting up optimizers\n"]
    at += timedelta(seconds=60)
    for n in range(1, 181):
        said = TOOK_S * (1.6 if n >= slow_from else 1.0)
        at += timedelta(seconds=said * took_s / TOOK_S)
        lines.append(STEP.format(n=n, loss=4 - n / 90, said=said, samples=64 * n))
        if n % EVERY == 0 and n < 180:
            lines.append(SAYS.format(at=at) + f"Validation started at global_step {n}\n")
            at += timedelta(seconds=SAVE_S)
            lines.append(
                f"{SAYS.format(at=at)}Successfully saved checkpoint from iteration    {n} to"
                f" /ckpt/a/step={n}-last.ckpt\n"
            )
    elapsed = int((at - BEGAN).total_seconds() + silent_s)
    (folder / "slurm-8.out").write_text("".join(lines))
    clock = f"{elapsed // 3600:02d}:{elapsed // 60 % 60:02d}:{elapsed % 60:02d}"
    (folder / "sacct.psv").write_text(
        "JobID|JobName|State|ExitCode|Start|End|Elapsed|NNodes|NodeList\n"
        f"8|pre|RUNNING|0:0|{BEGAN:%Y-%m-%dT%H:%M:%S}|Unknown|{clock}|1|n1\n"
    )
    return folder


def judged(folder: Path) -> Verdict:
    return diagnose(collect(Request((str(folder),))))


def test_a_run_that_goes_on(tmp_path: Path) -> None:
    """Its last step is as old as its steps are long."""
    verdict = judged(run(tmp_path))

    assert verdict.code == "G1"
    assert verdict.confidence < 0.8


def test_one_silent_for_long(tmp_path: Path) -> None:
    assert judged(run(tmp_path, silent_s=1200)).code != "G1"


def test_when_it_became_slow(tmp_path: Path) -> None:
    """By the last dated line before it."""
    found = course(collect(Request((str(run(tmp_path, slow_from=80)),))))

    assert found is not None
    assert found.pace.clocked
    assert found.slow
    saved = BEGAN.timestamp() + 180 + EVERY * TOOK_S + SAVE_S
    assert found.slow[0].begins == pytest.approx(saved + 20 * TOOK_S, abs=3 * TOOK_S)


@pytest.mark.parametrize("took_s", [4.0, 14.0], ids=["less than they say", "far more"])
def test_sums_that_do_not_agree_with_the_dates(tmp_path: Path, took_s: float) -> None:
    found = course(collect(Request((str(run(tmp_path, took_s=took_s)),))))

    assert found is None or not found.pace.clocked
