"""One job from many records: rows merged, the job chosen, its attempts and its end."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from flatline.collect.masking import masked
from flatline.collect.merging import merge
from flatline.collect.runs import attempts, choose, how_it_ended
from flatline.errors import ManyJobs
from flatline.model import (
    Crash,
    Disposition,
    Gap,
    Job,
    LogCite,
    Match,
    NodeEvent,
    Place,
    ProcessExit,
    Progress,
    RecordCite,
    Records,
    Signature,
    Step,
)
from flatline.tracks import Track

START = datetime(2026, 3, 1, 4, tzinfo=UTC)
CITE = RecordCite("sacct", "row 1, State", "FAILED", "JobID=7 State=FAILED")


def job(job_id: str = "7", at_s: float | None = 0, **more: Any) -> Job:
    started = None if at_s is None else START + timedelta(seconds=at_s)
    known: dict[str, Any] = {"disposition": "failed", "state": "FAILED", "name": None, **more}
    return Job(id=job_id, cite=CITE, started_at=started, **known)


def line(number: int) -> LogCite:
    return LogCite("train.log", number, "text")


def tagged(tag: str, number: int, role: Any = "marker") -> Match:
    return Match(Signature("x", "x", role, "", "", "", ("x",), tags=(tag,)), line(number), {})


def steps(*numbers: int, planned: int | None = None, first_line: int = 1) -> Track:
    track = Track("train.log", Place(), None, "plain")
    for at, step in enumerate(numbers):
        track.add(Progress("train", step=step, planned=planned), first_line + at, None, 0)
    return track


def ended(*matches: Match, tracks: tuple[Track, ...] = (), **more: Any) -> Disposition:
    known: dict[str, Any] = {"job": None, "crashes": (), "exits": (), "markers": (), **more}
    return how_it_ended(matches=matches, tracks=tracks, **known)


def test_rows_of_several_files_become_one() -> None:
    """A row seen twice has the fields of both, and the word of the one that knows the end."""
    live = job(disposition="running", state="RUNNING", work_dir="/w", nodes=("n1",))
    done = job(limit_s=60.0)
    (merged,) = merge([Records(jobs=(live,)), Records(jobs=(done,))]).jobs

    assert (merged.disposition, merged.state, merged.limit_s) == ("failed", "FAILED", 60.0)
    assert (merged.work_dir, merged.nodes) == ("/w", ("n1",))


def test_a_row_without_a_start_joins_its_job() -> None:
    """While rows of different starts are the tries of a requeued job, oldest first."""
    rows = merge(
        [Records(jobs=(job(at_s=900), job(at_s=0))), Records(jobs=(job(at_s=None, tasks=8),))]
    ).jobs

    assert [row.started_at for row in rows] == [START, START + timedelta(seconds=900)]
    assert 8 in {row.tasks for row in rows}


def test_node_events_are_counted_once() -> None:
    """Two files may hold the same one."""
    event = NodeEvent("n1", ("DOWN",), "x", CITE, START)

    assert (
        len(merge([Records(node_events=(event,)), Records(node_events=(event,))]).node_events) == 1
    )


def test_one_job_needs_no_choice() -> None:
    """All of its rows are kept."""
    assert len(choose([job(at_s=0), job(at_s=9)], None, None)) == 2
    assert choose([], None, None) == ()


def test_the_job_is_named_by_the_caller_or_by_the_target() -> None:
    """The caller's word goes first."""
    jobs = [job("7"), job("8")]

    assert [j.id for j in choose(jobs, "8", "7")] == ["8"]
    assert [j.id for j in choose(jobs, None, "7")] == ["7"]
    assert choose(jobs, "9", "7") == ()


@pytest.mark.parametrize("named", [None, "9"])
def test_several_jobs_and_no_name_is_a_wrong_call(named: str | None) -> None:
    """It lists them, their secrets masked."""
    with pytest.raises(ManyJobs) as caught:
        choose([job("7", name="a --token abcd1234efgh"), job("8")], None, named)

    assert caught.value.jobs == (("7", "a --token [masked]", "FAILED"), ("8", "", "FAILED"))


def test_rows_are_the_attempts() -> None:
    """Each with its own end."""
    rows = [job(at_s=0, disposition="requeued", state="REQUEUED"), job(at_s=900)]

    made = attempts(rows, (), (), "failed", [0])

    assert [(a.n, a.disposition) for a in made] == [(0, "requeued"), (1, "failed")]


def test_logs_tell_attempts_where_no_row_does() -> None:
    """Only the last carries how the run ended; each has its own steps."""
    track = steps(1, 2, 3, 1, 2)
    for i in (3, 4):
        track.attempts[i] = 1
    made = attempts((), (), (track,), "completed", [0, 1])

    assert [(a.disposition, a.first_step, a.last_step) for a in made] == [
        ("failed", 1, 3),
        ("completed", 1, 2),
    ]


def test_the_record_has_the_last_word_on_the_end() -> None:
    """Whatever the log says, unless the record does not know."""
    assert ended(tagged("time-limit", 5), job=job()) == "failed"
    assert ended(tagged("time-limit", 5), job=job(disposition="unknown")) == "timeout"


@pytest.mark.parametrize("state", ["completed", "cancelled", "failed"])
def test_the_limit_ended_a_job_that_ran_to_it(state: str) -> None:
    """Whatever a trap or a wrapper made of its state; a line that the job cannot have had, or that
    steps follow, or the program's end, is no limit's."""

    def told(ran_s: float, *more: Match, **given: Any) -> Disposition:
        row = job(disposition=state, limit_s=3600.0, ended_at=START + timedelta(seconds=ran_s))
        return ended(tagged("time-limit", 50), *more, job=row, **given)

    assert told(3605) == "timeout"
    assert told(1800) == state
    assert told(3605, tracks=(steps(1, 2, 3, 4, 5, first_line=60),)) == state
    assert told(3605, tagged("end-ok", 40)) == state


@pytest.mark.parametrize(
    ("state", "said", "given", "end"),
    [
        ("completed", "*** JOB 7 ON n1 CANCELLED AT 2026-03-01T05:00:00 ***", {}, "cancelled"),
        ("failed", "*** JOB 7 ON n1 CANCELLED AT 2026-03-01T05:00:00 ***", {}, "failed"),
        ("completed", "*** STEP 7.0 ON n1 CANCELLED AT 2026-03-01T05:00:00 ***", {}, "completed"),
        ("completed", "*** JOB 71 ON n1 CANCELLED AT 2026-03-01T05:00:00 ***", {}, "completed"),
        ("completed", "*** JOB 7 ON n1 CANCELLED AT 2026-03-01T05:00:00 ***",
         {"lines": {"train.log": 400}}, "completed"),
        ("completed", "*** JOB 7 ON n1 CANCELLED AT 2026-03-01T05:00:00 ***",
         {"tracks": (steps(1, 2, 3, planned=3),)}, "completed"),
    ],
    ids=["cancelled", "another state", "a step", "another job", "the script went on", "done"],
)  # fmt: skip
def test_a_job_on_record_as_completed_that_was_cancelled_as_a_whole(
    state: str, said: str, given: dict[str, Any], end: str
) -> None:
    match = tagged("cancelled", 50)
    match = replace(match, cite=replace(match.cite, text="slurmstepd: error: " + said))
    given = {"tracks": (steps(1, 2, 3, planned=90),), "lines": {"train.log": 51}, **given}

    assert ended(match, job=job(disposition=state), **given) == end


def test_a_line_after_which_steps_went_on_ends_nothing() -> None:
    """The words of another job, printed as data."""
    later = steps(1, 2, 3, 4, 5, first_line=10)

    assert ended(tagged("time-limit", 5), tracks=(later,)) == "unknown"
    assert ended(tagged("time-limit", 50), tracks=(later,)) == "timeout"


def test_the_planned_end_must_be_reached() -> None:
    """No room for another line within the plan, and nothing failing after it."""
    near, far = steps(0, 80, 90, planned=100), steps(10, 80, 90, planned=100)
    exit_ = ProcessExit("torchelastic", line(9), exit_code=1)

    assert ended(tracks=(near,)) == "completed"
    assert ended(tracks=(far,)) == "unknown"
    assert ended(tracks=(near,), exits=(exit_,)) == "failed"


def test_a_failure_before_srun_cancels_the_step_is_a_failure() -> None:
    """srun cancels a step itself once a task of it has failed."""
    exit_ = ProcessExit("srun", line(5), exit_code=1)

    assert ended(tagged("cancelled", 9), exits=(exit_,)) == "failed"
    assert ended(tagged("cancelled", 3), exits=(exit_,)) == "cancelled"


def test_a_traceback_after_the_last_step_is_an_end() -> None:
    """One that training went on after is not, nor is a line of the kernel's."""
    crash = Crash("ValueError", "x", (), line(50), line(48))
    early = Crash("ValueError", "x", (), line(2), line(1))
    root = tagged("any", 50, "root")

    assert ended(tracks=(steps(1, 2, 3),), crashes=(crash,)) == "failed"
    assert ended(tracks=(steps(1, 2, 3, first_line=5),), crashes=(early,)) == "unknown"
    assert ended(root) == "failed"
    assert ended(root, kernel=frozenset({"train.log"})) == "unknown"


def test_ctrl_c_is_a_cancel() -> None:
    """Unless something had failed before."""
    crash = Crash("KeyboardInterrupt", "", (), line(50), line(48))
    exit_ = ProcessExit("torchelastic", line(9), exit_code=1)

    assert ended(crashes=(crash,)) == "cancelled"
    assert ended(crashes=(crash,), exits=(exit_,)) == "failed"


def test_records_are_masked_in_all_they_say() -> None:
    """The citation, the steps, a node's reason and a gap's."""
    said = "sbatch --password hunter22"
    cite = RecordCite("sacct", "row 1, SubmitLine", said, said)
    step = Step("batch", said, "failed", "FAILED", cite)
    whole = job(submit_line=said, steps=(step,))

    assert "hunter22" not in repr(masked(whole))
    assert "hunter22" not in repr(masked(NodeEvent("n1", ("DOWN",), said, cite)))
    assert "hunter22" not in repr(masked(Gap("x", said)))
    assert masked(job()) == job()
