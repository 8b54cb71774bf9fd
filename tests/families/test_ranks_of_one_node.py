"""Ranks in a row, without rank 0, that alone fail: those of one node of a run of unknown size."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

ROWS = (
    "JobID|JobName|User|State|ExitCode|Submit|Start|End|NNodes|NodeList\n"
    "88|dpo|ann|FAILED|1:0|2026-03-04T07:59:00|2026-03-04T08:00:00|2026-03-04T08:01:00|4|b[1-4]\n"
)
SAID = "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory"
TABLE = """\
============================================================
train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-03-04_08:00:40
  host      : {host}
  rank      : {rank} (local_rank: 0)
  exitcode  : 1 (pid: 4711)
  error_file: <N/A>
============================================================
"""


def judged(folder: Path, ranks: Iterable[int], host: str = "b3", *ended: str) -> Verdict:
    ranks = [*ranks]
    log = "".join(
        f"[rank{n}]: Traceback (most recent call last):\n"
        f'[rank{n}]:   File "/home/ann/dpo/train.py", line 3, in <module>\n'
        f"[rank{n}]:     import torch\n"
        f"[rank{n}]: {SAID}\n"
        for n in ranks
    )
    log += TABLE.format(host=host, rank=ranks[0])
    log += "".join(f"srun: error: {one}: task 0: Exited with exit code 1\n" for one in ended)
    (folder / "sacct.txt").write_text(ROWS)
    (folder / "slurm-88.out").write_text(log)
    return diagnose(collect(Request((str(folder),))))


def test_all_of_them_are_on_it(tmp_path: Path) -> None:
    verdict = judged(tmp_path, range(8, 12))

    assert (verdict.code, verdict.resubmit) == ("A1", "exclude")
    assert {place.host for place in verdict.culprits} == {"b3"}
    assert {place.rank for place in verdict.culprits} == {8, 9, 10, 11}


@pytest.mark.parametrize(
    ("ranks", "host", "ended"),
    [
        (range(8, 12), "b3", ("b4",)),
        (range(8, 16), "b3", ()),
        (range(8, 11), "b4", ()),
        (range(8, 12), "c9", ()),
    ],
    ids=["another host's task ended", "more than it holds", "another order", "no host of the job"],
)
def test_some_may_be_on_another(
    tmp_path: Path, ranks: range, host: str, ended: tuple[str, ...]
) -> None:
    verdict = judged(tmp_path, ranks, host, *ended)

    assert (verdict.code, verdict.resubmit) == ("A1", "fix_first")
    assert None in {place.host for place in verdict.culprits}


@pytest.mark.parametrize("ranks", [range(4), range(1, 4), (0, 4, 8, 12), (1, 5, 9, 13)])
def test_those_that_may_speak_for_all(tmp_path: Path, ranks: Iterable[int]) -> None:
    """The first of them may have been ended before it spoke."""
    verdict = judged(tmp_path, ranks, "b1")

    assert (verdict.code, verdict.resubmit) == ("A1", "fix_first")
    assert verdict.culprits == ()
