"""Signals: which came first, and which were only the cleaning up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from flatline.facts import LOG, Facts, FileRead
from flatline.judging.kills import Kills, kills
from flatline.model import (
    Attempt,
    Crash,
    Job,
    LogCite,
    Match,
    Place,
    ProcessExit,
    Progress,
    RecordCite,
    Signature,
    Step,
)
from flatline.tracks import Track

START = datetime(2026, 3, 1, 4, tzinfo=UTC)
RECORD = RecordCite("sacct", "row 1, State", "OUT_OF_MEMORY", "JobID=7")


def cite(line: int, rank: int | None = None, at_s: float | None = None) -> LogCite:
    at = None if at_s is None else START + timedelta(seconds=at_s)
    return LogCite("train.log", line, "text", Place(rank=rank), at)


def exited(
    line: int, signal: int, rank: int | None = None, reporter: str = "torchelastic", **more: Any
) -> ProcessExit:
    where = cite(line, rank)
    return ProcessExit(reporter, where, where.place, signal=signal, **more)


def said(line: int, *tags: str, role: Any = "root", **more: Any) -> Match:
    rank = more.pop("rank", None)
    signature = Signature("x.y", "x", role, "", "", "", ("x",), tags=tags, **more)
    return Match(signature, cite(line, rank), {})


def crash(line: int, rank: int, exception: str = "ValueError") -> Crash:
    return Crash(exception, "boom", (), cite(line, rank), cite(line - 3, rank), end_line=line)


def facts(disposition: Any = "failed", **more: Any) -> Facts:
    files = (FileRead("train.log", LOG, 100, 5_000),)
    return Facts(targets=("run",), files=files, attempts=(Attempt(0, disposition),), **more)


def first(**more: Any) -> Kills:
    found = kills(facts(**more))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("signal", "fault_class"),
    [(11, "segv"), (6, "abort"), (7, "bus"), (9, "kill-unknown"), (4, "segv")],
)
def test_the_signal_says_the_class(signal: int, fault_class: str) -> None:
    """With nothing that says why."""
    found = first(exits=(exited(50, signal, rank=2),))

    assert (found.fault_class, found.first.fatal) == (fault_class, True)
    assert found.places == (Place(rank=2),)


@pytest.mark.parametrize("signal", [15, 2, 1, None])
def test_a_polite_signal_kills_nobody(signal: Any) -> None:
    """SIGTERM, SIGINT and SIGHUP are asked for."""
    assert kills(facts(exits=(exited(50, signal),))) is None


@pytest.mark.parametrize("reporter", ["torchelastic-closed", "torchelastic-forced"])
def test_a_signal_the_launcher_sent_is_no_cause(reporter: str) -> None:
    """It ends the others once one rank has failed."""
    found = first(exits=(exited(50, 9, rank=1, reporter=reporter),))

    assert not found.first.fatal
    assert found.first.why_not == "the launcher itself sent it"


def test_the_first_kill_speaks_for_the_run() -> None:
    """And the launcher's own, though printed before, does not."""
    found = first(
        exits=(exited(40, 9, rank=0, reporter="torchelastic-closed"), exited(60, 9, rank=3),
               exited(70, 9, rank=1))
    )  # fmt: skip

    assert found.first.place.rank == 3


def test_a_kill_after_the_rank_raised_is_cleaning_up() -> None:
    """The traceback is the cause."""
    found = first(exits=(exited(60, 9, rank=3),), crashes=(crash(50, rank=3),))

    assert (found.first.fatal, found.first.why_not) == (False, "the rank had raised before")


def test_a_kill_after_another_rank_raised_is_cleaning_up() -> None:
    """While one before it is not."""
    late = first(exits=(exited(60, 9, rank=3),), crashes=(crash(50, rank=0),))
    early = first(exits=(exited(40, 9, rank=3),), crashes=(crash(50, rank=0),))

    assert (late.first.fatal, early.first.fatal) == (False, True)


@pytest.mark.parametrize("tag", ["time-limit", "node-failure", "preempted"])
def test_what_the_scheduler_ended_was_not_killed(tag: str) -> None:
    """It signals every task it ends."""
    found = first(exits=(exited(60, 9, rank=3),), matches=(said(50, tag, role="marker"),))

    assert (found.first.fatal, found.first.why_not) == (False, "the scheduler ended it")


def test_srun_cancels_the_step_after_a_task_has_died() -> None:
    """So a cancel printed after the kill does not excuse it; one before it does."""
    cancel = said(50, "cancelled", role="marker")

    assert first(exits=(exited(40, 9, rank=3),), matches=(cancel,)).first.fatal
    assert not first(exits=(exited(60, 9, rank=3),), matches=(cancel,)).first.fatal


def test_a_kill_that_training_went_on_after_is_not_fatal() -> None:
    """A helper died, or an elastic worker was replaced."""
    track = Track("train.log", Place(), None, "plain")
    for i in range(10):
        track.add(Progress("train", step=i, loss=1.0), 51 + i, None, 0)
    found = first(exits=(exited(50, 9),), tracks=(track,))

    assert (found.first.fatal, found.first.why_not) == (False, "training went on")


def test_the_kernels_word_makes_a_kill_out_of_memory() -> None:
    """A cgroup's limit is told from the host's memory."""
    host = said(55, "oom-kill", fault_class="host-oom", family="A2")
    group = said(55, "oom-kill", fault_class="cgroup-oom", family="A2")

    assert first(exits=(exited(50, 9),), matches=(host,)).fault_class == "host-oom"
    assert first(exits=(exited(50, 9),), matches=(group,)).fault_class == "cgroup-oom"


def test_a_segfault_beside_an_oom_kill_is_a_segfault() -> None:
    """Memory does not explain a signal of another kind."""
    oom = said(55, "oom-kill", fault_class="host-oom", family="A2")

    assert first(exits=(exited(50, 11),), matches=(oom,)).fault_class == "segv"


def test_a_step_the_scheduler_calls_out_of_memory_is_a_kill() -> None:
    """Without any line in a log; on a completed run it was not the end."""
    step = Step("0", "train", "out_of_memory", "OUT_OF_MEMORY", RECORD)
    job = Job("7", None, "out_of_memory", "OUT_OF_MEMORY", RECORD, steps=(step,))

    assert first(jobs=(job,)).fault_class == "cgroup-oom"
    assert first(jobs=(job,)).first.signal is None
    assert not first(disposition="completed", jobs=(job,)).first.fatal


def test_nothing_killed_is_none() -> None:
    """A plain exit code kills nobody."""
    assert kills(facts()) is None
    assert kills(facts(exits=(ProcessExit("srun", cite(5), exit_code=1),))) is None


def watchdog(line: int, rank: int) -> Match:
    signature = Signature("nccl-watchdog-terminated", "nccl", "wrapper", "", "", "", ("x",))
    return Match(signature, cite(line, rank), {})


def of_task(line: int, task: int, host: str | None = None) -> ProcessExit:
    where = LogCite("train.log", line, "Aborted (core dumped)", Place(host=host, task=task))
    return ProcessExit("srun", where, where.place, signal=6)


def test_an_abort_after_its_own_watchdogs_exception_is_its_echo() -> None:
    """The exception's cause ended the run; srun names the task of the rank's number."""
    found = first(exits=(of_task(60, 9, "n2"),), matches=(watchdog(50, 9),))

    assert (found.first.fatal, found.first.why_not) == (
        False, "its own watchdog had ended with an exception before"
    )  # fmt: skip


def test_an_abort_that_no_watchdog_of_its_own_foretold_stays_a_cause() -> None:
    """Another rank's may tell of this one's death, and one that is told later of an echo of it."""
    for match in (watchdog(50, 3), watchdog(70, 9)):
        assert first(exits=(of_task(60, 9, "n2"),), matches=(match,)).first.fatal


def test_a_line_read_as_an_exit_is_of_that_exits_task() -> None:
    """The shell's word in srun's line tells of no second process."""
    line = said(60, family="A2", fault_class="abort")
    found = first(exits=(of_task(60, 9),), matches=(watchdog(50, 9), line))

    assert not found.first.fatal
