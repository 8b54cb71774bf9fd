"""A pod's end that a shell shows above the pod's own log."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

POD = (
    "$ kubectl -n lab describe pod tune-0\n"
    "Containers:\n  main:\n    State:          {state}\n      Reason:       {reason}\n"
    "      Exit Code:    {code}\n    Ready:          False\n"
)
LOGS = "$ kubectl -n lab logs {}\n"
STEPS = "".join(f"step {n}/900 loss {4 - n / 50:.3f}\n" for n in range(40, 80))


def judged(folder: Path, pod: str, logs: str, above: str = "") -> Verdict:
    (folder / "notes.log").write_text(above + pod + logs + STEPS)
    return diagnose(collect(Request((str(folder),))))


KILLED = POD.format(state="Terminated", reason="OOMKilled", code=137)


@pytest.mark.parametrize("pod", ["tune-0 | tail -n 40", "pod/tune-0", "tune-0 --tail=40"])
def test_it_ended_what_is_shown_below(tmp_path: Path, pod: str) -> None:
    verdict = judged(tmp_path, KILLED, LOGS.format(pod))

    assert (verdict.code, verdict.fault_class) == ("A2", "cgroup-oom")


@pytest.mark.parametrize(
    ("pod", "logs"),
    [
        (KILLED, LOGS.format("tune-1 | tail")),
        (KILLED, LOGS.format("tune-0 -f")),
        (KILLED, LOGS.format("tune-0 --previous")),
        (KILLED, "$ python train.py\n"),
        (POD.format(state="Terminated", reason="Completed", code=0), LOGS.format("tune-0")),
    ],
    ids=["another pod", "it is followed", "the container before", "no log", "it ended well"],
)
def test_it_did_not(tmp_path: Path, pod: str, logs: str) -> None:
    assert judged(tmp_path, pod, logs).code != "A2"


def test_nor_where_steps_stand_above(tmp_path: Path) -> None:
    above = "".join(f"step {n}/900 loss {4 - n / 50:.3f}\n" for n in range(20))

    assert judged(tmp_path, KILLED, LOGS.format("tune-0"), above).code != "A2"
