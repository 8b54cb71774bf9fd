"""The scanner: which segments patterns may match, where they stand, and the same without it."""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flatline.errors import CatalogueError
from flatline.logs import hits, newlines, reading, scan
from flatline.logs.reading import clean, open_text
from flatline.logs.scan import Hit, Scanner, verify_patterns

PATTERNS = (r"loss: (\d+\.\d+)", r"^Killed$", r"NCCL WARN .*", r"(?i)error", r"\d+%\|", r"NCCL")


def scanned(folder: Path, data: bytes, scanner: Scanner) -> list[Hit]:
    path = folder / "job.out"
    path.write_bytes(data)
    with open_text(path, "job.out") as file:
        return list(scanner.scan(file))


@pytest.fixture(scope="module")
def fast(tmp_path_factory: pytest.TempPathFactory) -> Scanner:
    pytest.importorskip("hyperscan")
    return Scanner(PATTERNS, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def slow() -> Scanner:
    return Scanner(PATTERNS, slow=True)


def test_a_hit_names_line_text_and_patterns(tmp_path: Path, fast: Scanner) -> None:
    """One for each segment, its patterns sorted and each once."""
    data = b"start\nloss: 1.5 Error error\n\nnode1 NCCL WARN timeout NCCL\nquiet"

    assert scanned(tmp_path, data, fast) == [
        Hit(2, 0, b"loss: 1.5 Error error", (0, 3)),
        Hit(4, 0, b"node1 NCCL WARN timeout NCCL", (2, 5)),
    ]


def test_lines_are_counted_whether_they_hit_or_not(tmp_path: Path, fast: Scanner) -> None:
    """An absence says how many lines were searched."""
    path = tmp_path / "job.out"
    path.write_bytes(b"quiet\n" * 12_345)
    with open_text(path, "job.out") as file:
        assert list(fast.scan(file)) == []
        assert file.line_count == 12_345


def test_a_bar_that_draws_over_itself_has_segments(tmp_path: Path, fast: Scanner) -> None:
    """Each drawing is a hit of its own; the label of the line comes with it."""
    data = b"0: x\n3:  1%| a\r 2%| b\r plain\rError here\r\nKilled\r\n"

    assert scanned(tmp_path, data, fast) == [
        Hit(2, 0, b"3:  1%| a", (4,)),
        Hit(2, 1, b" 2%| b", (4,), b"3:  1%| a"),
        Hit(2, 3, b"Error here", (3,), b"3:  1%| a"),
        Hit(3, 0, b"Killed", (1,)),
    ]


def test_colours_hide_nothing(tmp_path: Path, fast: Scanner) -> None:
    """Escapes within a word are no part of it, and lines keep their numbers."""
    data = b"a\n\x1b[36m(x pid=1)\x1b[0m lo\x1b[1mss: 2.5\x1b[0m\nb\x08\nKilled\x1b[0m\n"

    assert [(hit.line, hit.text) for hit in scanned(tmp_path, data, fast)] == [
        (2, b"(x pid=1) loss: 2.5"),
        (4, b"Killed"),
    ]


def test_a_line_over_block_borders_is_one_line(
    tmp_path: Path, fast: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where blocks are cut makes no difference."""
    data = b"".join(b"%d: quiet\n%d: loss: %d.5\n" % (n, n, n) for n in range(300))
    whole = scanned(tmp_path, data, fast)
    for size in (64, 100, 1000):
        monkeypatch.setattr(scan, "SCAN_BYTES", size)
        assert scanned(tmp_path, data, fast) == whole
    assert [hit.line for hit in whole] == list(range(2, 601, 2))


def test_the_pieces_of_a_long_line_count_on(
    tmp_path: Path, fast: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Segments of one physical line are numbered through all blocks, and keep its head."""
    monkeypatch.setattr(reading, "LINE_BYTES", 1000)
    monkeypatch.setattr(scan, "SCAN_BYTES", 1000)
    data = b"x\n7: start\r" + b"\r".join(b"%3d%%| bar" % n for n in range(500)) + b"\nKilled\n"
    found = scanned(tmp_path, data, fast)

    assert [hit.segment for hit in found[:-1]] == list(range(1, 501))
    assert {hit.head for hit in found[:-1]} == {b"7: start"}
    assert {hit.line for hit in found[:-1]} == {2}
    assert found[-1][:3] == (3, 0, b"Killed")


def test_of_a_huge_segment_a_hit_holds_what_stands_around(tmp_path: Path, fast: Scanner) -> None:
    """A dumped configuration of megabytes is not handed to `re` whole; no match is lost."""
    data = b"a\n" + b"x" * 300_000 + b" loss: 1.5 " + b"y" * 300_000 + b" NCCL " + b"z" * 9 + b"\n"
    found = scanned(tmp_path, data, fast)

    assert [(hit.line, hit.segment, hit.ids) for hit in found] == [(2, 0, (0,)), (2, 0, (5,))]
    assert all(len(hit.text) <= hits.TEXT_BYTES for hit in found)
    assert b" loss: 1.5 " in found[0].text


def test_dense_hits_are_the_sparse_ones(
    tmp_path: Path, fast: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking for all lines at once finds what looking one by one finds."""
    rows = (b"loss: %d.5\n", b"quiet %d\n", b"3: %d%%| a\r 9%%| b\r\n", b"NCCL WARN %d error\n",
            b"\n", b"\rKilled\r\r%d\n")  # fmt: skip
    data = b"".join(rows[n * 7 % 6] % (n,) if b"%d" in rows[n * 7 % 6] else rows[n * 7 % 6]
                    for n in range(4000))  # fmt: skip
    monkeypatch.setattr(hits, "DENSE", 1 << 30)
    with monkeypatch.context() as without_numpy:
        without_numpy.setattr(newlines, "_many", newlines._few)
        sparse = scanned(tmp_path, data, fast)
    monkeypatch.setattr(reading, "NUMPY_FROM_BYTES", 0)
    counted = scanned(tmp_path, data, fast)
    monkeypatch.setattr(hits, "DENSE", 0)

    dense = scanned(tmp_path, data, fast)
    assert dense == sparse == counted
    assert len(sparse) > 3000
    assert {type(hit.line) for hit in (*dense, *sparse, *counted)} == {int}


def test_without_hyperscan_the_answers_are_the_same(
    tmp_path: Path, fast: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A platform without wheels is slow, not blind."""
    data = b"loss: 1.5 error\r\n3: Killed \n\x1b[31mNCCL WARN\x1b[0m x\r 5%| y\nnotKilled\n"
    expected = scanned(tmp_path, data, fast)
    monkeypatch.setitem(sys.modules, "hyperscan", None)

    assert scanned(tmp_path, data, Scanner(PATTERNS)) == expected
    assert len(expected) == 4


PARTS = (b"loss: 1.5", b"Killed", b" ", b"\n", b"\r", b"\r\n", b"error", b"x", b"\x1b[1m", b"\x08",
         b"3: ", b"9%|", b"NCCL WARN ", b"\xff", b"\0")  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=40).map(b"".join))
def test_both_engines_agree_on_any_bytes(
    tmp_path: Path, fast: Scanner, slow: Scanner, data: bytes
) -> None:
    """And whatever `re` finds in a cleaned segment was proposed."""
    found = scanned(tmp_path, data, fast)

    assert found == scanned(tmp_path, data, slow)
    proposed = {(hit.line, hit.segment): hit.ids for hit in found}
    for line, raw in enumerate(data.split(b"\n"), 1):
        for segment, part in enumerate(reading.segments(reading.plain(raw))):
            for number, pattern in enumerate(PATTERNS):
                if re.search(pattern, clean(part), re.ASCII):
                    assert number in proposed[line, segment]


def test_one_scanner_serves_many_threads(tmp_path: Path, fast: Scanner) -> None:
    """Files are read side by side; each thread has its own room to work in."""
    path = tmp_path / "job.out"
    path.write_bytes(b"quiet\nloss: 1.5\n" * 20_000)
    counts: list[int] = []

    def read() -> None:
        with open_text(path, "job.out") as file:
            counts.append(sum(1 for _ in fast.scan(file)))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert counts == [20_000] * 4


def test_the_same_pattern_twice_has_both_numbers(tmp_path: Path) -> None:
    """Two formats may wait for the same words."""
    scanner = Scanner(("loss", "step", "loss"), tmp_path)

    assert [hit.ids for hit in scanned(tmp_path, b"loss\nstep loss\n", scanner)] == [
        (0, 2),
        (0, 1, 2),
    ]


def test_a_scanner_without_patterns_counts_lines(tmp_path: Path) -> None:
    """Nothing is looked for, the file is still read."""
    path = tmp_path / "job.out"
    path.write_bytes(b"a\nb\n")
    with open_text(path, "job.out") as file:
        assert list(Scanner((), tmp_path).scan(file)) == []
        assert file.line_count == 2


def test_patterns_that_cannot_be_scanned_for_are_named() -> None:
    """One message each, the pattern first."""
    refused = verify_patterns((r"fine", r"a*", r"(", r"x\ny", r"back (\w)\1 reference"))

    assert [message.partition(": ")[0] for message in refused] == ["a*", "(", r"x\ny"]


def test_a_scanner_refuses_what_it_cannot_scan_for(tmp_path: Path) -> None:
    """The catalogue is broken, and says where."""
    with pytest.raises(CatalogueError, match=r"a\*"):
        Scanner(("fine", "a*"), tmp_path)
