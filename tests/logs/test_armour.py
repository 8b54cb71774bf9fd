"""Whatever bytes a log holds, reading it gives something and raises nothing."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flatline.logs.clock import Clock
from flatline.logs.labels import Labels, place_of_name
from flatline.logs.reading import clean, is_text, open_text, plain, segments
from flatline.logs.streams import stream_lines
from flatline.logs.traceback import read_traceback

SCRAPS = (
    b"Traceback (most recent call last):", b'  File "/a.py", line 1, in f', b"    x()", b"\n",
    b"\r",
    b"The above exception was the direct cause of the following exception:", b"ValueError: ",
    b"  + Exception Group ", b"  | ", b"  +-+---------------- 1 ----------------", b"\0",
    b"[rank1]: ",
    b"[default0]:", b"(A pid=1, ip=1) ", b"2024-05-01 05:42:27", b"E1206 18:44:12.715 ", b"3: ",
    b"\x1b[31m", b"\xff", b"\xc3", b"worker-1: ", b"Original ", b"RayTaskError(X): ", b'"""', b"[",
    b"]",
    b":::MLLOG {\"time_ms\": 17145421284190", b"*** X AT 9999-99-99T99:99:99", b"99:99:99",
    b" " * 40,    b"\xe2\x95\xad",
)  # fmt: skip
LOGS = st.lists(st.one_of(st.sampled_from(SCRAPS), st.binary(max_size=12)), max_size=60).map(
    b"".join
)


@given(st.binary(max_size=300))
def test_bytes_are_cleaned_and_split(data: bytes) -> None:
    """Cleaning twice is cleaning once; segments hold what the line held."""
    text = clean(data)

    assert clean(text.encode()) == text
    assert b"\r".join(segments(data)) == data.rstrip(b"\r\n")
    assert plain(data).count(b"\n") == data.count(b"\n")
    assert is_text(data) in (True, False)


@given(LOGS)
def test_lines_are_labelled_dated_and_read_as_tracebacks(data: bytes) -> None:
    """In any order, as many as there are."""
    lines = [clean(line) for line in data.split(b"\n")]
    labels = Labels.learn(lines)
    clock = Clock.learn(lines, year=2024)
    for line in lines:
        found = labels.split(line, head=lines[0])
        assert line.endswith(found.text)
        assert labels.continues(found, found) in (True, False)
        clock.read(line)
    for at in range(len(lines)):
        crash = read_traceback(list(enumerate(lines[at:], at + 1)))
        if crash is not None:
            assert at + 1 == crash.head_line <= crash.exception_line <= crash.end_line
            assert crash.complete == bool(crash.exception)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(LOGS)
def test_any_file_is_read(tmp_path: Path, data: bytes) -> None:
    """By blocks, by windows, by streams."""
    path = tmp_path / "job.out"
    path.write_bytes(data)
    with open_text(path, "job.out") as file:
        blocks = b"".join(block.data for block in file.blocks(7))
        lines = [raw for _, raw in file.window(1, 1000)]
        labels = Labels.learn(clean(raw) for raw in file.sample())
        for number in range(1, file.line_count + 1):
            stream_lines(file, labels, number, "")
    if not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\x1f\x8b", b"\x28\xb5")):
        assert blocks == data
        assert b"\n".join(lines) == data.removesuffix(b"\n")


@given(st.text(max_size=60))
def test_any_name_has_a_place_or_none(name: str) -> None:
    """Names come from the disk."""
    place_of_name(name)
