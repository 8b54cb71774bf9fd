"""A resume after which steps are counted from the beginning."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

ROW = "2026-04-0{day} 06:{n:02d}:00 step {step}/9000 loss {loss:.4f} lr {lr:.2e}\n"


def judged(folder: Path, first: int = 1, lr: float = 4e-6, named: str = "out/ck/004000") -> object:
    before = (ROW.format(day=1, n=n, step=80 * n, loss=3 - n / 40, lr=4e-4) for n in range(1, 50))
    after = (ROW.format(day=2, n=n, step=first + n, loss=1.75, lr=lr * (n + 1)) for n in range(9))
    said = f"Resuming from checkpoint {named}\n"
    (folder / "train.log").write_text("".join((*before, said, *after)))
    return diagnose(collect(Request((str(folder),)))).code


def test_the_count_and_the_warm_up_begin_anew(tmp_path: Path) -> None:
    assert judged(tmp_path) == "E2"


@pytest.mark.parametrize(
    ("first", "lr", "named"),
    [(4001, 4e-4, "out/ck/004000"), (1, 4e-4, "out/ck/004000"), (1, 4e-6, "out/ck/000012"),
     (1, 4e-6, "base/ck/700000")],
    ids=["it goes on", "a bar of each epoch", "the number of an epoch", "another run's"],
)  # fmt: skip
def test_what_is_counted_otherwise(tmp_path: Path, first: int, lr: float, named: str) -> None:
    assert judged(tmp_path, first, lr, named) != "E2"
