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


AGES = """\
LAST SEEN   TYPE     REASON                OBJECT       MESSAGE
{evicted:<12}Normal   TaintManagerEviction  pod/lm2-0    Marking for deletion Pod a/lm2-0
{started:<12}Normal   Started               pod/{pod:<8} Started container main
"""
RUNS = """\
NAME    READY   STATUS    RESTARTS   AGE   NODE
lm2-0   1/1     Running   0          22m   n1
"""


@pytest.mark.parametrize(
    ("evicted", "started", "pod", "code"),
    [("29m", "22m", "lm2-0", "E2"), ("5m30s", "22m", "lm2-0", "F1"), ("29m", "22m", "lm2-7", "F1"),
     ("2h", "119m", "lm2-0", "F1")],
    ids=["started since", "started before", "another pod", "as long ago"],
)  # fmt: skip
def test_what_was_before_the_pod_was_started_again(
    tmp_path: Path, evicted: str, started: str, pod: str, code: str
) -> None:
    """Ages bear no date; they tell which of two was first by more than they are rounded."""
    row = "2026-04-10 {:02d}:{:02d}:{:02d},100:INFO:loop: step={} loss={:.4f} step_s=1.88\n"
    rows = [row.format(6, n // 60, n % 60, 10 * n, 3 + 7 * 0.99**n) for n in range(1, 340)]
    again = [text.replace(" 06:", " 07:") for text in rows[:60]]
    saved = "2026-04-10 06:05:00,200:INFO:ckpt: async save -> /ck/lm2/step_0003000 (dcp)\n"
    none = "2026-04-10 06:56:07,934:ckpt: no checkpoint under /ck, training from scratch\n"
    (tmp_path / "attempt-1.log").write_text("".join(rows[:310]) + saved + "".join(rows[310:]))
    (tmp_path / "attempt-2.log").write_text(none + "".join(again))
    (tmp_path / "events.txt").write_text(AGES.format(evicted=evicted, started=started, pod=pod))
    (tmp_path / "pods.txt").write_text(RUNS)

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


RAISED = """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "/app/train.py", line 88, in train
[rank0]:     batch = next(batches)
[rank0]: requests.exceptions.HTTPError: 504 Server Error: Gateway Time-out for url: https://a/b
"""
STARTED = """\
LAST SEEN   TYPE      REASON    OBJECT             MESSAGE
19m         Warning   BackOff   pod/lm-worker-0    Back-off restarting failed container main
19m         Normal    Started   pod/lm-worker-0    Started container main
"""


@pytest.mark.parametrize(
    ("now", "saves", "code"),
    [
        (steps(9, 37, 1, 171), 301, "E2"),
        (steps(9, 37, 1, 171) + RAISED, 301, "A3"),
        (steps(9, 37, 311, 481), 301, "A3"),
        (steps(9, 37, 1, 171), None, "A3"),
    ],
    ids=["it began anew", "it ended so again", "it went on behind it", "nothing was saved"],
)
def test_what_had_ended_the_try_before_is_over(
    tmp_path: Path, now: str, saves: int | None, code: str
) -> None:
    judged(tmp_path, now, saves=saves, events=STARTED)
    with (tmp_path / "lm-worker-0.previous.log").open("a") as log:
        log.write(RAISED)

    assert diagnose(collect(Request((str(tmp_path),)))).code == code
