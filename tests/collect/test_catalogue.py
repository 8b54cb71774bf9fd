"""What is kept of the signatures between runs is what their files say, or is made again."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline import signatures
from flatline.collect.catalogue import _signatures
from flatline.logs.database import keep


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "flatline"


def stored(folder: Path) -> Path:
    return next(folder.glob("signatures-*.json"))


def test_the_second_time_no_toml_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _signatures() == signatures.load()

    def refused(text: str, name: str) -> None:
        raise AssertionError(name)

    monkeypatch.setattr(signatures, "tables", refused)
    assert _signatures() == signatures.load()
    assert len([*folder.iterdir()]) == 1


@pytest.mark.parametrize("payload", (b"{", b"[1]", b'{"torch": [{"id": "x"}]}', b'{"torch": 1}'))
def test_what_was_kept_otherwise_is_made_again(folder: Path, payload: bytes) -> None:
    _signatures()
    keep(folder, stored(folder).name, payload)

    assert _signatures() == signatures.load()


def test_a_cut_file_is_made_again(folder: Path) -> None:
    _signatures()
    stored(folder).write_bytes(stored(folder).read_bytes()[:-9])

    assert _signatures() == signatures.load()
