"""Logs of a series that say themselves which process wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect


def places(folder: Path, heads: dict[str, str]) -> dict[str, tuple[int | None, int | None]]:
    """Rank and task of each log by its name."""
    for name, head in heads.items():
        steps = "".join(f"step {n}/90 loss {3 - n / 50:.3f}\n" for n in range(1, 60))
        (folder / name).write_text(head + steps)
    facts = collect(Request((str(folder),)))
    return {read.source: (read.place.rank, read.place.task) for read in facts.log_files()}


def test_each_says_its_number(tmp_path: Path) -> None:
    """Of all processes, or of all ranks."""
    said = {f"gcm.{n:02d}.log": f"I0921 train: process {n}/4 on host h{n}\n" for n in range(4)}
    assert places(tmp_path, said) == {f"gcm.{n:02d}.log": (None, n) for n in range(4)}


def test_of_ranks(tmp_path: Path) -> None:
    """In a name with another number."""
    said = {f"run7-{n}.out": f"[init] rank {n} of 3 ready\n" for n in range(3)}
    assert places(tmp_path, said) == {f"run7-{n}.out": (n, None) for n in range(3)}


def test_of_ranks_all_of_which_are_there(tmp_path: Path) -> None:
    """Where none says of how many."""
    said = {f"tele/r{n:02d}.log": f"#rank={n} host=h{n} cols: a|b\n" for n in range(3)}
    (tmp_path / "tele").mkdir()
    assert places(tmp_path, said) == {f"tele/r{n:02d}.log": (n, None) for n in range(3)}


def test_of_ranks_in_a_letter(tmp_path: Path) -> None:
    """As the lines of each begin."""
    said = {
        f"roll.{n:02d}.log": f"(node-{n // 2} r{n}) + 30.0s device {n % 2}\n" for n in range(4)
    }
    assert places(tmp_path, said) == {f"roll.{n:02d}.log": (n, None) for n in range(4)}


@pytest.mark.parametrize(
    "heads",
    [
        {"a.1.log": "process 1/4 up\n"},
        {"a.1.log": "process 1/4 up\n", "a.2.log": "up\n"},
        {"a.1.log": "process 1/4 up\n", "a.2.log": "process 1/4 up\n"},
        {"a.1.log": "process 1/4 up\n", "a.2.log": "process 3/4 up\n"},
        {"a.1.log": "process 1/4 up\n", "a.2.log": "process 2/8 up\n"},
        {"a.1.log": "processed 1/4 files\n", "a.2.log": "processed 2/4 files\n"},
        {"a.1.log": "rank=1 up\n", "a.2.log": "rank=2 up\n"},
        {"a.0.log": "rank=0 up\n", "a.1.log": "rank=1 of 4 up\n"},
    ],
    ids=[
        "one log",
        "one is silent",
        "the same twice",
        "another number",
        "another whole",
        "files",
        "not all of them",
        "of how many by one alone",
    ],
)
def test_near_misses_say_nothing(tmp_path: Path, heads: dict[str, str]) -> None:
    """A number in a name may be anything."""
    assert set(places(tmp_path, heads).values()) == {(None, None)}
