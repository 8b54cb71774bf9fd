"""
When a pod's container ended, set beside what the log of its peer says.

The outputs are composed here in the shapes of kubectl: no cluster runs where these tests do.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

WAITED = "".join(
    f"2026-03-02 09:0{i // 6}:{i % 6}0,000 step {i * 10}/5000 loss {8 - i * 0.01:.3f}\n"
    for i in range(24)
) + (
    "[rank3]:[E302 09:14:02.470417210 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=841, OpType=ALLREDUCE, NumelIn=8388608, "
    "NumelOut=8388608, Timeout(ms)=600000) ran for 600003 milliseconds before timing out.\n"
)  # fmt: skip
DESCRIBED = """\
Name:             llm-worker-1
Namespace:        ml
Node:             pool-7/10.0.3.4
Status:           Running
Containers:
  pytorch:
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Started:      Mon, 02 Mar 2026 08:59:20 +0000
      Finished:     Mon, 02 Mar 2026 {} +0000
    Limits:
      nvidia.com/gpu:  8
"""


def verdict(folder: Path, name: str, said: str) -> Verdict:
    (folder / name).write_text(said)
    (folder / "llm-worker-0.log").write_text(WAITED)
    return diagnose(collect(Request((str(folder),))))


def as_object(at: str) -> str:
    terminated = {"exitCode": 137, "finishedAt": f"2026-03-02T{at}Z", "reason": "OOMKilled"}
    status = {
        "lastState": {"terminated": terminated},
        "name": "pytorch",
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
    }
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "llm-worker-1"},
            "spec": {"containers": [{"name": "pytorch"}], "nodeName": "pool-7"},
            "status": {"containerStatuses": [status], "phase": "Running"},
        },
        indent=4,
    )


@pytest.mark.parametrize(("at", "code"), [("09:04:01", "A2"), ("09:14:05", "C2")])
def test_a_container_is_described_as_killed(tmp_path: Path, at: str, code: str) -> None:
    """Before its peer's wait it caused it; after, the same line may be the clean-up."""
    told = verdict(tmp_path, "describe.txt", DESCRIBED.format(at))

    assert told.code == code
    if code == "A2":
        assert [c.host for c in told.culprits] == ["pool-7"]


@pytest.mark.parametrize(("at", "code"), [("09:04:01", "A2"), ("09:14:05", "C2")])
def test_an_object_tells_when_its_container_was_killed(tmp_path: Path, at: str, code: str) -> None:
    assert verdict(tmp_path, "pod.json", as_object(at)).code == code
