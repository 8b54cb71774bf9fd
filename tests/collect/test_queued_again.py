"""A job that its limit ended, that was queued again, and failed before its first step."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

ENDS = "slurmstepd: error: *** {} ON n1 CANCELLED AT 2026-03-04T08:05:00 DUE TO {} ***\n"
LIMIT = ENDS.format("JOB 71", "TIME LIMIT")
RESUMES = "2026-03-04 {},000 INFO Resuming from checkpoint /ckpt/pre/step_280\n"
CORRUPT = (
    "Traceback (most recent call last):\n"
    '  File "fit.py", line 31, in <module>\n    state = torch.load(path)\n'
    "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central"
    " directory\n"
)
STEPS = "".join(
    f"2026-03-04 08:{n // 60:02d}:{n % 60:02d},000 INFO step {n}/3000 loss {3 * 0.99**n:.4f}\n"
    for n in range(1, 300)
)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(
    ("said", "dispositions", "code"),
    [
        (LIMIT + RESUMES.format("08:52:10"), ["timeout", "failed"], "E2"),
        (ENDS.format("JOB 71", "PREEMPTION") + RESUMES.format("08:52:10"),
         ["preempted", "failed"], "E2"),
        (LIMIT + RESUMES.format("08:05:20"), ["timeout"], "F3"),
        (LIMIT + "2026-03-04 08:52:10,000 INFO cleaned up\n", ["timeout"], "F3"),
        (ENDS.format("STEP 71.0", "TIME LIMIT") + RESUMES.format("08:52:10"), ["timeout"], "F3"),
    ],
    ids=["queued again", "preempted before", "as it was ended", "no beginning", "a step"],
)  # fmt: skip
def test_what_the_later_try_ended_of(
    tmp_path: Path, said: str, dispositions: list[str], code: str, apart: bool
) -> None:
    """The end of an earlier try is not that of the run, in whichever file it stands."""
    (tmp_path / "slurm-71.out").write_text(STEPS + ("" if apart else said + CORRUPT))
    if apart:
        (tmp_path / "slurm-71.err").write_text(said + CORRUPT)
    facts = collect(Request((str(tmp_path),)))

    assert [attempt.disposition for attempt in facts.attempts] == dispositions
    assert diagnose(facts).code == code


REQUEUED = ENDS.format("JOB 71", "JOB REQUEUE")


def undated(first: int, until: int) -> str:
    return "".join(f"step {n}/900 loss {3 * 0.99**n:.4f}\n" for n in range(first, until))


@pytest.mark.parametrize(
    ("between", "tries"),
    [
        (REQUEUED + "Restored all states from the checkpoint at /ckpt/hpc_ckpt_1.ckpt\n", 2),
        ("Restored all states from the checkpoint at /ckpt/hpc_ckpt_1.ckpt\n", 1),
        (REQUEUED, 1),
    ],
    ids=["taken back and begun again", "never taken back", "no beginning"],
)
def test_a_rerun_that_went_on_at_the_next_step(tmp_path: Path, between: str, tries: int) -> None:
    """Its steps do not go back, and nothing is dated."""
    (tmp_path / "train.log").write_text(undated(1, 60) + between + undated(60, 200))
    facts = collect(Request((str(tmp_path),)))

    assert len(facts.attempts) == tries
    assert (diagnose(facts).code == "F2") == (tries == 2)


def ranks(first: int, until: int) -> str:
    """Two that print into one stream, the second a step behind."""
    return "".join(
        f"step {step}/900 loss {3 * 0.99**step:.4f}\n"
        for n in range(first, until)
        for step in (n, n - 1)
    )


@pytest.mark.parametrize(
    ("text", "tries"),
    [
        (undated(1, 60) + REQUEUED + undated(57, 200), 2),
        (undated(1, 60) + ENDS.format("JOB 71", "TIME LIMIT") + undated(58, 90), 2),
        (undated(1, 60) + ENDS.format("STEP 71.0", "TIME LIMIT") + undated(58, 90), 1),
        (undated(1, 60) + "restarting\n" + undated(58, 90), 1),
        (undated(1, 60) + REQUEUED + undated(59, 61), 1),
        (ranks(1, 60) + REQUEUED + ranks(59, 90), 1),
    ],
    ids=["requeued", "limited", "a step of it", "nothing is said", "as it was ended",
         "ranks out of step"],
)  # fmt: skip
def test_a_rerun_that_went_back_by_little(tmp_path: Path, text: str, tries: int) -> None:
    """A checkpoint may be a step or two old: the word on the job tells, and that steps never went
    back before."""
    (tmp_path / "train.log").write_text(text)

    assert len(collect(Request((str(tmp_path),))).attempts) == tries


def bars(until: int) -> str:
    return "".join(
        f"{n:3d}%|#| {n}/100 [00:{n // 2:02d}<01:00,  1.90it/s]\n" for n in range(until)
    )


@pytest.mark.parametrize(("between", "tries"), [(LIMIT, 2), ("", 1)])
def test_bars_beside_the_log_that_speaks_for_the_run(
    tmp_path: Path, between: str, tries: int
) -> None:
    """They may begin anew with each of its steps, but not where the scheduler ended the job."""
    (tmp_path / "slurm-71.out").write_text(undated(1, 60))
    (tmp_path / "slurm-71.err").write_text(bars(60) + between + bars(12) + CORRUPT)

    assert len(collect(Request((str(tmp_path),))).attempts) == tries


FAULT = (
    "[rank5]: Traceback (most recent call last):\n"
    '[rank5]:   File "fit.py", line 31, in <module>\n[rank5]:     loss.backward()\n'
    "[rank5]: RuntimeError: CUDA error: unspecified launch failure\n"
)

TORN = (
    'Traceback (most recent call last):\n  File "fit.py", line 3, in <module>\n'
    "    batch = q.get()\nEOFError\n"
)


@pytest.mark.parametrize(
    ("ended", "requeued"),
    [(FAULT + REQUEUED, False), (REQUEUED + FAULT, True), (REQUEUED, True),
     (TORN + REQUEUED, True),
     (FAULT + ENDS.format("JOB 71", "PREEMPTION"), True)],
    ids=["failed", "failed as it was ended", "taken back", "a queue that ended", "preempted"],
)  # fmt: skip
def test_a_try_that_had_failed_before_it_was_put_back(
    tmp_path: Path, ended: str, requeued: bool
) -> None:
    """What the scheduler did then is no cause."""
    again = undated(300, 900).replace("loss 0.0", "loss 0.1")
    (tmp_path / "slurm-71.out").write_text(
        undated(1, 300) + ended + "Resuming from checkpoint /ckpt/step_299\n" + again
    )
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|Restarts|NodeList\n"
        "71|gpt|COMPLETED|0:0|2026-03-04T08:40:00|2026-03-04T09:00:00|1|n1\n"
    )

    told = diagnose(collect(Request((str(tmp_path),))))

    assert (told.code == "F2") is requeued
