"""A launch that waits for more nodes than the job has."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

API = "I1102 17:22:39.98 {pid} torch/distributed/"
LEAST = API + "launcher/api.py:188]   min_nodes        : {least}\n"
WAITS = API + "elastic/agent/server/api.py:699] [default] Rendezvous'ing worker group\n"
MET = API + "elastic/agent/server/api.py:525] [default] Rendezvous complete for workers. Result:\n"


def verdict(
    folder: Path, nodes: int, agents: int, least: int, *, state: str = "CANCELLED", log: str = ""
) -> Verdict:
    text = "".join(
        LEAST.format(pid=1000 + n, least=least) + WAITS.format(pid=1000 + n) for n in range(agents)
    )
    (folder / "job.out").write_text(text + log)
    end = "Unknown" if state == "RUNNING" else "2026-11-02T17:53:09"
    (folder / "sacct.txt").write_text(
        "JobID|State|ExitCode|Start|End|NNodes|NodeList\n"
        f"9|{state}|0:0|2026-11-02T17:22:30|{end}|{nodes}|n[1-{nodes}]\n"
    )
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("state", ["CANCELLED", "RUNNING", "TIMEOUT"])
def test_more_than_there_are(tmp_path: Path, state: str) -> None:
    """All of the job's nodes came, and wait for one more."""
    told = verdict(tmp_path, 4, 4, 5, state=state)

    assert (told.code, told.attribution, told.resubmit) == ("C1", "job", "fix_first")
    assert told.culprits == ()


@pytest.mark.parametrize("state", ["CANCELLED", "RUNNING"])
def test_one_agent_wrote_the_log(tmp_path: Path, state: str) -> None:
    """Told, and not with confidence: who else came is not in it."""
    told = verdict(tmp_path, 3, 1, 4, state=state)

    assert (told.code, told.attribution) == ("C1", "job")
    assert told.confidence < 0.8


@pytest.mark.parametrize(
    ("nodes", "agents", "least", "log"),
    [
        (4, 4, 4, ""),
        (4, 3, 5, ""),
        (4, 1, 4, ""),
        (4, 8, 8, ""),
        (4, 4, 5, MET.format(pid=1000)),
        (
            4,
            4,
            5,
            "2026-11-02 17:25:00 step 1/90 loss 3.0\n2026-11-02 17:25:01 step 2/90 loss 2\n",
        ),
        (4, 4, 5, LEAST.format(pid=1, least=2)),
    ],
    ids=[
        "as many",
        "one not heard of",
        "as many, one heard of",
        "two to a node",
        "met",
        "steps",
        "another launch as well",
    ],
)  # fmt: skip
def test_where_somebody_may_come(
    tmp_path: Path, nodes: int, agents: int, least: int, log: str
) -> None:
    """Or came."""
    told = verdict(tmp_path, nodes, agents, least, log=log)

    assert told.code != "C1"
