"""A run whose node was lost, and what its rerun did."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

RECORD = (
    "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
    "88|sft|NODE_FAIL|0:0|2026-05-30T02:00:00|2026-05-30T02:59:47|n11\n"
    "88|sft|RUNNING|0:0|2026-05-30T03:14:47|Unknown|n19\n"
)
LOST = (
    "slurmstepd: error: *** JOB 88 ON n11 CANCELLED AT 2026-05-30T02:59:47 DUE TO NODE FAILURE,"
    " SEE SLURMCTLD LOG FOR DETAILS ***\n"
)
ANEW = "resume_from_checkpoint: None (no checkpoint in /scratch/out_r1)\n"
WENT_ON = "Resuming training from out/checkpoint-200\n"


def steps(first: int, last: int) -> str:
    return "".join(
        f"step {n}/2400 loss {2.5 * 0.998**n:.4f} 3.4 s/it\n"
        + (f"Saving model checkpoint to out/checkpoint-{n}\n" if n % 200 == 0 else "")
        for n in range(first, last, 10)
    )


@pytest.mark.parametrize(
    ("rerun", "code"),
    [(ANEW + steps(10, 200), "E2"), (WENT_ON + steps(210, 400), "F1")],
    ids=["anew", "went on"],
)
def test_the_node_is_not_what_lost_the_work(tmp_path: Path, rerun: str, code: str) -> None:
    """That one was lost is over where the rerun is at work; that it began anew is not."""
    (tmp_path / "slurm-88.out").write_text(steps(10, 410) + LOST + rerun)
    (tmp_path / "sacct.txt").write_text(RECORD)

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


def test_the_log_alone_tells_that_the_rerun_began_anew(tmp_path: Path) -> None:
    (tmp_path / "slurm-88.out").write_text(steps(10, 410) + LOST + ANEW + steps(10, 200))

    assert diagnose(collect(Request((str(tmp_path),)))).code == "E2"


@pytest.mark.parametrize(
    ("log", "state", "sure", "resubmit"),
    [
        ("", "RUNNING", False, "unnecessary"),
        (steps(10, 410) + LOST + WENT_ON + steps(210, 400), "RUNNING", True, "unnecessary"),
        (steps(10, 410) + LOST + WENT_ON + steps(210, 400), "FAILED", False, "as_is"),
    ],
    ids=["not heard of", "at work", "failed"],
)
def test_a_node_that_an_earlier_try_lost(
    tmp_path: Path, log: str, state: str, sure: bool, resubmit: str
) -> None:
    """What became of the rerun is no less asked than why there had to be one."""
    if log:
        (tmp_path / "slurm-88.out").write_text(log)
    (tmp_path / "sacct.txt").write_text(RECORD.replace("RUNNING", state))

    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.findings[0].finding.severity) == ("F1", "warning")
    assert (verdict.confidence >= 0.8, verdict.resubmit) == (sure, resubmit)


def test_a_rerun_of_which_no_end_was_read(tmp_path: Path) -> None:
    (tmp_path / "slurm-88.out").write_text(steps(10, 410) + LOST + WENT_ON + steps(210, 400))

    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.confidence >= 0.8) == ("F1", False)


EVENTS = (
    "LAST SEEN   TYPE      REASON             OBJECT            MESSAGE\n"
    "37m         Warning   Terminated         pod/sft-k2t6m     Pod was terminated in response to"
    " imminent node shutdown.\n"
    "27m         Normal    Scheduled          pod/{pod}     Successfully assigned ml/{pod} to"
    " n19\n"
)


@pytest.mark.parametrize(("pod", "sure"), [("sft-w9bqx", False), ("dpo-w9bqx", True)])
def test_a_pod_that_took_the_place_of_another(tmp_path: Path, pod: str, sure: bool) -> None:
    """Nothing it printed was read."""
    (tmp_path / "events.txt").write_text(EVENTS.format(pod=pod))
    (tmp_path / "pods.txt").write_text(
        "NAME        READY   STATUS       RESTARTS   AGE    IP    NODE\n"
        "sft-k2t6m   0/1     Terminated   0          157m   10.84.40.5   n11\n"
    )

    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.confidence >= 0.8) == ("F2", sure)


@pytest.mark.parametrize(
    ("first", "each_s", "sure"),
    [(10, 3.4, False), (210, 6.1, False), (210, 3.5, True)],
    ids=["far behind", "much slower", "as before"],
)
def test_a_rerun_that_is_not_as_the_try_before(
    tmp_path: Path, first: int, each_s: float, sure: bool
) -> None:
    """Why it had to begin again is not all that is to be told of it."""
    rerun = steps(first, first + 190).replace("3.4 s/it", f"{each_s} s/it")
    loads = WENT_ON if first > 200 else "loading the data\n"
    before = steps(10, 410) if first > 200 else steps(10, 410).replace("Saving", "Kept no")
    (tmp_path / "slurm-88.out").write_text(before + LOST + loads + rerun)
    (tmp_path / "sacct.txt").write_text(RECORD)

    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.confidence >= 0.8) == ("F1", sure)
