"""What a verdict that found no cause says of a run that became slower."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGIN = datetime(2026, 3, 4, 8, tzinfo=UTC)


def judged(folder: Path, took: Callable[[int], float], end: str = "") -> Verdict:
    """The verdict on 600 dated steps, each so many seconds long, and what follows them."""
    noise, at, lines = random.Random(3), BEGIN, []
    for step in range(600):
        at += timedelta(seconds=took(step) * noise.gauss(1, 0.005))
        loss = 2 + 7 * 0.99**step + noise.gauss(0, 0.01)
        lines.append(f"{at:%Y-%m-%d %H:%M:%S},000 INFO step {step}/5000 loss {loss:.4f}")
    (folder / "train.log").write_text("\n".join([*lines, end]) + "\n", "utf-8")
    return diagnose(collect(Request((str(folder),))))


def test_a_fall_is_told_with_its_lines(tmp_path: Path) -> None:
    verdict = judged(tmp_path, lambda step: 10.0 if step < 300 else 14.0)
    assert verdict.state == "undetermined"
    assert verdict.headline == (
        "Throughput fell by 29% from 08:50:06 UTC; nothing that was read says why"
    )
    assert next(getattr(cite, "line", None) for cite in verdict.shows[0].cites) == 301


def test_a_slow_beginning_is_no_fall(tmp_path: Path) -> None:
    verdict = judged(tmp_path, lambda step: 14.0 if step < 300 else 10.0)
    assert "fell" not in verdict.headline


def test_a_steady_pace_is_no_fall(tmp_path: Path) -> None:
    assert "fell" not in judged(tmp_path, lambda step: 10.0).headline


def test_a_cause_comes_first(tmp_path: Path) -> None:
    end = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    verdict = judged(tmp_path, lambda step: 10.0 if step < 300 else 14.0, end)
    assert verdict.code == "B1"


def test_a_run_with_nothing_left_to_do_is_told_so(tmp_path: Path) -> None:
    """It went on from its last step and ended: that is no run without an end."""
    end = ["INFO: Start training from epoch: 9, iter: 60000", "INFO: Saving the final model.",
           "INFO: End of training."]  # fmt: skip
    log = tmp_path / "train.log"
    log.write_text("\n".join(end) + "\n")
    headline = diagnose(collect(Request((str(tmp_path),)))).headline
    assert (
        headline == "The run went on from step 60000 and says it was done; no step since was read"
    )
    log.write_text("\n".join(end[:2]) + "\n")
    assert "went on" not in diagnose(collect(Request((str(tmp_path),)))).headline
    log.write_text("\n".join([end[0].replace("9", "0").replace("60000", "0"), *end[1:]]) + "\n")
    assert "went on" not in diagnose(collect(Request((str(tmp_path),)))).headline
