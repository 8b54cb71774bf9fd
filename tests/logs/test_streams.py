"""The lines of one process out of a log of many."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.logs.labels import Labels
from flatline.logs.reading import clean, open_text
from flatline.logs.streams import stream_lines
from flatline.logs.traceback import read_traceback

TRACE = ("Traceback (most recent call last):", '  File "/a.py", line 1, in f', "    x()",
         "ValueError: boom {n}")  # fmt: skip


def stream(folder: Path, text: str, start: int, key: str) -> list[tuple[int, str]]:
    path = folder / "job.out"
    path.write_text(text)
    with open_text(path, "job.out") as file:
        labels = Labels.learn(clean(line) for line in file.sample())
        return stream_lines(file, labels, start, key)


@pytest.mark.parametrize("label", ("{n:>3}: ", "[default{n}]:", "[default{n}]:[rank{n}]: "))
def test_the_lines_of_one_rank_are_picked_out(tmp_path: Path, label: str) -> None:
    """Two hundred ranks print their tracebacks at once; none gets a line of another."""
    ranks = [n * 77 % 200 for n in range(200)]
    text = "".join(label.format(n=n) + line.format(n=n) + "\n" for line in TRACE for n in ranks)
    start = ranks.index(123) + 1
    path = tmp_path / "job.out"
    path.write_text(text)
    with open_text(path, "job.out") as file:
        labels = Labels.learn(clean(line) for line in file.sample())
        key = labels.split(clean(file.window(start, 1)[0][1])).key
        found = stream_lines(file, labels, start, key)

    assert [line for _, line in found] == [line.format(n=123) for line in TRACE]
    assert [number for number, _ in found] == [start + 200 * n for n in range(4)]


def test_a_stream_without_labels_leaves_out_those_with(tmp_path: Path) -> None:
    """NCCL's lines and other ranks' loggers stand between."""
    text = (
        f"{TRACE[0]}\n2024-05-01 05:42:27 [rank2] INFO x\n{TRACE[1]}\n"
        "gpu01:11:12 [0] NCCL INFO Channel 00\n[rank3]: Traceback\nValueError: mine\n"
    )

    assert [number for number, _ in stream(tmp_path, text, 1, "")] == [1, 3, 6]


def test_reading_stops_once_the_traceback_has_ended(tmp_path: Path) -> None:
    """Not at the limit: a log goes on for gigabytes."""
    text = "".join(line.format(n=1) + "\n" for line in TRACE) + "step\n" * 5000

    assert len(stream(tmp_path, text, 1, "")) < 100


def test_a_long_traceback_is_followed_to_its_end(tmp_path: Path) -> None:
    """A hundred frames deep."""
    frames = "".join(f'  File "/a.py", line {n}, in f\n    x()\n' for n in range(100))
    found = read_traceback(stream(tmp_path, f"{TRACE[0]}\n{frames}OSError: deep\n", 1, ""))

    assert found is not None
    assert (found.exception, len(found.frames), found.end_line) == ("OSError", 100, 202)


def test_a_head_behind_carriage_returns_keeps_its_label(tmp_path: Path) -> None:
    """The bar was drawn over, the label stands before all of it."""
    rows = "".join(f"{n * 3 % 4}: step {n}\n" for n in range(40))
    text = rows + f"2:  1%|\r 2%|\r{TRACE[0]}\n3: other\n2: {TRACE[1]}\n2: OSError: x\n"
    found = stream(tmp_path, text, 41, "")

    assert found == [(41, TRACE[0]), (43, TRACE[1]), (44, "OSError: x")]


HEAD = "2024-05-01 05:42:27 ERROR [rank6] Traceback (most recent call last):"


def test_a_logger_names_the_rank_above_the_frames_alone(tmp_path: Path) -> None:
    """Its record has one prefix; lines that others label stand between."""
    others = ["gpu01:11:12 [0] NCCL INFO Channel 00", "[rank3]: ValueError: theirs"]
    text = "\n".join([HEAD, TRACE[1], *others, *TRACE[2:]]) + "\n"

    assert [line for _, line in stream(tmp_path, text, 1, "r6")] == [HEAD, *TRACE[1:]]


def test_labelled_frames_stay_with_their_head(tmp_path: Path) -> None:
    """What nobody labels is another's then, or is no frame."""
    labelled = [f"[rank6]: {line}" for line in TRACE]
    between = "\n".join([labelled[0], "step 5", *labelled[1:]]) + "\n"
    below = "\n".join([HEAD, "step 5", TRACE[1]]) + "\n"

    assert [line for _, line in stream(tmp_path, between, 1, "r6")] == list(TRACE)
    assert [line for _, line in stream(tmp_path, below, 1, "r6")] == [HEAD]
