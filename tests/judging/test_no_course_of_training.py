"""Losses that rise by what they were printed for: a sweep of rates, a table in another order."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose


@pytest.mark.parametrize(("rate", "code"), [
    ("{:.3e}", None),  # multiplied from step to step
    ("1.000e-04", "E1"),
])  # fmt: skip
def test_a_rate_that_is_multiplied_until_the_loss_leaves_its_bounds(
    tmp_path: Path, rate: str, code: str | None
) -> None:
    loss = [2.3 - 0.02 * n if n < 40 else 1.5 * 1.35 ** (n - 40) for n in range(60)]
    lines = [f"step {n} lr {rate.format(1e-6 * 1.3**n)} loss {v:.4f}" for n, v in enumerate(loss)]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    assert diagnose(collect(Request((str(tmp_path),)))).code == code


def test_a_warm_up_adds(tmp_path: Path) -> None:
    loss = [2.3 if n < 150 else 9 * 1.1 ** (n - 150) for n in range(200)]
    lines = [f"step {n} lr {1e-6 * (n + 1):.3e} loss {v:.4f}" for n, v in enumerate(loss)]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    assert diagnose(collect(Request((str(tmp_path),)))).code == "E1"


def test_a_table_that_is_sorted_otherwise_shows_no_course(tmp_path: Path) -> None:
    rows = "".join(f"{29 - n},{0.5 + 2 * 0.9 ** (29 - n):.4f}\n" for n in range(30))
    (tmp_path / "log.csv").write_text("epoch,loss\n" + rows)
    assert diagnose(collect(Request((str(tmp_path),)))).code is None


def test_steps_that_count_from_each_epoch_s_beginning_are_in_order(tmp_path: Path) -> None:
    loss = [2 * 0.95**n if n < 40 else 9 * 1.3 ** (n - 40) for n in range(60)]
    rows = "".join(f"{n // 3},{n % 3},{v:.4f}\n" for n, v in enumerate(loss))
    (tmp_path / "log.csv").write_text("epoch,step,loss\n" + rows)
    assert diagnose(collect(Request((str(tmp_path),)))).code == "E1"
