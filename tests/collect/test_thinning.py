"""Progress without end is sampled, and nothing else is."""

from __future__ import annotations

import pytest

from flatline.collect import thinning
from flatline.collect.thinning import BAR, LINE, thinned
from flatline.logs.scan import Hit

FORMATS = {7}


def hit(line: int, segment: int, *ids: int) -> Hit:
    return Hit(line, segment, b"", ids, b"")


def test_a_bar_is_read_now_and_then_and_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond its first redraws; what a signature stands for is always read."""
    monkeypatch.setattr(thinning, "REDRAWS", 5)
    bar = [hit(1, n, 7) for n in range(200)]
    bar[100] = hit(1, 100, 2, 7)
    left: dict[str, int] = {}
    read = [one.segment for one in thinned([*bar, hit(2, 0, 7)], FORMATS, left)]

    assert read == [0, 1, 2, 3, 4, 60, 100, 121, 182, 199, 0]
    assert left == {BAR: 191}


def test_lines_by_the_million_are_read_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of them is."""
    monkeypatch.setattr(thinning, "LINES", 5)
    left: dict[str, int] = {}
    hits = [hit(n, 0, 3 if n == 90 else 7) for n in range(1, 101)]
    read = [one.line for one in thinned(hits, FORMATS, left)]

    assert read == [1, 2, 3, 4, 5, 61, 90, 100]
    assert left == {LINE: 93}
