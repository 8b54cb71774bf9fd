"""A Ray node that was given up, whose raylet lived and whose worker's next step was not late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 3, 3, 5, tzinfo=UTC)
HOSTS = ("10.1.0.7", "10.1.0.8")
STEPS, EACH_S = 40, 20.0
DEAD_S = STEPS * EACH_S + 12
LEFT = (
    "(raylet, ip=10.1.0.7) [{},420 C 90 90] (raylet) node_manager.cc:1027: [Timeout] Exiting"
    " because this node manager has mistakenly been marked as dead by the GCS: GCS failed to check"
    " the health of this node for 5 times.\n"
)


def stamp(second: float) -> str:
    return f"{BEGAN + timedelta(seconds=second):%Y-%m-%d %H:%M:%S}"


def judged(folder: Path, late_s: float = 0.0, host: str = HOSTS[0], left: str = LEFT) -> Verdict:
    """One worker of two prints each step; the node is given up within the last."""
    row = "(TrainWorker pid=31, ip={}) [{},250] step {} loss {:.4f}\n"
    lines = [row.format(HOSTS[n % 2], stamp(n * EACH_S), n, 4 - n / 50) for n in range(STEPS + 1)]
    lines.append(
        f"{stamp(DEAD_S)},110\tWARNING worker.py:2058 -- The node with node id: 77ab and address:"
        " 10.1.0.7 and node name: 10.1.0.7 has been marked dead because the detector has missed"
        " too many heartbeats from it.\n"
    )
    last = (STEPS + 1) * EACH_S + late_s
    lines.append(row.format(host, stamp(last), STEPS + 1, 3.1))
    lines.append(left.format(stamp(last + 2)))
    lines.append(
        "ray.exceptions.NodeDiedError: Task failed because the node it was running on is dead or"
        " unavailable. Node IP: 10.1.0.7.\n"
    )
    (folder / "train.log").write_text("".join(lines))
    return diagnose(collect(Request((str(folder),))))


def test_a_step_in_its_time(tmp_path: Path) -> None:
    """A host that had stood still could not have made it."""
    verdict = judged(tmp_path)

    assert verdict.code == "C4"
    assert [place.host for place in verdict.cleared] == [HOSTS[0]]


def test_an_address_that_a_file_of_hosts_names(tmp_path: Path) -> None:
    (tmp_path / "hosts.txt").write_text(f"{HOSTS[0]} gn07\n{HOSTS[1]} gn08\n")

    verdict = judged(tmp_path)

    assert [place.host for place in verdict.cleared] == ["gn07"]
    assert "gn07" in verdict.headline


@pytest.mark.parametrize(
    ("late_s", "host", "left"),
    [(18.0, HOSTS[0], LEFT), (0.0, HOSTS[1], LEFT), (0.0, HOSTS[0], "")],
)  # fmt: skip
def test_a_host_that_stood_still(tmp_path: Path, late_s: float, host: str, left: str) -> None:
    """The step is late, of another host, or the raylet was not heard of again."""
    assert judged(tmp_path, late_s, host, left).code != "C4"


def shared(folder: Path, left: str = LEFT, quiet_s: float = 0.0, before: str = "") -> Verdict:
    """Both workers print each step; the node is given up behind the last."""
    row = before + "(TrainWorker pid=31, ip={}) [{},250] step {} loss {:.4f}\n"
    lines = [row.format(host, stamp(n * EACH_S), n, 4 - n / 50)
             for n in range(STEPS) for host in HOSTS]  # fmt: skip
    dead = stamp((STEPS - 1) * EACH_S + 11 + quiet_s)
    lines.append(
        f"{before}{dead},110\tWARNING worker.py:2058 -- The node with node id: 77ab and address:"
        " 10.1.0.7 and node name: 10.1.0.7 has been marked dead because the detector has missed"
        " too many heartbeats from it.\n"
    )
    lines.append(before + left.format(dead))
    lines.append(f"{before}ray.exceptions.NodeDiedError: Task failed. Node IP: 10.1.0.7.\n")
    (folder / "train.log").write_text("".join(lines))
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("before", ["", "stderr: "])
def test_steps_in_their_time_up_to_the_word(tmp_path: Path, before: str) -> None:
    """A few seconds of the window are left in which it may have stood still."""
    verdict = shared(tmp_path, before=before)

    assert verdict.code == "C4"
    assert [place.host for place in verdict.cleared] == [HOSTS[0]]


@pytest.mark.parametrize(("left", "quiet_s"), [("", 0.0), (LEFT, 12.0)])
def test_time_enough_to_stand_still(tmp_path: Path, left: str, quiet_s: float) -> None:
    """No raylet is heard of again, or the last step lies most of the window back."""
    assert shared(tmp_path, left, quiet_s).code != "C4"
