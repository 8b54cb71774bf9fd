"""An exception in the log of a later node, where the first node's log was not read."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

AGENT = "W0520 03:12:05.000000 {pid} torch/distributed/run.py:779] {said}\n"
CLOSED = (
    "W0520 03:51:44.641670 {pid} torch/distributed/elastic/multiprocessing/api.py:858] Sending"
    " process {child} closing signal SIGTERM\n"
)
RAISED = """\
[rank{rank}]: Traceback (most recent call last):
[rank{rank}]:   File "/workspace/train.py", line 512, in <module>
[rank{rank}]:     main()
[rank{rank}]:   File "/workspace/train.py", line 433, in main
[rank{rank}]:     {does}
[rank{rank}]: {raised}
"""
SUMMARY = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-05-20_03:51:47
  host      : sft-worker-0
  rank      : {rank} (local_rank: 5)
  exitcode  : 1 (pid: 215)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""
REFUSED = ("for batch in loader:", "botocore.exceptions.ClientError: An error occurred (403) when"
           " calling the HeadObject operation: Forbidden")  # fmt: skip
MISSING = ("import apex", "ModuleNotFoundError: No module named 'apex'")


def log(rank: int, does: str, raised: str, agents: tuple[int, ...] = (140,)) -> str:
    begun = "".join(AGENT.format(pid=pid, said="*****") for pid in agents)
    closed = "".join(
        CLOSED.format(pid=pid, child=child) for pid in agents for child in range(210, 213)
    )
    told = RAISED.format(rank=rank, does=does, raised=raised)
    return begun + told + closed + SUMMARY.format(rank=rank)


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        (log(13, *REFUSED), False),
        (log(5, *REFUSED), True),
        (log(13, *REFUSED, agents=(140, 977)), True),
        (log(13, *MISSING), True),
    ],
    ids=["a later node", "the first node", "both nodes", "an import"],
)
def test_whether_steps_were_made_is_not_known_of_a_later_node(
    tmp_path: Path, text: str, sure: bool
) -> None:
    (tmp_path / "sft-worker-0.log").write_text(text)

    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.confidence >= 0.8) == ("A1", sure)
