"""Archives: told by content, damaged ones give what they hold, bombs end."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from flatline.logs import unpacking
from flatline.logs.reading import is_text, open_text, read_head

TEXT = b"".join(
    b"step %d loss %d.%06d\n" % (n, n % 7, n * 7919 % 1_000_000) for n in range(20_000)
)
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,  # as its program does
}


def unpacked(folder: Path, data: bytes) -> tuple[bytes, list[str]]:
    path = folder / "job.out"
    path.write_bytes(data)
    with open_text(path, "job.out") as file:
        got = b"".join(block.data for block in file.blocks())
        assert file.size == len(got)
        return got, [gap.reason for gap in file.gaps]


@pytest.mark.parametrize("name", PACKERS)
def test_an_archive_is_told_by_its_first_bytes(tmp_path: Path, name: str) -> None:
    """Its name says nothing; several streams one after the other and padding are one file."""
    pack = PACKERS[name]

    assert unpacked(tmp_path, pack(TEXT)) == (TEXT, [])
    assert unpacked(tmp_path, pack(TEXT[:999]) + pack(TEXT[999:])) == (TEXT, [])
    assert unpacked(tmp_path, pack(TEXT) + b"\0" * 512) == (TEXT, [])


@pytest.mark.parametrize("name", PACKERS)
def test_a_truncated_archive_gives_what_it_holds(tmp_path: Path, name: str) -> None:
    """A copy that broke off is read to the break, and says so."""
    packed = PACKERS[name](TEXT)
    got, gaps = unpacked(tmp_path, packed[: len(packed) * 2 // 3])

    assert TEXT.startswith(got)
    assert gaps == ["it ends in the middle of its packed data"]


@pytest.mark.parametrize("name", PACKERS)
def test_a_damaged_archive_leaves_a_gap(tmp_path: Path, name: str) -> None:
    """Overwritten bytes end the reading; so does something else behind the packed data."""
    packed = bytearray(PACKERS[name](TEXT))
    packed[len(packed) // 2 : len(packed) // 2 + 64] = b"\xa5" * 64

    assert len(unpacked(tmp_path, bytes(packed))[1]) == 1
    assert unpacked(tmp_path, PACKERS[name](TEXT) + b"something else")[0] == TEXT
    assert "something else" in unpacked(tmp_path, PACKERS[name](TEXT) + b"and more text")[1][0]


def test_what_is_no_text_is_not_unpacked_further(tmp_path: Path) -> None:
    """Packed tensors need no room."""
    got, gaps = unpacked(tmp_path, gzip.compress(bytes(range(256)) * 40_000))

    assert len(got) <= 1 << 20
    assert gaps == ["it does not hold text"]


def test_a_bomb_ends_at_the_cap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Size and ratio both end it."""
    bomb = zstandard.compress(b"a line of text\n" * 4_000_000)
    monkeypatch.setattr(unpacking, "ARCHIVE_CAP_BYTES", 8 << 20)
    by_size = unpacked(tmp_path, bomb)
    monkeypatch.undo()
    monkeypatch.setattr(unpacking, "RATIO_FROM_BYTES", 2 << 20)
    by_ratio = unpacked(tmp_path, bomb)

    assert len(by_size[0]) < 40 << 20
    assert "GiB are unpacked" in by_size[1][0]
    assert len(by_ratio[0]) < 40 << 20
    assert "times its size" in by_ratio[1][0]


def test_a_large_archive_goes_to_a_file_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the memory it may use it leaves nothing behind."""
    monkeypatch.setattr(unpacking, "MEMORY_BYTES", 100_000)
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    assert unpacked(tmp_path, gzip.compress(TEXT)) == (TEXT, [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.out"]


def test_utf_16_inside_an_archive_is_text(tmp_path: Path) -> None:
    """Both layers come off."""
    assert unpacked(tmp_path, gzip.compress(TEXT.decode().encode("utf-16"))) == (TEXT, [])


def test_the_head_of_an_archive_is_unpacked(tmp_path: Path) -> None:
    """What tells formats apart sees text; what does not unpack stays as it is."""
    path = tmp_path / "job.out.gz"
    path.write_bytes(gzip.compress(TEXT))
    head = read_head(path, 100)
    path.write_bytes(b"\x1f\x8b\x08" + b"\xa5" * 200)
    broken = read_head(path, 100)

    assert head == TEXT[:100]
    assert not is_text(broken)
