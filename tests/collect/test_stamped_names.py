"""Logs that are named after the moment at which they were begun."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect

REFUSED = (
    "Traceback (most recent call last):\n"
    '  File "/home/u/train.py", line 12, in <module>\n'
    "    main()\n"
    "ValueError: no token was given\n"
)
STEPS = "".join(f"step {n} loss {3 * 0.99**n:.4f}\n" for n in range(40))


def tries(folder: Path, failed: tuple[str, str], later: tuple[str, str]) -> int:
    """How many there are of a log that ends in an exception and one that makes steps, each by its
    name and when it was begun."""
    for (name, at), text in ((failed, REFUSED), (later, STEPS)):
        (folder / name).write_text(f"2026-05-06 {at} INFO starting\n{text}")
    return len(collect(Request((str(folder),))).attempts)


@pytest.mark.parametrize("names", [("ft_0506_0941.log", "ft_0506_1017.log"),
                                   ("20260506-094133.out", "20260506-101702.out")])  # fmt: skip
def test_a_start_that_failed(tmp_path: Path, names: tuple[str, str]) -> None:
    """Its name gives its own time, and that of the next start is as much later as its lines."""
    assert tries(tmp_path, (names[0], "09:41:40"), (names[1], "10:17:09")) == 2


@pytest.mark.parametrize(
    ("failed", "later"),
    [
        (("ft_0506_1017.log", "10:17:09"), ("ft_0506_1018.log", "10:18:09")),
        (("ft_0506_1053.log", "10:53:00"), ("ft_0506_1017.log", "10:17:09")),
        (("rank_0941.log", "09:41:40"), ("rank_1017.log", "09:59:00")),
        (("prepare_0941.log", "09:41:40"), ("train_1017.log", "10:17:09")),
    ],
    ids=["ranks of one start", "failed behind it", "numbers of another thing", "another program"],
)
def test_what_is_no_start_before(
    tmp_path: Path, failed: tuple[str, str], later: tuple[str, str]
) -> None:
    assert tries(tmp_path, failed, later) == 1
