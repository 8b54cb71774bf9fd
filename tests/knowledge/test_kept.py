"""What is kept between runs is what would be made again, and is never needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from flatline.knowledge import kept
from flatline.knowledge.incident import load
from flatline.knowledge.index import words_of


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache of the test's own, and no memory of another."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept.shipped.cache_clear()
    yield tmp_path / "flatline"
    kept.shipped.cache_clear()


def test_what_is_read_is_what_was_made(cache: Path) -> None:
    """Records and words are the same from the cache as without it."""
    made = kept.shipped()
    assert len(list(cache.glob("incidents-*.json"))) == 1
    kept.shipped.cache_clear()
    assert kept.shipped() == made
    assert made[0] == load()
    assert made[1][0] == words_of(load()[0])


@pytest.mark.parametrize("payload", [b"", b"[]", b"[[{}], []]", b"{"])
def test_what_is_damaged_is_made_again(cache: Path, payload: bytes) -> None:
    """Silently: it is an optimisation."""
    kept.shipped()
    (file,) = cache.glob("incidents-*.json")
    kept.keep(cache, file.name, payload)
    kept.shipped.cache_clear()
    assert kept.shipped()[0] == load()


def test_no_cache_is_no_fault(cache: Path) -> None:
    """Where nothing can be written."""
    cache.write_text("a file in the way")
    assert kept.shipped()[0] == load()
