"""Pods that were begun again after a node was lost, of which a list of events alone tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

EVENTS = """\
LAST SEEN              TYPE     REASON                OBJECT           MESSAGE
2025-06-09T09:32:05Z   Normal   TaintManagerEviction  pod/lm-worker-1  Marking for deletion Pod a/lm-worker-1
2025-06-09T09:32:27Z   Warning  PyTorchJobRestarting  pytorchjob/lm    PyTorchJob lm is restarting because 1 Worker replica(s) failed.
2025-06-09T09:34:47Z   Normal   SuccessfulCreatePod   pytorchjob/lm    Created pod: lm-worker-0
"""  # noqa: E501
SAVED = "Finished saving the checkpoint (or staging if async is enabled)in 23.41 seconds."
LOADED = "Finished loading the checkpoint in 17.02 seconds."


def said(hour: int, minute: int, text: str) -> str:
    return f"[rank0]:[titan] 2025-06-09 {hour:02d}:{minute:02d}:00,100 - root - INFO - {text}\n"


def steps(hour: int, minute: int, first: int, last: int, *, saves: int | None = None) -> str:
    out = ""
    for n, step in enumerate(range(first, last + 1, 10)):
        at = 60 * hour + minute + n // 2
        loss = 4 + 7 * 0.99 ** (step / 10)
        out += said(at // 60, at % 60, f"step: {step:2d}  loss: {loss:7.4f}  memory: 61.20GiB(77%)"
                    "  tps: 7,000  mfu: 40.95%")  # fmt: skip
        if step == saves:
            out += said(at // 60, at % 60, SAVED)
    return out


def judged(folder: Path, now: str, *, saves: int | None = 301, events: str = EVENTS) -> Verdict:
    begins = "Training starts at step 1, with local batch size 2, total steps 20000"
    (folder / "lm-worker-0.previous.log").write_text(
        said(9, 0, begins) + steps(9, 1, 1, 411, saves=saves)
    )
    (folder / "lm-worker-0.log").write_text(said(9, 36, begins) + now)
    (folder / "events.txt").write_text(events)
    return diagnose(collect(Request((str(folder),))))


def test_it_began_anew_though_it_had_saved(tmp_path: Path) -> None:
    verdict = judged(tmp_path, steps(9, 37, 1, 171))

    assert verdict.code == "E2"
    assert [a.disposition for a in verdict.run.attempts] == ["node_fail", "unknown"]
    assert any(shown.text == "An earlier try had saved a checkpoint" for shown in verdict.shows)


def test_a_list_that_tells_of_the_last_try_as_well(tmp_path: Path) -> None:
    """A second node is lost, after steps; the first was of the try before."""
    again = EVENTS.splitlines()[1].replace("09:32:05", "09:52:05").replace("worker-1", "worker-3")
    verdict = judged(tmp_path, steps(9, 37, 311, 481), events=f"{EVENTS}{again}\n")

    assert verdict.code == "F1"
    assert verdict.run.attempts[-1].disposition == "node_fail"
    assert verdict.onset_step == 481


@pytest.mark.parametrize(
    ("now", "saves"),
    [
        (said(9, 36, LOADED) + steps(9, 37, 311, 481), 301),
        (steps(9, 37, 311, 481), 301),
        (steps(9, 37, 1, 171), None),
    ],
    ids=["it loaded it", "it went on behind it", "nothing was saved"],
)
def test_near_misses(tmp_path: Path, now: str, saves: int | None) -> None:
    verdict = judged(tmp_path, now, saves=saves)

    assert verdict.code != "E2"
    assert verdict.run.attempts[-1].disposition == "unknown"
