"""What a file's labels and clock are learned from."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from flatline.logs.reading import clean, open_text, sample_lines

PARTS = (
    *(b"loss: 1.5", b" ", b"\n", b"\r", b"\t", b"0", b"m", b"\x07", b"\x08"),
    *(b"\x1b", b"\x1b[1m", b"\x1b[", b"\x1b]0;t", b"\x1bP"),
    *(b"\xe2\x94", b"\xe2\x94\x81", b"\xff", b"\xc3"),
)


@given(st.lists(st.sampled_from(PARTS), max_size=40).map(b"".join))
def test_lines_cleaned_at_once_are_those_cleaned_one_by_one(data: bytes) -> None:
    """Whatever is cut off at the end of a line."""
    with TemporaryDirectory() as name:
        path = Path(name) / "log"
        path.write_bytes(b"x" + data)
        with open_text(path, "log") as file:
            assert sample_lines(file) == [clean(raw) for raw in file.sample()]
