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

ANEW = (
    "V0611 14:20:31.110412 22 torch/_dynamo/guards.py:2813] [3/2] [__recompiles] Recompiling"
    " function forward in /app/net.py:40\n"
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


def test_compiled_once_more_right_before(tmp_path: Path) -> None:
    """What that took stands apart from the level of what is run uncompiled."""
    lines = []
    for n in range(200):
        took = 9000 if n == 118 else 900 + n % 7 if n >= 120 else 200 + n % 5
        lines.append(LIMIT if n == 120 else "")
        lines.append(f"iter {n}: loss {9 * 0.99**n:.4f}, time {took}.00ms\n")
    (tmp_path / "train.log").write_text("".join(lines))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.fault_class) == ("D6", "recompilation")


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


def varied(folder: Path, anew: range, moved: int, sizes: int = 12) -> Verdict:
    """Slow from the 120th line on; where it compiles anew, and from where sizes vary."""
    lines = []
    for n in range(200):
        lines.append(ANEW if n in anew else "")
        took = 900 + n % 7 if n >= 120 else 200 + n % 5
        size = 1024 if n < moved else 64 * (n % sizes + 1)
        lines.append(f"iter {10 * n}: loss {9 * 0.99**n:.4f}, seq_len {size}, time {took}.00ms\n")
    (folder / "train.log").write_text("".join(lines))
    return diagnose(collect(Request((str(folder),))))


def test_compiled_anew_since_sizes_vary(tmp_path: Path) -> None:
    """What it costs is in steps between those lines as well: what else varies with the size."""
    verdict = varied(tmp_path, range(124, 200, 15), 120)

    assert (verdict.code, verdict.fault_class) == ("D6", "recompilation")
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    ("anew", "moved", "sizes"),
    [(range(4, 200, 15), 120, 12), (range(124, 200, 15), 60, 12), (range(124, 200, 15), 0, 12),
     (range(124, 140, 15), 120, 12)],
    ids=["all the time", "sizes vary before", "and always", "compiled anew too seldom"],
)  # fmt: skip
def test_sizes_that_explain_nothing(tmp_path: Path, anew: range, moved: int, sizes: int) -> None:
    """Where throughput fell nothing began."""
    assert varied(tmp_path, anew, moved, sizes).code != "D6"
