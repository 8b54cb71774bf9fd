"""E3 where the settings say that a run was planned to end inside its warm-up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict


def completed(
    folder: Path, said: str, *, plan: int = 300, rates: tuple[float, ...] = ()
) -> Verdict:
    """A run that reached its plan, its loss falling; learning rates where they are printed."""
    at, lines = datetime(2026, 4, 28, 19, tzinfo=UTC), [f"total steps {plan}", said]
    for n, step in enumerate(range(10, plan + 10, 10)):
        at += timedelta(seconds=30)
        rate = f" lr: {rates[n % len(rates)]:.2e}" if rates else ""
        lines.append(
            f"{at:%Y-%m-%d %H:%M:%S} step: {step}/{plan} loss: {12 - step / 90:.4f}{rate}"
        )
    lines.append(f"{at:%Y-%m-%d %H:%M:%S} Training completed")
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    (folder / "sacct.psv").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
        f"7|llm|COMPLETED|0:0|2026-04-28T18:59:00|{at:%Y-%m-%dT%H:%M:%S}|1|n1\n"
    )
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    "said",
    ["Trainer: total steps 300 (warmup 2000)", "  lr_warmup_iters ................ 2000",
     "{'lr': 1e-4, 'warmup_steps': 2000}", "num_warmup_steps=300", "warm_up_updates: 500"],
)  # fmt: skip
def test_a_warm_up_that_is_longer_than_the_plan(tmp_path: Path, said: str) -> None:
    """Never surely: another schedule may be in use."""
    verdict = completed(tmp_path, said)

    assert (verdict.code, verdict.fault_class) == ("E3", "warm-up")
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    ("said", "rates"),
    [
        ("warmup_steps: 100", ()),
        ("warmup_ratio: 0.03", ()),
        ("warmup_tokens: 2000M", ()),
        ("profiler: warmup 2000 steps, lr warmup: 20", ()),
        ("warmup_steps: 2000\nlr_warmup_iters: 30", ()),
        ("warmup_steps: 2000", (1e-4, 1e-4)),
        ("warmup_steps: 2000", (2e-4, 1.9e-4)),
    ],
    ids=["shorter", "a part", "tokens", "another one first", "two", "the rate stands",
         "the rate falls"],
)  # fmt: skip
def test_near_misses(tmp_path: Path, said: str, rates: tuple[float, ...]) -> None:
    assert completed(tmp_path, said, rates=rates).code == "G1"


ROSE = tuple(1e-6 * n for n in range(1, 31))


@pytest.mark.parametrize(
    "said",
    [
        "warmup_steps=2000",
        "[NeMo W 2026-04-28 19:00:00] LR warmup_steps (500) is larger than max_steps (300)",
    ],
)
def test_a_rate_that_only_rose_through_a_warm_up_that_is_stated(tmp_path: Path, said: str) -> None:
    for rates in (ROSE, (*ROSE[:15], *ROSE[14:29])):  # one is printed like the one before
        verdict = completed(tmp_path, said, rates=rates)

        assert (verdict.code, verdict.fault_class) == ("E3", "warm-up")
        assert "rose to the last step" in verdict.headline


@pytest.mark.parametrize("said", ["lr 3e-5", "warmup_steps: 100"])
def test_a_rate_that_only_rose_warns_where_no_warm_up_is_stated(tmp_path: Path, said: str) -> None:
    """A schedule may have been meant so."""
    verdict = completed(tmp_path, said, rates=ROSE)

    assert verdict.code == "G1"
    assert [f.finding.code for f in verdict.findings if f.finding.role == "warning"] == ["E3"]


def test_a_rate_that_only_rose_over_a_part_of_the_plan_is_no_warning(tmp_path: Path) -> None:
    """It is to go on."""
    completed(tmp_path, "lr 3e-5", rates=ROSE)
    log = tmp_path / "train.log"
    log.write_text(log.read_text().replace("/300", "/20000").replace("steps 300", "steps 20000"))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code != "E3"
    assert [f for f in verdict.findings if f.finding.code == "E3"] == []
