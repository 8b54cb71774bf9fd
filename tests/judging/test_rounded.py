"""Steps of a log that dates its lines in whole seconds."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.judging.rounded import far_apart
from flatline.judging.throughput import course

BEGAN = 1_772_611_200


@pytest.mark.parametrize(("fast", "slow"), [(2.0, 2.4), (1.1, 1.45), (5.3, 6.4)])
def test_a_slowness_below_a_second(tmp_path: Path, fast: float, slow: float) -> None:
    """The median length of a step is the same number of whole seconds before and after."""
    lines, at = [], float(BEGAN)
    for step in range(1, 801):
        at += fast if step <= 400 else slow
        stamp = f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"
        lines.append(f"{stamp} step {step}/9000 loss {4 - step / 400:.4f}\n")
    (tmp_path / "train.log").write_text("".join(lines))
    run = course(collect(Request((str(tmp_path),))))

    assert run is not None
    assert [phase.part for phase in run.slow] == [pytest.approx(fast / slow, abs=0.03)]
    assert run.slow[0].begins == pytest.approx(BEGAN + 400 * fast, abs=30)


def test_points_that_are_kept() -> None:
    """With fractions all, of few all, else those that are ten seconds apart."""
    whole = {n: float(3 * n) for n in range(400)}

    assert [*far_apart([*whole], whole, 12)] == [*range(0, 400, 4)]
    assert [*far_apart([*whole], {n: at + 0.25 for n, at in whole.items()}, 12)] == [*whole]
    assert [*far_apart([0, 1, 2], whole, 12)] == [0, 1, 2]
    assert len(far_apart([*range(48)], whole, 12)) >= 24
