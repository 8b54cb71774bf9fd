"""A Ctrl-C that met the program where its ranks meet."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

COMPLETE = "All distributed processes registered. Starting with 4 processes\n"


def interrupted(function: str = "init_process_group") -> str:
    return (
        "^C\n"
        "Traceback (most recent call last):\n"
        '  File "/home/k/fit.py", line 71, in <module>\n    main()\n'
        f'  File "/venv/lib/torch/distributed/distributed_c10d.py", line 900, in {function}\n'
        "    store, rank, world_size = next(rendezvous_iterator)\nKeyboardInterrupt\n"
    )


def timed(minutes: int) -> str:
    return f"\nreal\t{minutes}m07.914s\nuser\t0m9.100s\nsys\t0m2.400s\n"


BEGUN = "2026-05-04 11:00:00,120 joining the group of 4\n"
ENDED = "2026-05-04 11:{}:31,000 the launcher was interrupted\n"
STEPS = "".join(f"step {n}/90 loss {3 - n / 50:.3f}\n" for n in range(20))


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        (interrupted() + timed(26), 0.75, 0.8),
        (BEGUN + interrupted() + ENDED.format(27), 0.75, 0.8),
        (interrupted() + timed(4), 0.4, 0.75),
        (interrupted(), 0.4, 0.75),
    ],
    ids=["by the shell", "by the log", "not for long", "nobody knows"],
)
def test_it_waited_for_others(tmp_path: Path, text: str, least: float, most: float) -> None:
    (tmp_path / "fit.log").write_text(text)
    found = diagnose(collect(Request((str(tmp_path),))))

    assert found.code == "C1"
    assert least <= found.confidence < most
    assert not found.culprits


@pytest.mark.parametrize(
    "text",
    [
        interrupted() + timed(0),
        BEGUN + interrupted() + ENDED.format("00"),
        interrupted("load_dataset") + timed(26),
        COMPLETE + interrupted("all_gather") + timed(26),
        STEPS + interrupted() + timed(26),
        "ModuleNotFoundError: No module named 'apex'\n" + interrupted() + timed(26),
    ],
    ids=["at once", "soon", "elsewhere", "they had met", "it trained", "another rank failed"],
)
def test_what_was_given_up_otherwise(tmp_path: Path, text: str) -> None:
    (tmp_path / "fit.log").write_text(text)

    assert diagnose(collect(Request((str(tmp_path),)))).code != "C1"
