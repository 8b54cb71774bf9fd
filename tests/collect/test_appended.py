"""A log that was appended to holds what an earlier job wrote."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.render.json import render
from flatline.verify import verify

BEGAN = datetime(2026, 3, 4, 8, tzinfo=UTC)
HEADER = "JobID|JobName|State|ExitCode|Submit|Start|End|Elapsed|NNodes|NodeList\n"


def row(job: str, state: str, first_min: int, last_min: int) -> str:
    start, end = (f"{BEGAN + timedelta(minutes=m):%FT%T}" for m in (first_min, last_min))
    return (
        f"{job}|lm|{state}|{'0:0' if state == 'COMPLETED' else '1:0'}|{start}|{start}|{end}|"
        + (f"00:{last_min - first_min:02d}:00|1|n1\n")
    )


def steps(first_min: int, count: int) -> str:
    return "".join(
        f"{BEGAN + timedelta(minutes=first_min, seconds=20 * n):%F %T} INFO step {n}/90 loss"
        f" {4 - n / 50:.3f}\n"
        for n in range(1, count + 1)
    )


def folder(path: Path, rows: str, log: str) -> Request:
    (path / "sacct.txt").write_text(HEADER + rows)
    (path / "train.log").write_text(log)
    return Request((str(path),), job="72")


def error(at_min: int) -> str:
    return (f"{BEGAN + timedelta(minutes=at_min):%F %T} ERROR CUDA out of memory. Tried to"
            " allocate 2.00 GiB (GPU 0; 79.10 GiB total capacity)\n")  # fmt: skip


def test_the_steps_of_the_job_before_are_not_this_ones(tmp_path: Path) -> None:
    rows = row("71", "COMPLETED", 0, 32) + row("72", "FAILED", 40, 45)
    read = collect(folder(tmp_path, rows, steps(1, 90) + error(41)))

    assert read.last_step is None
    assert [match.cite.line for match in read.matches if match.signature.family == "B1"] == [91]
    (gap,) = [gap for gap in read.gaps if "job 71" in gap.reason]
    assert "up to 90" in gap.reason


def test_what_a_later_job_wrote_is_not_this_ones(tmp_path: Path) -> None:
    """The log of the earlier one ends where the later begins."""
    rows = row("72", "FAILED", 0, 15) + row("73", "FAILED", 40, 55)
    read = collect(folder(tmp_path, rows, steps(1, 30) + steps(41, 9) + error(50)))

    assert read.last_step == 30
    assert not [match for match in read.matches if match.signature.family == "B1"]
    (gap,) = [gap for gap in read.gaps if "job 73" in gap.reason]
    assert "from 31 on" in gap.reason


def test_undated_lines_that_begin_a_later_job_are_not_this_ones(tmp_path: Path) -> None:
    """What the earlier one said last, undated as well, stays with it."""
    rows = row("72", "COMPLETED", 0, 15) + row("73", "FAILED", 40, 55)
    said = "saved checkpoint at step 30\nno checkpoint found, starting from scratch\n"
    read = collect(folder(tmp_path, rows, steps(1, 30) + said + steps(41, 9)))

    assert read.last_step == 30
    assert read.markers_of("checkpoint_saved")
    assert not read.markers_of("fresh")


@pytest.mark.parametrize(("user", "left"), [("ann", 0), ("bob", 1)])
def test_what_is_said_after_the_end_is_a_later_jobs_of_the_same_user(
    tmp_path: Path, user: str, left: int
) -> None:
    """Somebody else's began as well once this one was over: the daemons spoke on."""
    rows = row("72", "FAILED", 0, 15).replace("|lm|", "|lm|ann|")
    rows += row("73", "FAILED", 15, 55).replace("|lm|", f"|lm|{user}|")
    request = folder(tmp_path, rows, steps(1, 30) + error(18))
    (tmp_path / "sacct.txt").write_text(HEADER.replace("|State", "|User|State") + rows)
    read = collect(request)

    assert sum(match.signature.family == "B1" for match in read.matches) == left
    assert read.last_seen["train.log"].minute == (18 if left else 11)


@pytest.mark.parametrize(
    ("rows", "log"),
    [
        (row("72", "FAILED", 0, 15), steps(1, 30) + error(50)),
        (row("72", "FAILED", 0, 15) + row("73", "FAILED", 10, 55), steps(1, 30) + error(50)),
        (row("72", "FAILED", 0, 15) + row("73", "FAILED", 40, 55),
         steps(1, 5) + error(50) + steps(3, 25)),
        (row("72", "FAILED", 0, 15) + row("73", "FAILED", 40, 55), error(50) + steps(41, 9)),
    ],
    ids=["no other job is known", "both ran at once", "two streams", "nothing of this job"],
)  # fmt: skip
def test_what_may_be_this_jobs_stays(tmp_path: Path, rows: str, log: str) -> None:
    read = collect(folder(tmp_path, rows, log))

    assert [match for match in read.matches if match.signature.family == "B1"]
    assert not [gap for gap in read.gaps if "which began after" in gap.reason]


@pytest.mark.parametrize(
    ("rows", "log"),
    [
        (row("72", "FAILED", 40, 45), steps(1, 90) + error(41)),
        (row("71", "COMPLETED", 0, 41) + row("72", "FAILED", 40, 75), steps(1, 90) + error(41)),
        (row("71", "COMPLETED", 0, 32) + row("72", "FAILED", 40, 75),
         steps(1, 5) + steps(41, 50) + steps(3, 2)),
    ],
    ids=["no other job is known", "both ran at once", "two streams in one file"],
)  # fmt: skip
def test_near_misses(tmp_path: Path, rows: str, log: str) -> None:
    """Nothing is left out."""
    read = collect(folder(tmp_path, rows, log))

    assert read.last_step is not None
    assert not [gap for gap in read.gaps if "which ended before" in gap.reason]


def test_a_kernels_lines_of_a_job_before_stay(tmp_path: Path) -> None:
    """A card that failed under it may still be there."""
    rows = row("71", "COMPLETED", 0, 32) + row("72", "FAILED", 40, 45)
    request = folder(tmp_path, rows, steps(41, 6))
    said = ((10, "63, pid=1, Row Remapper: New row marked"), (43, "31, pid=2, MMU Fault"))
    lines = [f"{BEGAN + timedelta(minutes=m):%FT%T}+00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00):"
             f" {xid}" for m, xid in said]  # fmt: skip
    (tmp_path / "kern.log").write_text("\n".join(lines) + "\n")
    read = collect(request)

    assert {m.cite.line for m in read.matches if m.cite.source == "kern.log"} == {1, 2}


@pytest.mark.parametrize(
    ("rows", "log", "searched"),
    [
        (
            row("71", "FAILED", 0, 32) + row("72", "COMPLETED", 40, 75),
            steps(1, 30) + error(31) + steps(41, 90) + f"{BEGAN:%F} 09:14:00 INFO training done\n",
            "train.log:32-122",
        ),
        (
            row("72", "COMPLETED", 0, 35) + row("73", "FAILED", 40, 55),
            steps(1, 90) + f"{BEGAN:%F} 08:33:00 INFO training done\n" + steps(41, 9) + error(50),
            "train.log:1-91",
        ),
    ],
    ids=["before", "after"],
)
def test_what_is_absent_is_absent_from_its_own_lines(
    tmp_path: Path, rows: str, log: str, searched: str
) -> None:
    """The error of the other job is no contradiction: which lines were searched is said."""
    request = folder(tmp_path, rows, log)
    facts = collect(request)

    cite = facts.absence(["family:B1"], "no failed GPU allocation in any log")
    assert cite is not None
    assert cite.files == (searched,)
    document = json.loads(render(diagnose(facts)))
    said = {"patterns": list(cite.patterns), "files": list(cite.files), "lines": cite.lines}
    item = {"id": "e99", "kind": "absence", "source": cite.source, "text": cite.text,
            "searched": said}  # fmt: skip
    document["evidence"].append(item)
    assert all(check.ok for check in verify(document, (str(tmp_path),)))
    said["files"] = ["train.log"]
    assert [c.evidence for c in verify(document, (str(tmp_path),)) if not c.ok] == ["e99"]


RAISED = (
    "[rank0]: Traceback (most recent call last):\n"
    '[rank0]:   File "/w/train.py", line 61, in setup\n'
    '[rank0]:     dist.init_process_group("nccl")\n'
    "[rank0]: torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients."
    " 32/40 clients joined.\n"
)


@pytest.mark.parametrize(
    ("before", "state", "log", "cut"),
    [
        ("COMPLETED", "FAILED", steps(1, 90) + RAISED, 90),
        ("FAILED", "FAILED", steps(1, 90) + RAISED, None),
        ("COMPLETED", "COMPLETED", steps(1, 90) + RAISED, None),
        ("COMPLETED", "FAILED", steps(1, 90), None),
        ("COMPLETED", "FAILED", RAISED + steps(1, 90), None),
        ("COMPLETED", "FAILED", RAISED, None),
    ],
    ids=["failed below", "so did the one before", "neither", "nothing below", "above", "undated"],
)
def test_a_job_that_dated_nothing_of_its_own(
    tmp_path: Path, before: str, state: str, log: str, cut: int | None
) -> None:
    """It failed, and the one that dates all did not."""
    rows = row("71", before, 0, 32) + row("72", state, 40, 75)

    facts = collect(folder(tmp_path, rows, log))

    told = [gap.reason for gap in facts.gaps if "job 71" in gap.reason]
    assert [f"up to {cut}" in reason for reason in told] == ([True] if cut else [])
    assert facts.has_progress is (cut is None and "step" in log)


def test_what_was_printed_as_it_ended_is_its_own(tmp_path: Path) -> None:
    """Records have whole seconds, and the next job of the user begins at once."""
    rows = (
        row("71", "COMPLETED", 0, 39) + row("72", "FAILED", 40, 45) + row("73", "FAILED", 45, 55)
    )
    last = f"{BEGAN + timedelta(minutes=45):%F %T},600 INFO step 13/90 loss 3.700\n"
    killed = "srun: error: n1: task 0: Killed\n"

    facts = collect(folder(tmp_path, rows, steps(41, 12) + last + killed))

    assert (facts.last_step, len(facts.exits)) == (13, 1)
    assert not [gap for gap in facts.gaps if "dated within job" in gap.reason]


def test_records_at_the_ends_of_time(tmp_path: Path) -> None:
    """Nothing is added to a date that it cannot hold."""
    rows = "71|lm|FAILED|1:0|0001-01-01T00:00:00|0001-01-01T00:00:00|0001-01-01T00:01:00|1|1|n1\n"
    rows += "72|lm|FAILED|1:0|9999-12-31T23:00:00|9999-12-31T23:00:00|9999-12-31T23:59:59|1|1|n1\n"

    diagnose(collect(folder(tmp_path, rows, steps(1, 9) + error(8))))


@pytest.mark.parametrize(("ahead_s", "kept"), [(40, True), (150, False)])
def test_a_clock_that_is_ahead_of_the_controllers(
    tmp_path: Path, ahead_s: int, kept: bool
) -> None:
    """The last words of a job whose successor began at once are its own, where clocks may differ
    by as much and nothing is seen to begin."""
    rows = (
        row("71", "COMPLETED", 0, 39) + row("72", "FAILED", 40, 45) + row("73", "FAILED", 45, 55)
    )
    at = BEGAN + timedelta(minutes=45, seconds=ahead_s)
    last = error(45).replace(f"{BEGAN + timedelta(minutes=45):%F %T}", f"{at:%F %T}")

    facts = collect(folder(tmp_path, rows, steps(41, 12) + last))

    assert bool([match for match in facts.matches if match.signature.family == "B1"]) is kept
