"""Errors of programs in Julia, which no Python traceback tells of."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

STACK = (
    "Stacktrace:\n  [1] getobs(d::Tiles, i::Int64)\n    @ Main ~/tiles/src/tiles.jl:41\n"
    "  [2] top-level scope\n    @ ~/tiles/run.jl:12\n"
    "in expression starting at /home/u/tiles/run.jl:12\n"
)
EPOCHS = "".join(f"[ Info: epoch {n} train_loss {0.9 - n / 10:.4f}\n" for n in range(1, 5))
NESTED = "TaskFailedException\n\n    nested task error: BoundsError: attempt to access 9-element"
WARNED = "┌ Error: LoadError in the plotting of a tile\n└ @ Main ~/tiles/src/plot.jl:9\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"{EPOCHS}ERROR: LoadError: {NESTED}\n{STACK}", ("A3", "code")),
        (f"ERROR: LoadError: UndefVarError: `depth` not defined\n{STACK}", ("A1", "config")),
        (f'ERROR: LoadError: SystemError: opening file "data/x.csv": No such file\n{STACK}',
         ("A1", "data")),
        (f"ERROR: LoadError: ArgumentError: Package Flux not found in path.\n{STACK}",
         ("A1", "env")),
        (f"{EPOCHS}{WARNED}{EPOCHS}", (None, None)),
    ],
    ids=["while it trains", "a name", "a file", "a package", "one that was logged"],
)  # fmt: skip
def test_an_error_that_nothing_caught(
    tmp_path: Path, text: str, wanted: tuple[str | None, str | None]
) -> None:
    (tmp_path / "run.log").write_text(text)
    found = diagnose(collect(Request((str(tmp_path),))))

    assert (found.code, found.fault_class) == wanted
    assert found.confidence < 0.8
