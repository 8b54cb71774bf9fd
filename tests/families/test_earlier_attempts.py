"""F2 and F3 where the scheduler ended an earlier try, and a later one is in the same log."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

CANCELLED = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-02T10:10:10 {}***\n"
PREEMPTED = CANCELLED.format("DUE TO PREEMPTION ")
LIMIT = CANCELLED.format("DUE TO TIME LIMIT ")
RAISED = (
    'Traceback (most recent call last):\n  File "train.py", line 90, in <module>\n    main()\n'
    '  File "train.py", line 40, in main\n    state = torch.load(path)\n'
)
NO_FILE = f"{RAISED}FileNotFoundError: [Errno 2] No such file or directory: 'out/last.pt'\n"
NO_MEMORY = (
    f"{RAISED}torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0;"
    " 79.15 GiB total capacity; 77.00 GiB already allocated)\n"
)
NO_NETWORK = (
    f"{RAISED}RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1,"
    " unhandled system error\n"
)


def steps(first: int, last: int) -> str:
    return "".join(f"step {n}/5000 loss {4 - n / 2000:.4f}\n" for n in range(first, last + 1))


FIRST = steps(1, 199)


def judged(folder: Path, text: str) -> Verdict:
    (folder / "slurm-7.out").write_text(text)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    "failed", [NO_MEMORY, NO_FILE, NO_NETWORK], ids=["memory", "a file", "the network"]
)
@pytest.mark.parametrize("between", ["", "Loading data\n"])
def test_a_preemption_goes_before_what_its_rerun_failed_of(
    tmp_path: Path, failed: str, between: str
) -> None:
    """It made no step: what is told below the scheduler's line is of the tear-down or after."""
    verdict = judged(tmp_path, FIRST + PREEMPTED + between + failed)

    assert (verdict.code, verdict.fault_class) == ("F2", "preempted")
    assert any("DUE TO PREEMPTION" in cite.text for one in verdict.shows for cite in one.cites)


@pytest.mark.parametrize(
    ("text", "code"),
    [(FIRST + NO_MEMORY + PREEMPTED, "B1"), (FIRST + NO_FILE + PREEMPTED, "A3"),
     (FIRST + PREEMPTED + steps(1, 40) + NO_MEMORY, "B1"),
     (FIRST + PREEMPTED + steps(1, 40) + NO_FILE, "A3"), (FIRST + NO_MEMORY, "B1")],
    ids=["out of memory before", "an exception before", "a rerun that stepped",
         "and raised", "no preemption"],
)  # fmt: skip
def test_near_misses_of_a_preemption(tmp_path: Path, text: str, code: str) -> None:
    """It failed first, or on its own."""
    assert judged(tmp_path, text).code == code


@pytest.mark.parametrize(
    ("behind", "code"),
    [(steps(1, 40), None), (steps(1, 400), None), (steps(150, 320), None),
     (steps(1, 30) + "Killed\n", None), (steps(1, 40) + CANCELLED.format(""), None),
     (steps(1, 40) + "srun: error: n1: task 0: Exited with exit code 1\n", None),
     (steps(1, 40) + NO_MEMORY, "B1"), (steps(1, 400) + "Training complete\n", "G1")],
    ids=["it goes on", "for long", "from a checkpoint", "killed", "cancelled", "failed",
         "out of memory", "completed"],
)  # fmt: skip
def test_the_limit_of_an_earlier_try_ends_no_later_one(
    tmp_path: Path, behind: str, code: str | None
) -> None:
    """Of which it says nothing."""
    launch = "Loading checkpoint from out/step150.pt\n" if behind.startswith("step 150") else ""
    verdict = judged(tmp_path, FIRST + LIMIT + launch + behind)

    assert verdict.code == code
    assert "F3" not in [one.finding.code for one in verdict.findings]


@pytest.mark.parametrize(
    ("text", "step"),
    [(FIRST + LIMIT, 199), (FIRST + LIMIT + steps(1, 40) + LIMIT, 40),
     (FIRST + PREEMPTED + steps(1, 40) + LIMIT, 40)],
    ids=["the only try", "both", "the later of two"],
)  # fmt: skip
def test_the_limit_of_the_last_try_ends_it(tmp_path: Path, text: str, step: int) -> None:
    verdict = judged(tmp_path, text)

    assert verdict.code == "F3"
    assert f"at step {step} of 5000" in verdict.headline


@pytest.mark.parametrize(
    ("said", "code"),
    [("(sky) [WARN] The cluster h100-spot-2 was preempted. Recovering managed job 7 ...\n", "F2"),
     ("A cluster that is preempted is recovered at once\n", None)],
)  # fmt: skip
def test_a_managed_cluster_that_was_taken_back(
    tmp_path: Path, said: str, code: str | None
) -> None:
    went_on = "Restored checkpoint gs://b/r/step_199\n" + steps(200, 400)
    assert judged(tmp_path, FIRST + said + went_on).code == code


NONE_YET = "No checkpoint to load, so training from scratch.\n"


@pytest.mark.parametrize(
    ("says", "first", "code"),
    [("restart 1, continue from step-000000150.ckpt\n", 1, "E2"),
     ("continuing from checkpoint out/run/checkpoint-150\n", 1, "E2"),
     ("continue from step-000000150.ckpt\n", 150, "F2"),
     ("stage 2, continue from step-000000150.ckpt\n", 1, "F2"),
     ("if there is one, continue from step-000000150.ckpt\n", 1, "F2"),
     ("", 1, "F2")],
    ids=["a script", "its folder", "and it did", "another stage", "perhaps", "not said"],
)  # fmt: skip
def test_a_script_that_names_the_checkpoint_to_go_on_from(
    tmp_path: Path, says: str, first: int, code: str
) -> None:
    """The program found none all the same; where nobody names one there may be none."""
    found = "" if first > 1 else NONE_YET
    text = f"{NONE_YET}{FIRST}{PREEMPTED}Restarts=1\n{says}{found}{steps(first, first + 120)}"
    verdict = judged(tmp_path, text)

    assert verdict.code == code
    if code == "F2" and first == 1:
        assert verdict.confidence < 0.8


def test_what_a_script_said_before_an_earlier_try(tmp_path: Path) -> None:
    """It asks nothing of a later one."""
    says = "continue from step-000000150.ckpt\n"
    text = f"{says}{steps(151, 320)}{PREEMPTED}{NONE_YET}{steps(1, 120)}"
    assert judged(tmp_path, text).code == "F2"


SAVING = "Saving checkpoint for step 180...\n"


@pytest.mark.parametrize(
    ("name", "first", "code"),
    [("w-0.previous.log", 1, "E2"), ("w-0.previous.log", 181, None), ("w-1.log", 1, None)],
    ids=["begun anew", "gone on", "of another pod"],
)
def test_the_log_of_the_container_before(
    tmp_path: Path, name: str, first: int, code: str | None
) -> None:
    """`kubectl logs --previous` is of the try before, where neither log has a date."""
    (tmp_path / name).write_text(steps(1, 180) + SAVING + steps(181, 199))
    (tmp_path / "w-0.log").write_text(steps(first, first + 60))

    told = diagnose(collect(Request((str(tmp_path),))))

    assert (told.code if told.code == "E2" else None) == code
    assert len(told.run.attempts) == (2 if "previous" in name else 1)
