"""Which try a log without steps is of, where several logs of one folder have steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.facts import Facts

STEP = "2026-05-{day:02d} {hour:02d}:{n:02d}:00 INFO step {n}/40 loss {loss:.3f}\n"
RAISED = (
    "2026-05-{day:02d} {hour:02d}:{minute:02d}:30 INFO building the data\n"
    "Traceback (most recent call last):\n"
    '  File "train.py", line 41, in <module>\n'
    "    main()\n"
    '  File "train.py", line 30, in main\n'
    "    raise ValueError('the list of shards is empty')\n"
    "ValueError: the list of shards is empty\n"
    "2026-05-{day:02d} {hour:02d}:{minute:02d}:31 ERROR worker 3 ends\n"
)


def steps(day: int, hour: int = 9) -> str:
    return "".join(STEP.format(day=day, hour=hour, n=n, loss=4 - n / 20) for n in range(1, 41))


def read(folder: Path, day: int, hour: int, minute: int) -> Facts:
    (folder / "a.log").write_text(steps(4))
    (folder / "b.log").write_text(steps(9) + "2026-05-09 09:41:00 INFO Training finished.\n")
    (folder / "c.err").write_text(RAISED.format(day=day, hour=hour, minute=minute))
    return collect(Request((str(folder),)))


@pytest.mark.parametrize(
    ("day", "hour", "minute", "attempt"),
    [(4, 9, 40, 1), (4, 9, 39, 0), (3, 9, 0, 0), (9, 8, 59, 1), (9, 9, 20, 1), (12, 9, 0, 1)],
    ids=["behind the first", "within it", "before it", "starts the last", "within it",
         "behind all"],
)  # fmt: skip
def test_the_one_in_whose_time_it_lies(
    tmp_path: Path, day: int, hour: int, minute: int, attempt: int
) -> None:
    """One between two may be the start of the later, and counts there."""
    facts = read(tmp_path, day, hour, minute)

    assert [crash.attempt for crash in facts.crashes] == [attempt]


def test_one_that_is_not_dated_at_its_end_may_be_of_the_last(tmp_path: Path) -> None:
    facts = read(tmp_path, 4, 9, 20)
    (tmp_path / "c.err").write_text(RAISED.format(day=4, hour=9, minute=20).rsplit("2026", 1)[0])

    assert [crash.attempt for crash in facts.crashes] == [0]
    assert [c.attempt for c in collect(Request((str(tmp_path),))).crashes] == [1]


def test_what_an_earlier_try_raised_is_not_the_last_ones(tmp_path: Path) -> None:
    verdict = diagnose(read(tmp_path, 4, 9, 30))

    assert verdict.code in (None, "G1")
    assert len(verdict.run.attempts) == 2
