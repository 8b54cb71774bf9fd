"""Targets to facts: attempts, places and times of logs, and what could not be read."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.errors import ManyJobs
from flatline.facts import Facts
from flatline.model import Job, RecordCite, Records

BOOM = (
    "Traceback (most recent call last):\n"
    '  File "/app/train.py", line 3, in <module>\n'
    "    {code}\n"
    "{said}\n"
)
MISSING = "FileNotFoundError: [Errno 2] No such file or directory: '{}'\n"
SACCT = "JobID|JobName|State|ExitCode|Start|End|NodeList|SubmitLine\n"


def steps(first: int, last: int, minute: int | None = None, planned: int = 1000) -> str:
    at = "" if minute is None else f"2026-03-01 04:{minute:02d}:{{:02d}} "
    return "".join(
        f"{at.format(i % 60)}step {i}/{planned} loss {5 / i:.4f}\n" for i in range(first, last)
    )


def facts(folder: Path, job: str | None = None, **files: str) -> Facts:
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    made = collect(Request((str(folder),), job=job))
    made.strict = True
    return made


def test_logs_one_after_the_other_are_attempts(tmp_path: Path) -> None:
    """Told by the times of their progress, not by their names."""
    made = facts(tmp_path, b_dot_log=steps(1, 20, 10), a_dot_log=steps(20, 40, 30))

    assert [(a.first_step, a.last_step) for a in made.attempts] == [(1, 19), (20, 39)]


def test_logs_at_the_same_time_are_one_attempt(tmp_path: Path) -> None:
    """The files of two ranks."""
    made = facts(tmp_path, rank0_dot_log=steps(1, 20, 10), rank1_dot_log=steps(1, 20, 10))

    assert len(made.attempts) == 1


def test_steps_that_go_back_begin_an_attempt_within_a_file(tmp_path: Path) -> None:
    """What stands after belongs to the second try."""
    end = BOOM.format(code="train()", said="ValueError: boom")
    made = facts(tmp_path, train_dot_log=steps(1, 40) + steps(1, 20) + end)

    assert [(a.first_step, a.last_step) for a in made.attempts] == [(1, 39), (1, 19)]
    assert [crash.attempt for crash in made.crashes] == [1]


def test_ranks_a_step_apart_begin_no_attempt(tmp_path: Path) -> None:
    """Unlabelled ranks in one stream print out of step."""
    lines = steps(1, 30).splitlines(keepends=True)
    mixed = "".join(lines[i + 1] + lines[i] for i in range(0, 28, 2))

    assert len(facts(tmp_path, train_dot_log=mixed).attempts) == 1


@pytest.mark.parametrize(
    ("between", "tries"),
    [
        ("resumed from ckpts/step_000020.pt at step 20\n", 2),
        ("E0301 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -9)"
         " local_rank: 1 (pid: 23212) of binary: /usr/bin/python3\n"
         "loaded checkpoint ckpts/step_000020.pt (step 20)\n", 2),
        ("loaded checkpoint ckpts/best.pt (step 20) for the evaluation\n", 1),
        ("", 1),
    ],
)  # fmt: skip
def test_workers_that_go_on_where_they_were(tmp_path: Path, between: str, tries: int) -> None:
    """A launcher that restarts them from the last checkpoint leaves no step that goes back."""
    log = steps(1, 21, 1) + between + steps(21, 41, 2)
    made = facts(tmp_path, train_dot_log=log)
    ends = [a.last_step for a in made.attempts]
    assert ends == ([20, 40] if tries == 2 else [40])


def test_a_line_takes_the_time_printed_above_it_and_never_below(tmp_path: Path) -> None:
    """It is no older than that, and it is marked as taken over."""
    end = BOOM.format(code="train()", said="ValueError: boom")
    head = BOOM.format(code="early()", said="ValueError: early")
    made = facts(tmp_path, train_dot_log=head + steps(1, 20, 10) + end)
    early, late = sorted(made.crashes, key=lambda crash: crash.cite.line)

    assert early.cite.at is None
    assert late.cite.at is not None
    assert (late.cite.at.minute, late.cite.at.second, late.cite.at_assumed) == (10, 19, True)


def test_quoted_code_of_a_traceback_is_not_said(tmp_path: Path) -> None:
    """A source line that spells an error message does not mean that it was printed."""
    code = 'raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")'
    made = facts(tmp_path, train_dot_log=steps(1, 20)
                 + BOOM.format(code=code, said="ValueError: boom"))  # fmt: skip

    assert not [m for m in made.matches if m.signature.family == "B1"]
    assert [crash.exception for crash in made.crashes] == ["ValueError"]


def test_the_same_line_outside_a_traceback_is_said(tmp_path: Path) -> None:
    """So it is the place in the traceback that tells them apart."""
    line = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    made = facts(tmp_path, train_dot_log=steps(1, 20) + line)

    assert [m for m in made.matches if m.signature.family == "B1"]


def test_several_jobs_need_a_choice(tmp_path: Path) -> None:
    """The target's own name may be it."""
    rows = SACCT + "7|a|FAILED|1:0|||n1|\n8|b|COMPLETED|0:0|||n2|\n"
    with pytest.raises(ManyJobs):
        facts(tmp_path, sacct_dot_psv=rows)
    (tmp_path / "run-8").mkdir()

    assert facts(tmp_path, job="7").jobs[0].id == "7"
    assert facts(tmp_path / "run-8", sacct_dot_psv=rows).jobs[0].id == "8"


@pytest.mark.parametrize(
    ("logs", "meant"),
    [
        ({"slurm-8.out": ""}, "8"),
        ({"slurm-8.out": "", "9/train.log": ""}, "8"),
        ({"train.log": "SLURM_JOB_ID=8 host=n2\n"}, "8"),
        ({"train.log": "SLURM_JOBID: '7'\n", "other.log": "nothing\n"}, "7"),
        ({"slurm-7.out": "", "slurm-8.out": ""}, None),
        ({"a.log": "SLURM_JOB_ID=7\n", "b.log": "SLURM_JOB_ID=8\n"}, None),
        ({"train.log": "SLURM_JOB_ID=9\n"}, None),
        ({"train.log": "step 8\n"}, None),
    ],
)
def test_the_one_job_that_logs_are_of(
    tmp_path: Path, logs: dict[str, str], meant: str | None
) -> None:
    """By their names, else by what they say of themselves."""
    folder = tmp_path / "run"
    for name, text in logs.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text + steps(1, 20))
    rows = SACCT + "7|a|FAILED|1:0|||n1|\n8|b|COMPLETED|0:0|||n2|\n"
    if meant is None:
        with pytest.raises(ManyJobs):
            facts(folder, sacct_dot_psv=rows)
    else:
        assert facts(folder, sacct_dot_psv=rows).jobs[0].id == meant


@pytest.mark.parametrize("odd", ["99", "*", "", "../x", "9" * 3000, "-1", "７"])
def test_a_job_that_no_record_holds_is_a_gap(tmp_path: Path, odd: str) -> None:
    """Whatever its id looks like, and the logs are read all the same."""
    made = facts(tmp_path, job=odd, sacct_dot_psv=SACCT + "7|a|FAILED|1:0|||n1|\n",
                 train_dot_log=steps(1, 20))  # fmt: skip

    assert made.jobs == ()
    assert any("no record of job" in gap.reason for gap in made.gaps)


def test_secrets_stand_in_nothing_that_was_collected(tmp_path: Path) -> None:
    """Lines, messages, chains, frames, groups and records."""
    said = "https://user:hunter22@host/x"
    end = BOOM.format(code=f"go('{said}')", said=f"KeyError: '{said}'")
    chained = "\nThe above exception was the direct cause of the following exception:\n\n"
    made = facts(
        tmp_path,
        train_dot_log=steps(1, 20) + end + chained + end + MISSING.format(said),
        sacct_dot_psv=SACCT + f"7|{said}|FAILED|1:0|||n1|srun {said}\n",
    )

    held = [made.jobs, made.crashes, made.matches, [m.groups for m in made.matches], made.gaps]
    assert made.crashes
    assert made.matches
    assert "hunter22" not in repr(held)
    assert "hunter22" not in made.text("train.log", 23)


def test_a_damaged_record_is_a_gap(tmp_path: Path) -> None:
    """And the log beside it is read."""
    made = facts(tmp_path, sacct_dot_json='{"jobs": [{"job_id": ', train_dot_log=steps(1, 20))

    assert made.has_progress
    assert "sacct.json" in {gap.where for gap in made.gaps}


def test_a_truncated_archive_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """With a gap, and the log is not whole."""
    packed = gzip.compress(steps(1, 5000).encode())
    (tmp_path / "train.log.gz").write_bytes(packed[: len(packed) // 2])
    made = facts(tmp_path)

    assert made.has_progress
    assert any("middle of its packed data" in gap.reason for gap in made.gaps)


def test_steps_no_run_counts_to_are_no_steps(tmp_path: Path) -> None:
    """Nor do they fail the reading."""
    lines = "".join(f"step {10**i}/1{'0' * i} loss 1e{i}\n" for i in range(1, 400, 7))
    made = facts(tmp_path, train_dot_log=lines)

    assert made.has_progress
    assert (made.last_step or 0) <= 10**15
    assert (made.planned_steps or 0) <= 10**15


def test_hostile_names_are_read_like_others(tmp_path: Path) -> None:
    """Newlines, escapes, percent signs and bytes that are no UTF-8."""
    for name in (b"a\nb.log", b"\x1b[31mred.log", b"%s%n.log", b"\xff\xfe.log", b"--job.log"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text(steps(1, 9))

    assert len(facts(tmp_path).files) == 5


def test_nothing_is_written_into_the_target(tmp_path: Path) -> None:
    """No file more, none newer."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "train.log").write_text(steps(1, 20))
    before = [(p, p.stat().st_mtime_ns) for p in sorted(tmp_path.rglob("*"))]
    facts(tmp_path / "run")

    assert [(p, p.stat().st_mtime_ns) for p in sorted(tmp_path.rglob("*"))] == before


def test_steps_that_go_back_without_end_are_one_try(tmp_path: Path) -> None:
    """Several programs that print into one file are not 600 restarts."""
    made = facts(tmp_path, train_dot_log=steps(1, 12) * 600)

    assert len(made.attempts) == 1
    assert any("go back" in gap.reason for gap in made.gaps)


def test_a_log_that_is_gone_when_it_is_cited_is_a_gap(tmp_path: Path) -> None:
    """It was read to its end before, so that the rest of the diagnosis stands."""
    made = facts(tmp_path, a_dot_log=steps(1, 20))
    (tmp_path / "a.log").unlink()

    assert made.text("a.log", 1) == made.text("a.log", 2) == ""
    assert [gap.where for gap in made.gaps if "gone" in gap.reason] == ["a.log"]


def test_gaps_of_one_kind_are_counted(tmp_path: Path) -> None:
    """A folder may hold as many files of weights as it likes."""
    for number in range(50):
        (tmp_path / f"{number}.bin").write_bytes(b"\1\2\3\x80" * 99)
    gaps = [gap.where for gap in facts(tmp_path).gaps if "binary" in gap.reason]

    assert (len(gaps), gaps[-1]) == (21, "30 more")


def test_redraws_of_a_bar_without_end_are_read_now_and_then(tmp_path: Path) -> None:
    """The last one among them, and the gap says so."""
    bar = "".join(
        f"\r {i // 300}%|██  | {i}/30000 [00:10<00:12,  1.20it/s, loss=1.2]"
        for i in range(1, 30_001)
    )
    made = facts(tmp_path, a_dot_log=f"{bar}\nstep 1/9 loss 2\n")

    assert max(made.tracks[0].steps) == 30_000
    assert [gap.reason for gap in made.gaps if "redraw" in gap.need] != []


def test_records_that_were_read_already_are_those_of_the_run() -> None:
    """A listing parses an accounting file once, however many jobs it holds."""
    cite = RecordCite("sacct.txt", "row 1, State", "FAILED", "t")
    job = Job("7", "train", "failed", "FAILED", cite, nodes=("n1",))
    facts = collect(Request((), job="7"), None, (Records(jobs=(job,)),))
    assert facts.job is not None
    assert facts.job.nodes == ("n1",)
    assert facts.disposition == "failed"
