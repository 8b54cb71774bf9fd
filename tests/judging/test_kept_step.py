"""A Ray node that was given up while its workers kept step, all in the driver's log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 3, 3, 5, tzinfo=UTC)
DEAD_S = 1200
EACH_S = 4
OWN, OTHER = "10.1.0.7", "10.1.0.8"
GIVEN_UP = (
    "{},110\tWARNING worker.py:2058 -- The node with node id: 77ab and address: 10.1.0.7 and node"
    " name: 10.1.0.7 has been marked dead because the detector has missed too many heartbeats from"
    " it.\n{},881\tERROR tune_controller.py:1331 -- Trial task failed\n"
    "ray.exceptions.RayActorError: The actor died because its node has died.\n"
)


def stamp(second: float) -> str:
    return f"{BEGAN + timedelta(seconds=second):%Y-%m-%d %H:%M:%S}"


def judged(folder: Path, own_s: float, other_s: float, off_s: float = 0.0) -> Verdict:
    lines = []
    for n in range(1, DEAD_S // EACH_S):
        for ip, until, off in ((OWN, own_s, off_s), (OTHER, other_s, 0.0)):
            if n * EACH_S <= until:
                at = stamp(n * EACH_S + off)
                lines.append(
                    f"(RayTrainWorker pid=11, ip={ip}) {at},500 step {n} loss {4 - n / 200:.4f}\n"
                )
    lines.append(GIVEN_UP.format(stamp(DEAD_S), stamp(DEAD_S + 1)))
    (folder / "train.log").write_text("".join(lines))
    return diagnose(collect(Request((str(folder),))))


def test_in_step_until_it_was_given_up(tmp_path: Path) -> None:
    """A node that was gone makes no steps while it is not heard."""
    verdict = judged(tmp_path, DEAD_S, DEAD_S)

    assert verdict.code == "C4"
    assert [place.host for place in verdict.cleared] == [OWN]


@pytest.mark.parametrize(
    ("own_s", "other_s", "off_s"),
    [
        (DEAD_S - 20, DEAD_S, 0.0),  # it stopped first
        (DEAD_S - 20, DEAD_S - 20, 0.0),  # with all others, which waited for it
        (DEAD_S, DEAD_S, 12.0),  # by another clock
        (DEAD_S, 0, 0.0),  # nobody dates its steps
    ],
)
def test_one_that_may_be_gone(tmp_path: Path, own_s: float, other_s: float, off_s: float) -> None:
    """Its steps end before, or nothing tells when they were made."""
    assert judged(tmp_path, own_s, other_s, off_s).code != "C4"
