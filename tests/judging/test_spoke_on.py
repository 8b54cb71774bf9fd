"""A Ray node that was given up while the log of its workers was written to throughout."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 3, 3, 5, tzinfo=UTC)
DEAD_S = 600.0
PODS = """\
NAME               READY   STATUS    RESTARTS   AGE   IP            NODE
ppo-head-x7k2p     0/1     Error     0          61m   10.244.3.17   pool-1
ppo-worker-m9qpq   1/1     Running   0          61m   10.244.4.18   pool-2
ppo-worker-x4srn   1/1     Running   0          61m   10.244.5.19   pool-3
"""


def stamp(second: float) -> str:
    return f"{BEGAN + timedelta(seconds=second):%Y-%m-%dT%H:%M:%S}.000000000Z "


def judged(
    folder: Path, spoke: list[float], of: str = "ppo-worker-x4srn", pods: str = PODS
) -> Verdict:
    """The head tells that its node is lost; its raylet, seconds later, that this was a mistake."""
    rows = [f"{stamp(60 * n)}(TaskRunner pid=21) step:{n} - actor/pg_loss:-0.002 -"
            f" critic/rewards/mean:{0.3 + n / 100:.3f}\n" for n in range(10)]  # fmt: skip
    rows.append(
        f"{stamp(DEAD_S)}(raylet) The node with node id: 8fa2 and address: 10.45.3.106 and node"
        " name: 10.45.3.106 has been marked dead because the detector has missed too many"
        " heartbeats from it.\n"
    )
    rows.append(
        f"{stamp(DEAD_S + 3)}ray.exceptions.ActorDiedError: The actor died because its node has"
        " died. Node Id: 8fa2\n"
    )
    (folder / "ppo-head-x7k2p.log").write_text("".join(rows))
    (folder / "raylet-ppo-worker-x4srn.out").write_text(
        f"{stamp(DEAD_S + 7)}[2026-03-03 05:10:07,020 C 40 40] (raylet) node_manager.cc:1024:"
        " [Timeout] Exiting because this node manager has mistakenly been marked as dead by the"
        " GCS: GCS failed to check the health of this node for 10 times.\n"
    )
    (folder / f"worker-{of}.log").write_text(
        "".join(
            f"{stamp(at)}(WorkerDict pid=89) Avg generation throughput: 8521.8 tokens/s\n"
            for at in spoke
        )
    )
    (folder / "pods.txt").write_text(pods)
    return diagnose(collect(Request((str(folder),))))


ALL_ALONG = [DEAD_S - 60 + 4 * n for n in range(18)]


def test_a_log_that_was_written_to_all_along(tmp_path: Path) -> None:
    """The logs are named after pods, the node is told by the list."""
    verdict = judged(tmp_path, ALL_ALONG)

    assert verdict.code == "C4"
    assert [place.host for place in verdict.cleared] == ["pool-3"]


@pytest.mark.parametrize(
    ("spoke", "of"),
    [
        ([at for at in ALL_ALONG if at < DEAD_S - 20], "ppo-worker-x4srn"),
        ([at for at in ALL_ALONG if not DEAD_S - 24 < at < DEAD_S - 4], "ppo-worker-x4srn"),
        ([at for at in ALL_ALONG if at > DEAD_S - 8], "ppo-worker-x4srn"),
        (ALL_ALONG, "ppo-worker-m9qpq"),
    ],
    ids=["until it stood still", "but for a while", "at the end alone", "of another node"],
)
def test_where_it_may_have_stood_still(tmp_path: Path, spoke: list[float], of: str) -> None:
    """It wrote nothing while the health checks failed, or somebody else did."""
    assert judged(tmp_path, spoke, of).code != "C4"
