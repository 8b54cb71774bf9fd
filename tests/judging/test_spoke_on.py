"""A Ray node that was given up while the log of its workers was written to throughout."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

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


EACH_S, ROLL_OUT_S, PARTS = 60.0, 45.0, 4


def parts(steps: int, late_s: float = 0.0) -> list[str]:
    """What a worker writes of the parts of each update, behind a roll-out in which it says
    nothing: of the last step two, so much later."""
    told = [(n, i, EACH_S * n + ROLL_OUT_S + 5 * i) for n in range(steps) for i in range(PARTS)]
    told += [(steps, i, EACH_S * steps + ROLL_OUT_S + 5 * i + late_s) for i in range(2)]
    return [f"{stamp(at)}(WorkerDict pid=89) update step {n + 1} part {i + 1}/{PARTS} done\n"
            for n, i, at in told]  # fmt: skip


def rolled_out(
    folder: Path, steps: int = 10, late_s: float = 0.0, silent_s: float = 2.0, leaves: bool = True
) -> Verdict:
    """The pod's log holds the words of its raylet as well."""
    left = EACH_S * steps + ROLL_OUT_S + 5 + late_s + silent_s
    at = BEGAN + timedelta(seconds=left)
    head = [f"{stamp(EACH_S * (n + 1))}(TaskRunner pid=21) step:{n + 1} - actor/pg_loss:-0.002 -"
            f" critic/rewards/mean:{0.3 + n / 100:.3f}\n" for n in range(steps)]  # fmt: skip
    head.append(f"{stamp(left + 3)}ray.exceptions.ActorDiedError: The actor died because its node"
                " has died. Node Id: 8fa2\n")  # fmt: skip
    (folder / "ppo-head-x7k2p.log").write_text("".join(head))
    worker = parts(steps, late_s)
    if leaves:
        worker.append(
            f"{stamp(left)}[{at:%F %T},020 C 40 40] (raylet) node_manager.cc:1024: [Timeout]"
            " Exiting because this node manager has mistakenly been marked as dead by the GCS:"
            " GCS failed to check the health of this node for 5 times.\n"
        )
    (folder / "ppo-worker-x4srn.log").write_text("".join(worker))
    (folder / "pods.txt").write_text(PODS)
    return diagnose(collect(Request((str(folder),))))


def test_few_lines_that_all_came_in_their_time(tmp_path: Path) -> None:
    """A roll-out is longer than the window: a host that stood still would have been late."""
    verdict = rolled_out(tmp_path)

    assert (verdict.code, verdict.confidence < 0.8) == ("C4", True)
    assert [place.host for place in verdict.cleared] == ["pool-3"]


@pytest.mark.parametrize(
    "changed",
    [{"late_s": 20.0}, {"silent_s": 14.0}, {"steps": 6}, {"leaves": False}],
    ids=["late", "silent since", "too few to compare with", "its raylet is gone"],
)
def test_lines_that_came_in_their_time_no_more(tmp_path: Path, changed: dict[str, Any]) -> None:
    assert rolled_out(tmp_path, **changed).code != "C4"


def test_what_begins_anew_with_each_step_is_no_try(tmp_path: Path) -> None:
    """Of a log whose steps are not those of the run; one that tells of the run's does."""
    rolled_out(tmp_path)
    assert len(collect(Request((str(tmp_path),))).attempts) == 1

    head = (tmp_path / "ppo-head-x7k2p.log").read_text()
    again = head.replace("T05:", "T07:")
    (tmp_path / "ppo-head-x7k2p.log").write_text(head + again)
    assert len(collect(Request((str(tmp_path),))).attempts) == 2
