"""The cache of compiled patterns: fast where it can be trusted, silent where it cannot."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from flatline.logs import database
from flatline.logs.hits import ID_BITS

pytest.importorskip("hyperscan")
PATTERNS = ("loss: ", "Killed")


def works(one: database.Engine) -> bool:
    return one.ends(b"x\nloss: 1\n") == [8 << ID_BITS]


def compiled_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether an engine from this folder has to compile; it works in any case."""
    asked: list[int] = []
    original = database.compiled

    def compiled(filters: list[database.Prefilter]) -> object:
        asked.append(1)
        return original(filters)

    monkeypatch.setattr(database, "compiled", compiled)
    assert works(database.engine(PATTERNS, folder))
    monkeypatch.undo()
    return bool(asked)


def stored(folder: Path) -> Path:
    return next(folder.glob("scan-*.hsdb"))


def test_the_second_engine_comes_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder of the user's own, which is made where it is missing."""
    folder = tmp_path / "made" / "here"

    assert compiled_again(folder, monkeypatch)
    assert not compiled_again(folder, monkeypatch)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(stored(folder).stat().st_mode) == 0o600
    assert [path.name[0] for path in folder.iterdir()] == ["s"]


@pytest.mark.parametrize("harm", ("cut", "changed", "empty", "foreign magic", "a folder"))
def test_a_damaged_cache_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    """Whatever happened to it, never a crash."""
    database.engine(PATTERNS, tmp_path)
    path = stored(tmp_path)
    data = bytearray(path.read_bytes())
    data[-9] ^= 0xFF
    changed = {"cut": bytes(data[:-500]), "changed": bytes(data), "empty": b"",
               "foreign magic": b"PK" + bytes(data)}  # fmt: skip
    path.unlink()
    if harm == "a folder":
        path.mkdir()
    else:
        path.write_bytes(changed[harm])

    assert compiled_again(tmp_path, monkeypatch)
    if harm != "a folder":
        assert not compiled_again(tmp_path, monkeypatch)


def test_a_whole_file_that_holds_no_database_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its checksum is right, its content is from elsewhere."""
    database.engine(PATTERNS, tmp_path)
    name = stored(tmp_path).name
    stored(tmp_path).unlink()
    database.keep(tmp_path, name, b"not what the library wrote" * 10)

    assert compiled_again(tmp_path, monkeypatch)


def test_what_others_may_write_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database is code of a kind: neither a file, a folder nor a link of others counts."""
    database.engine(PATTERNS, tmp_path)
    path = stored(tmp_path)
    path.chmod(0o666)
    assert compiled_again(tmp_path, monkeypatch)
    path = stored(tmp_path)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert compiled_again(tmp_path, monkeypatch)
    tmp_path.chmod(0o777)
    assert compiled_again(tmp_path, monkeypatch)


def test_a_file_of_another_user_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ownership is asked of the open file."""
    database.engine(PATTERNS, tmp_path)
    someone = os.geteuid() + 1
    monkeypatch.setattr(database.os, "geteuid", lambda: someone)

    assert database.kept(tmp_path, stored(tmp_path).name) is None


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    """A full disk or a home that is a file slows the start and nothing else."""
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")

    assert works(database.engine(PATTERNS, blocked / "cache"))


def test_other_patterns_have_another_file_and_few_are_kept(tmp_path: Path) -> None:
    """The cache does not grow with every change of the catalogue."""
    for n in range(database.KEPT_FILES + 4):
        database.engine((f"pattern {n}",), tmp_path)

    assert len(list(tmp_path.glob("scan-*.hsdb"))) == database.KEPT_FILES


def test_the_cache_lies_where_caches_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An XDG folder counts where it is absolute, else the home."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert database.default_cache() == tmp_path / "flatline"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert database.default_cache() == tmp_path / ".cache" / "flatline"
