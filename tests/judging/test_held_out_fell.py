"""E1 and D6: a training loss that steps up while that of held-out cases falls on."""

from __future__ import annotations

import gzip
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

SLOWER = Path(__file__).parents[1] / "scenarios" / "experts_out_of_balance_as_pace_falls" / "run"
FALLS = (7.2, 7.1, 7.05, 7.0, 6.96, 6.9)


def stepped(folder: Path, held_out: tuple[float, ...], since: int = 3) -> Verdict:
    """Epochs of WeNet's, whose loss is half as high again, and more, from one of them on."""
    at, lines = datetime(2026, 2, 14, 22, tzinfo=UTC), []
    for epoch, cv in enumerate(held_out, 10):
        for batch in range(0, 2000, 100):
            at += timedelta(seconds=30)
            loss = (14.0 if epoch >= 10 + since else 8.5) + (batch % 700) / 900
            lines.append(
                f"{at:%Y-%m-%d %H:%M:%S},112 DEBUG TRAIN | steps/sec 3.3| Batch {epoch}/{batch}"
                f" loss {loss:.6f} lr 0.00031000 grad_norm 2.860797 rank 0"
            )
        lines.append(f"{at:%Y-%m-%d %H:%M:%S},900 INFO Epoch {epoch} CV info cv_loss {cv}")
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    return diagnose(collect(Request((str(folder),))))


def test_a_model_that_is_better_on_held_out_cases_did_not_diverge(tmp_path: Path) -> None:
    assert stepped(tmp_path, FALLS).code != "E1"


@pytest.mark.parametrize(
    ("held_out", "since"),
    [((7.2, 7.1, 7.05, 9.0, 11.2, 12.9), 3), ((7.2, 7.1, 7.05, 7.1, 7.08, 7.06), 3), (FALLS, 5)],
    ids=["rises", "stands above its best", "one evaluation since"],
)
def test_what_held_out_cases_do_not_speak_against(
    tmp_path: Path, held_out: tuple[float, ...], since: int
) -> None:
    assert stepped(tmp_path, held_out, since).code == "E1"


def other_batches(folder: Path, grows: float) -> Verdict:
    """Steps that take longer from one on, at which their loss steps up; no router is heard of."""
    numbers = gzip.decompress((SLOWER / "metrics.prom.gz").read_bytes()).decode()
    kept = [line for line in numbers.splitlines() if "tb_" not in line]
    (folder / "metrics.prom").write_text("\n".join(kept) + "\n")
    lines = []
    for text in (SLOWER / "job.log").read_text().splitlines():
        found = re.search(r"completed step: (\d+)", text)
        step = int(found[1]) if found else 0
        loss = (3.7 if step >= 262 else 2.1) + step % 7 / 50
        lines.append(re.sub(r"(?<= loss: )[\d.]+", f"{loss:.3f}", text))
        if step and step % 40 == 0:
            lines.append(f"0: eval metrics after step: {step}, loss={2 + grows * step:.4f},"
                         " total_weights=65536.0")  # fmt: skip
    (folder / "job.log").write_text("\n".join(lines) + "\n")
    return diagnose(collect(Request((str(folder),))))


def test_batches_that_take_longer_and_are_harder(tmp_path: Path) -> None:
    verdict = other_batches(tmp_path, -0.001)

    assert (verdict.code, verdict.fault_class) == ("D6", "size")
    assert verdict.confidence < 0.8


def test_batches_of_a_model_that_is_worse(tmp_path: Path) -> None:
    assert other_batches(tmp_path, 0.001).code == "E1"
