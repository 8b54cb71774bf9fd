"""Files to physical lines: blocks, windows, segments, cleaning, files that change meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flatline.errors import SourceRefused, SourceUnreachable
from flatline.logs import reading
from flatline.logs.reading import clean, is_text, open_text, read_head, segments


def log(folder: Path, data: bytes, name: str = "job.out") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("size", (3, 64, 1 << 20))
def test_blocks_are_the_file_and_know_their_first_line(tmp_path: Path, size: int) -> None:
    """Whatever the block size, nothing is lost and lines are counted by newlines from 1."""
    data = b"one\ntwo\n\nfour with more text\nlast without a newline"
    with open_text(log(tmp_path, data), "job.out") as file:
        blocks = list(file.blocks(size))

    assert b"".join(block.data for block in blocks) == data
    line = 1
    for block in blocks:
        assert block.first_line == line
        line += block.data.count(b"\n")
    assert file.line_count == 5


def test_a_newline_at_the_end_begins_no_line(tmp_path: Path) -> None:
    """ "a\\n" is one line, "" is none."""
    counts = []
    for data in (b"", b"a\n", b"a\nb", b"\n\n"):
        with open_text(log(tmp_path, data), "job.out") as file:
            list(file.blocks())
            counts.append(file.line_count)

    assert counts == [0, 1, 2, 2]


def test_a_window_gives_physical_lines_by_number(tmp_path: Path) -> None:
    """With or without an index, in any order, across index entries and past the end."""
    lines = [f"line {n} {'x' * (n % 97)}".encode() for n in range(1, 9001)]
    with open_text(log(tmp_path, b"\n".join(lines)), "job.out") as file:
        before = [file.window(n, 3) for n in (8000, 1, 4711)]
        list(file.blocks(5000))
        after = [file.window(n, 3) for n in (8000, 1, 4711)]
        past = file.window(8999, 10)

    assert (
        before == after == [[(n + i, lines[n + i - 1]) for i in range(3)] for n in (8000, 1, 4711)]
    )
    assert past == [(8999, lines[8998]), (9000, lines[8999])]


def test_a_window_before_the_first_line_is_shortened(tmp_path: Path) -> None:
    """Looking back from the top of a file gives what there is."""
    with open_text(log(tmp_path, b"a\nb\nc\n"), "job.out") as file:
        assert file.window(-1, 3) == [(1, b"a")]
        assert file.window(2, 0) == []


def test_a_line_is_cleaned_and_keeps_its_segments(tmp_path: Path) -> None:
    """A citation checks that its text stands in the line, wherever the bar drew over it."""
    with open_text(log(tmp_path, b"first\n\x1b[1m 1%\r 2%\x1b[0m done \r\n"), "job.out") as file:
        assert file.line(2) == " 1%\r 2% done"
        assert file.line(3) is None
        assert file.line(0) is None


def test_a_line_without_end_is_read_in_pieces(tmp_path: Path) -> None:
    """Its pieces have one number, later lines the right one, and one gap says it was cut."""
    data = b"x" * (3 << 20) + b"\nafter\n"
    with open_text(log(tmp_path, data), "job.out") as file:
        blocks = [block for _ in range(2) for block in file.blocks(100_000)]
        after = file.window(2, 1)
        long = file.window(1, 1)

    assert b"".join(block.data for block in blocks) == data + data
    assert max(len(block.data) for block in blocks) < 2 << 20
    assert {block.first_line for block in blocks[:3]} == {1}
    assert after == [(2, b"after")]
    assert len(long[0][1]) == 1 << 20
    assert ["1 MiB" in gap.reason for gap in file.gaps] == [True]


def test_a_long_progress_bar_is_cut_between_drawings(tmp_path: Path) -> None:
    """A bar of megabytes on one line loses nothing, so it leaves no gap."""
    data = b"\r".join(b"%8d it" % n for n in range(400_000)) + b"\n"
    with open_text(log(tmp_path, data), "job.out") as file:
        blocks = list(file.blocks(100_000))

    assert len(blocks) > 2
    assert all(block.data.endswith((b"\r", b"\n")) for block in blocks)
    assert file.gaps == []


def test_a_file_that_shrinks_while_it_is_read_leaves_a_gap(tmp_path: Path) -> None:
    """It was cut by a rotation; what was there is read, the rest is named missing."""
    path = log(tmp_path, b"line\n" * 100_000)
    with open_text(path, "job.out") as file:
        blocks = file.blocks(1000)
        next(blocks)
        os.truncate(path, 10_000)
        rest = sum(len(block.data) for block in blocks)

    assert rest < 20_000
    assert "shrank" in file.gaps[0].reason
    assert file.gaps[0].where == "job.out"


def test_a_file_that_grows_is_read_up_to_its_size_at_opening(tmp_path: Path) -> None:
    """A live log has an end here."""
    path = log(tmp_path, b"old\n")
    with open_text(path, "job.out") as file:
        with path.open("ab") as more:
            more.write(b"new\n")
        assert [block.data for block in file.blocks()] == [b"old\n"]


def test_a_file_that_vanishes_stays_readable(tmp_path: Path) -> None:
    """It was opened; its name does not matter any more."""
    path = log(tmp_path, b"here\n")
    with open_text(path, "job.out") as file:
        path.unlink()
        assert file.line(1) == "here"


def test_a_file_that_cannot_be_read_further_leaves_a_gap(tmp_path: Path) -> None:
    """A stale handle in the middle is a gap, not an error."""
    with open_text(log(tmp_path, b"line\n" * 5000), "job.out") as file:
        blocks = file.blocks(1000)
        next(blocks)
        file.close()
        os.close(os.open(tmp_path, os.O_RDONLY))
        assert list(blocks) == []

    assert "cannot be read further" in file.gaps[0].reason


def test_what_is_not_there_is_unreachable(tmp_path: Path) -> None:
    """The caller turns it into a gap by its type."""
    with pytest.raises(SourceUnreachable, match=r"job\.out"):
        open_text(tmp_path / "none", "job.out")


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    """A pipe would wait for ever, a folder has no lines."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(SourceRefused, match=r"job\.out"):
            open_text(path, "job.out")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_refused(tmp_path: Path) -> None:
    """Permission is another matter than absence."""
    path = log(tmp_path, b"secret")
    path.chmod(0)

    with pytest.raises(SourceRefused, match="permission"):
        open_text(path, "job.out")


def test_a_plain_file_is_read_up_to_a_cap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without end has one here, and the gap says where."""
    monkeypatch.setattr(reading, "PLAIN_CAP_BYTES", 1000)
    with open_text(log(tmp_path, b"x" * 99 + b"\n" * 1001), "job.out") as file:
        assert file.size == 1000
        assert "more than is read" in file.gaps[0].reason


@pytest.mark.parametrize("encoding", ("utf-16", "utf-32", "utf-8-sig"))
def test_byte_order_marks_are_followed(tmp_path: Path, encoding: str) -> None:
    """PowerShell's UTF-16 becomes UTF-8 with the same lines, and no mark stays in the text."""
    text = "Training ━━ 3/3\nloss: 1.5\n"
    path = log(tmp_path, text.encode(encoding))
    with open_text(path, "job.out") as file:
        assert b"".join(block.data for block in file.blocks()) == text.encode()
        assert file.line(1) == "Training ━━ 3/3"
    assert is_text(read_head(path, 100))


@pytest.mark.parametrize(
    ("head", "text"),
    (
        (b"", True),
        (b"2024-05-01 05:42:27 step 1 loss 2.5\n" * 9, True),
        (b"\x1b[31m\x1b[1mERROR\x1b[0m\r\n \x08\x08 3%|\xe2\x96\x88|", True),
        ("Überlauf: élan ✓\n".encode(), True),
        ("\xe9lan in Latin-1".encode("latin-1"), True),
        (b"\0" * 8 + b"a log that was truncated under its writer, with much text " * 5, True),
        (b"\0" * 500 + b"text", False),
        (bytes(range(256)) * 8, False),
        (b"PK\x03\x04 zip", False),
        (b"\x80\x04\x95 a pickle", False),
        (b"\x0a\x09\x09" + b"\x08\x01\x12\x05loss\x15\x00\x01\x02\x03" * 30, False),
    ),
)
def test_text_is_told_from_binary(head: bytes, text: bool) -> None:
    """By its control characters; logs of any language are text, tensors are not."""
    assert is_text(head) is text


@pytest.mark.parametrize(
    ("raw", "parts"),
    (
        (b"plain", [b"plain"]),
        (b"crlf\r", [b"crlf"]),
        (b"crlf\r\n", [b"crlf"]),
        (b"\r 1%\r 2%", [b"", b" 1%", b" 2%"]),
        (b"a\r\rb", [b"a", b"", b"b"]),
        (b"", [b""]),
    ),
)
def test_segments_are_split_at_carriage_returns(raw: bytes, parts: list[bytes]) -> None:
    """Each return begins one, but those that end the line."""
    assert segments(raw) == parts


@pytest.mark.parametrize(
    ("raw", "text"),
    (
        (b"  File kept  \r\n", "  File kept"),
        (b"\x1b[1;31mERROR\x1b[0m: red", "ERROR: red"),
        (b"\x1b]0;title\x07after\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "afterlink"),
        (b"\x1b[2K\x1b[1Aup\x1b(B", "up"),
        (b"loss: 1.5\x08\x08\x08\x08", "loss: 1.5"),
        (b"\xff\xfe broken", "\ufffd\ufffd broken"),
        (b"cut \x1b[3", "cut"),
        ("━━ ✓".encode(), "━━ ✓"),
    ),
)
def test_a_line_is_cleaned_for_reading(raw: bytes, text: str) -> None:
    """No escapes, no backspaces, no blanks at the end; those at the beginning mean something."""
    assert clean(raw) == text


def test_a_sample_comes_from_head_middle_and_tail(tmp_path: Path) -> None:
    """Whole lines only, small files whole."""
    lines = [f"line {n}".encode() for n in range(50_000)]
    with open_text(log(tmp_path, b"\n".join(lines)), "job.out") as file:
        sample = file.sample(2000)
    with open_text(log(tmp_path, b"a\nb"), "job.out") as file:
        small = file.sample()

    assert sample[0] == b"line 0"
    assert sample[-1] == b"line 49999"
    assert set(sample) <= set(lines)
    assert any(20_000 < int(one[5:]) < 30_000 for one in sample)
    assert small == [b"a", b"b"]


@pytest.mark.parametrize("encoding", ("utf-16-le", "utf-16-be"))
def test_utf16_without_a_mark_is_told_by_its_zeros(tmp_path: Path, encoding: str) -> None:
    """Every other byte is one; a box or an accent now and then changes nothing."""
    text = "Training ━━ 3/3 of a run\r\nloss: 1.5 at 20 °C, and so on for a while\r\n" * 3
    path = log(tmp_path, text.encode(encoding))
    with open_text(path, "job.out") as file:
        assert b"".join(block.data for block in file.blocks()) == text.encode()
    assert is_text(read_head(path, 4096))


@pytest.mark.parametrize(
    "data", (b"a\0" * 8, b"\1\0\2\0" * 40, b"a\0b\0\0\0" * 40, b"\0\0ab" * 40)
)
def test_zeros_alone_make_no_utf16(tmp_path: Path, data: bytes) -> None:
    """Short, of control characters, or with zeros on both sides: small integers look so too."""
    with open_text(log(tmp_path, data), "job.out") as file:
        assert b"".join(block.data for block in file.blocks()) == data


def test_a_file_that_was_cited_is_closed(tmp_path: Path) -> None:
    """When nobody holds it any more: readers of cited lines live as long as the facts."""
    held = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(50):
        open_text(log(tmp_path, b"x\n"), "job.out").line(1)

    assert len(list(Path("/proc/self/fd").iterdir())) <= held + 1
