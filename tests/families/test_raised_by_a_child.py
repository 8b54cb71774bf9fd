"""A3 of a process that torch.multiprocessing.spawn started: its number there is its rank."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.uncaught import raised_by
from flatline.model import Verdict

BEGAN = datetime(2026, 5, 6, 7, tzinfo=UTC)
ASSERTED = (
    "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce: block: [0,0,0], thread:"
    " [4,0,0] Assertion `t >= 0 && t < n_classes` failed.\n"
)
RAISED = """Traceback (most recent call last):
  File "/w/seg/train.py", line 77, in <module>
    mp.spawn(work, nprocs=4, args=(opt,))
  File "/venv/lib/torch/multiprocessing/spawn.py", line 340, in spawn
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
torch.multiprocessing.spawn.ProcessRaisedException:

-- Process {n} terminated with the following error:
Traceback (most recent call last):
  File "/venv/lib/torch/multiprocessing/spawn.py", line 90, in _wrap
    fn(i, *args)
  File "/w/seg/train.py", line 51, in work
    {call}
{error}
"""
CUDA = "RuntimeError: CUDA error: device-side assert triggered"


def judged(folder: Path, n: int, error: str, *, before: str = "", nodes: str = "g1") -> Verdict:
    made = ((k, BEGAN + timedelta(seconds=2 * k)) for k in range(1, 200))
    steps = "".join(f"{at:%F %T},000 step {k}/900 loss {2 - k / 500}\n" for k, at in made)
    raised = RAISED.format(n=n, call="loss = step(batch)", error=error)
    (folder / "train.log").write_text(steps + before + raised)
    count = 1 if nodes == "g1" else 2
    (folder / "sacct.txt").write_text(
        "JobID|State|ExitCode|Start|End|NNodes|AllocTRES|NodeList\n"
        "9|FAILED|1:0|2026-05-06T06:59:00|2026-05-06T07:07:10"
        f"|{count}|gres/gpu={4 * count},node={count}|{nodes}\n"
    )
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(("error", "before"), [(CUDA, ASSERTED), ("KeyError: 'caption'", "")])
def test_the_rank_that_raised(tmp_path: Path, error: str, before: str) -> None:
    """The kernel's own words, which stand above, name nobody."""
    verdict = judged(tmp_path, 2, error, before=before)

    assert verdict.code == "A3"
    assert [place.rank for place in verdict.culprits] == [2]


@pytest.mark.parametrize(
    ("n", "nodes"), [(2, "g[1-2]"), (6, "g1")], ids=["hosts", "more than GPUs"]
)
def test_a_number_that_may_be_no_rank(tmp_path: Path, n: int, nodes: str) -> None:
    """Each host counts its own; and what is no process of a GPU has no rank."""
    verdict = judged(tmp_path, n, "KeyError: 'caption'", nodes=nodes)

    assert verdict.code == "A3"
    assert all(place.rank is None for place in verdict.culprits)


@pytest.mark.parametrize(
    ("again", "rank"),
    [("ValueError: image file is truncated", 2), ("ValueError: no such record", None)],
    ids=["the same", "another"],
)
def test_what_the_parent_tells_again(tmp_path: Path, again: str, rank: int | None) -> None:
    """The child prints its traceback as well, and logs what it did before it left."""
    own = (
        "Traceback (most recent call last):\n"
        '  File "/w/seg/train.py", line 51, in work\n'
        "    image = read(path)\n"
        "ValueError: image file is truncated\n"
        "INFO: total training time: 0:43:32\n\n"
    )

    judged(tmp_path, 2, again, before=own)
    facts = collect(Request((str(tmp_path),)))

    assert raised_by(facts, facts.crashes[0]).rank == rank
