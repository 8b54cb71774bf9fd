"""Ranks that wait for a pod which a list shows to fail again and again."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

WAITED = (
    "2026-03-02T09:25:02.130Z [INFO] starting workers for entrypoint: train.py\n"
    "2026-03-02T09:40:04.101Z Traceback (most recent call last):\n"
    '2026-03-02T09:40:04.101Z   File "/opt/torch/distributed/run.py", line 883, in run\n'
    "2026-03-02T09:40:04.101Z     elastic_launch(\n"
    "2026-03-02T09:40:04.101Z torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError\n"
)
HEAD = "NAME                 READY   STATUS             RESTARTS        AGE   IP          NODE\n"
BOTH = (
    "sft-13b-master-0     0/1     Error              0               25m   10.71.2.9   pool-02\n"
    "sft-13b-worker-0     0/1     Error              0               25m   10.71.3.9   pool-03\n"
)
LOOPS = "{:<20} 0/1     CrashLoopBackOff   6 (3m12s ago)   25m   10.71.5.9   pool-05\n"


@pytest.mark.parametrize(
    ("pod", "own", "sure", "hosts"),
    [
        ("sft-13b-worker-1", "", False, ["pool-05"]),
        ("sft-13b-worker-1", WAITED, True, []),
        ("other-master-0", "", True, []),
    ],
    ids=["unheard", "heard", "another job's"],
)
def test_one_that_never_came_is_named(
    tmp_path: Path, pod: str, own: str, sure: bool, hosts: list[str]
) -> None:
    """The timeout alone would be told as surely as where nobody is known to have failed."""
    (tmp_path / "pods.txt").write_text(HEAD + BOTH + LOOPS.format(pod))
    for name in ("sft-13b-master-0", "sft-13b-worker-0"):
        (tmp_path / f"{name}.log").write_text(WAITED)
    if own:
        (tmp_path / f"{pod}.log").write_text(own)

    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.confidence >= 0.8) == ("C1", sure)
    assert [place.host for place in verdict.culprits] == hosts
