"""Logs nobody here wrote, read whole; skipped where they are not at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.logs.clock import Clock
from flatline.logs.labels import Labels
from flatline.logs.reading import clean, is_text, open_text, read_head
from flatline.logs.scan import Scanner
from flatline.logs.streams import stream_lines
from flatline.logs.traceback import read_traceback

SHARED = Path(__file__).parents[3] / "shared"
LOGS = sorted(
    path
    for folder in ("realdata/bigscience", "realdata/mlperf", "realdata/superbenchmark", "samples")
    for ending in ("*.log", "*.out", "*.err", "*.txt", "*.tty")
    for path in (SHARED / folder).rglob(ending)
)
pytestmark = pytest.mark.skipif(not LOGS, reason="no recorded logs beside the project")


@pytest.fixture(scope="module")
def scanner(tmp_path_factory: pytest.TempPathFactory) -> Scanner:
    words = (r"Traceback \(most recent call last\)", r"(?i)\b(error|warn)", r"\d%\|", r"^step ")
    return Scanner(words, tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize("path", LOGS, ids=lambda path: str(path.relative_to(SHARED)))
def test_a_log_is_read_whole_and_every_hit_stands_in_its_line(
    path: Path, scanner: Scanner
) -> None:
    """Lines are counted as `wc` counts them, and what was found is found again."""
    with open_text(path, path.name) as file:
        found = list(scanner.scan(file))
        labels = Labels.learn(clean(raw) for raw in file.sample())
        clock = Clock.learn(clean(raw) for raw in file.sample())
        for hit in found[:: max(1, len(found) // 50)]:
            assert clean(hit.text) in (file.line(hit.line) or "")
        for hit in found:
            clock.read(labels.split(clean(hit.text), clean(hit.head)).text)
        lines = file.line_count
    data = path.read_bytes()

    assert is_text(read_head(path, 65_536))
    assert lines == data.count(b"\n") + (not data.endswith(b"\n") and data != b"")


@pytest.mark.parametrize("path", LOGS, ids=lambda path: str(path.relative_to(SHARED)))
def test_every_traceback_ends_in_an_exception(path: Path, scanner: Scanner) -> None:
    """None of these logs breaks off within one."""
    with open_text(path, path.name) as file:
        labels = Labels.learn(clean(raw) for raw in file.sample())
        read_to: dict[str, int] = {}
        for hit in scanner.scan(file):
            key = labels.split(clean(hit.text), clean(hit.head)).key
            if 0 not in hit.ids or hit.line <= read_to.get(key, 0):
                continue
            crash = read_traceback(stream_lines(file, labels, hit.line, key))
            assert crash is not None
            assert crash.complete, f"line {hit.line}"
            assert crash.frames
            read_to[key] = crash.end_line
