"""The house rules that a machine can hold."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted(
    path for top in ("src", "lab", "bench", "docs") for path in (ROOT / top).rglob("*.py")
)
FILE_LINES, FUNCTION_LINES = 500, 60
BANNED = {"utils", "util", "helpers", "helper", "common", "core", "base", "manager", "misc"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_holds_at_most_500_lines(path: Path) -> None:
    """A longer file is two nouns."""
    assert len(path.read_text("utf-8").splitlines()) <= FILE_LINES


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_function_holds_at_most_60_lines(path: Path) -> None:
    """A longer function does two things."""
    tree = ast.parse(path.read_text("utf-8"))
    long = [
        f"{node.name} ({node.end_lineno - node.lineno + 1})"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES
    ]

    assert long == []


def test_no_module_is_a_drawer() -> None:
    """`utils` and its like are a noun nobody looked for."""
    drawers = [str(p) for p in SOURCES if p.stem in BANNED or p.parent.name in BANNED]

    assert drawers == []


def test_nothing_speaks_of_how_it_was_built() -> None:
    """The project speaks of itself alone; no machine path stands in it."""
    words = ("/wo" + "rk/main", "/ro" + "ot/", "sub" + "agent")
    found = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in [*SOURCES, *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
        for word in words
        if word in path.read_text("utf-8")
    ]

    assert found == []
