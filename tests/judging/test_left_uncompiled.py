"""Steps that are slow from where the compiler gave a function up."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

LIMIT = (
    "W0611 14:20:31.110412 22 torch/_dynamo/convert_frame.py:844] [0/8] torch._dynamo hit"
    " config.recompile_limit (8)\n"
)


def judged(folder: Path, said: int, slow: range, steps: int = 200) -> Verdict:
    lines = []
    for n in range(steps):
        lines.append(LIMIT if n == said else "")
        took = 900 + n % 7 if n in slow else 200 + n % 5
        lines.append(f"iter {10 * n}: loss {9 * 0.99**n:.4f}, time {took}.00ms\n")
    (folder / "train.log").write_text("".join(lines))
    return diagnose(collect(Request((str(folder),))))


def test_slow_since_then(tmp_path: Path) -> None:
    """To the end: nothing compiles it later."""
    verdict = judged(tmp_path, 120, range(120, 200))

    assert (verdict.code, verdict.fault_class) == ("D6", "recompilation")
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    ("said", "slow"),
    [
        (60, range(120, 200)),  # it fell elsewhere
        (120, range(120, 160)),  # and is fast again
        (120, range(0)),  # it cost nothing
        (-1, range(120, 200)),
    ],
)
def test_slow_for_something_else(tmp_path: Path, said: int, slow: range) -> None:
    """The limit is hit by functions that matter little as well."""
    assert judged(tmp_path, said, slow).code != "D6"
