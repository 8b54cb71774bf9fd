"""A machine that is taken back in the middle of a log that goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

STATE = "WARNING: TPU node trial-7 state: {}\n"
LOADS = (
    "2026-06-14T04:26:46 - 0 - levanter.checkpoint - checkpoint.py:520 - INFO :: Loading"
    " checkpoint from gs://lv/run9/step-400\n"
)


def steps(first: int, last: int) -> str:
    return "".join(
        f"2026-06-14T{3 + n // 360:02d}:{n // 6 % 60:02d}:{n % 6 * 10:02d} step {n}/9000"
        f" loss {5 - n / 900:.4f}\n"
        for n in range(first, last)
    )


@pytest.mark.parametrize(
    ("between", "attempts"),
    [
        (STATE.format("PREEMPTED") + LOADS, 2),
        (STATE.format("READY") + LOADS, 1),
        (STATE.format("PREEMPTED"), 1),  # the steps go on as if of another's machine
    ],
)
def test_a_rerun_behind_it(tmp_path: Path, between: str, attempts: int) -> None:
    """Steps that go on where a checkpoint was loaded are another try's."""
    (tmp_path / "train.log").write_text(steps(1, 401) + between + steps(401, 600))
    facts = collect(Request((str(tmp_path),)))
    verdict = diagnose(facts)

    assert len(facts.attempts) == attempts
    assert (verdict.code == "F2") is (attempts == 2)
    if attempts == 2:
        assert "the rerun came to step 599" in verdict.headline


EVENTS = (
    "LAST SEEN  TYPE  REASON  OBJECT  MESSAGE\n"
    "2026-06-14T{}Z  Normal  Preempted  workload/job-lm-77aa  Preempted to accommodate a workload"
    " (UID: 71c0d1aa-0c8d) due to prioritization in the ClusterQueue\n"
    "2026-06-14T06:20:10Z  Normal  Scheduled  pod/lm-0-b  Successfully assigned ml/lm-0-b to n1\n"
)
INTERRUPTED = (
    'Traceback (most recent call last):\n  File "t.py", line 9, in run\nKeyboardInterrupt\n'
)


def in_two_logs(folder: Path, preempted: str) -> tuple[list[str], str | None]:
    """How two tries ended that begin at 3:00 and at 6:40, with the events of their pods."""
    (folder / "lm-0-a.log").write_text(steps(1, 600) + INTERRUPTED)
    (folder / "lm-0-b.log").write_text(steps(1321, 1500))
    (folder / "events.txt").write_text(EVENTS.format(preempted))
    facts = collect(Request((str(folder),)))
    return [attempt.disposition for attempt in facts.attempts], diagnose(facts).code


def test_an_event_of_the_try_before(tmp_path: Path) -> None:
    """Kueue took the first one back, which says nothing of how the second one ended."""
    assert in_two_logs(tmp_path, "04:40:12") == (["preempted", "unknown"], "F2")


def test_an_event_of_the_last_try(tmp_path: Path) -> None:
    assert in_two_logs(tmp_path, "07:10:12")[0][1] == "preempted"


def test_an_event_in_the_middle_of_a_try(tmp_path: Path) -> None:
    """It was another's: that one went on for an hour."""
    dispositions, code = in_two_logs(tmp_path, "03:40:12")

    assert (dispositions[1], code) == ("unknown", None)


DESCRIBED = (
    "$ kubectl describe workload -n ml lm-run\nStatus:\n  Conditions:\n"
    "    Last Transition Time:  2026-06-14T{}Z\n"
    "    Message:               Preempted to accommodate a workload (UID: 71c0d1aa) due to"
    " prioritization in the ClusterQueue\n    Reason:                Preempted\n"
    "    Type:                  Evicted\n\n$ kubectl logs lm-run-0 --previous\n"
)


@pytest.mark.parametrize(
    ("at", "code"),
    [("04:40:02", "F2"), ("03:40:02", None), ("09:40:02", None)],
    ids=["as it ended", "long before its end", "long after it"],
)
def test_a_condition_above_the_log(tmp_path: Path, at: str, code: str | None) -> None:
    """Its own time tells what of the log came before it."""
    (tmp_path / "paste.txt").write_text(DESCRIBED.format(at) + steps(1, 600))
    assert diagnose(collect(Request((str(tmp_path),)))).code == code


WORKER = "(TrainWorker pid={}, ip=10.2.0.4) 2026-06-14 0{}:{:02d}:{:02d} step {} loss {:.4f}\n"
LOST = "2026-06-14 04:41:00 WARNING controller -- Worker group error on node 10.2.0.9: {}\n"
RESTORED = "(TrainWorker pid=977, ip=10.2.0.4) Restored from checkpoint /ck/c_9 (step 580)\n"


def worked(pid: int, first: int, last: int) -> str:
    return "".join(
        WORKER.format(pid, 3 + n // 360, n // 6 % 60, n % 6 * 10, n, 5 - n / 900)
        for n in range(first, last)
    )


@pytest.mark.parametrize(
    ("between", "code"),
    [
        (LOST.format("node was preempted") + RESTORED, "F2"),
        (LOST.format("actor died") + RESTORED, None),
        (LOST.format("node was preempted"), None),
    ],
)
def test_other_workers_take_over(tmp_path: Path, between: str, code: str | None) -> None:
    """Ray starts new processes, whose steps are a stream of their own."""
    text = worked(812, 1, 600) + between + worked(977, 581, 800)
    (tmp_path / "train.log").write_text(text)
    facts = collect(Request((str(tmp_path),)))
    assert (len(facts.attempts) == 2) is (code == "F2")
    assert diagnose(facts).code == code


MAXTEXT = "completed step: {}, seconds: 2.100, TFLOP/s/device: 190.0, loss: {:.3f}\n"
SIGTERM = (
    "I0614 04:18:22.1 77 preemption_sync_manager.cc:330] SIGTERM caught at"
    " 2026-06-14T04:18:22Z{}\n"
)
ORBAX = "INFO:absl:Restoring checkpoint from gs://run/ckpt/400\n"


@pytest.mark.parametrize(
    ("between", "code"),
    [
        (SIGTERM.format(": spot reclaimed") + ORBAX, "F2"),
        (SIGTERM.format("") + "Exiting: preempted\n" + ORBAX, "F2"),
        (SIGTERM.format("") + ORBAX, None),
    ],
)
def test_maxtext_goes_on_in_its_log(tmp_path: Path, between: str, code: str | None) -> None:
    """A signal alone does not tell who sent it."""
    rows = [MAXTEXT.format(n, 9 - n / 100) for n in range(700)]
    (tmp_path / "train.log").write_text("".join(rows[:401]) + between + "".join(rows[401:]))
    assert diagnose(collect(Request((str(tmp_path),)))).code == code
