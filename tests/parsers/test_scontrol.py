"""`scontrol show job` and `show node` as text."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flatline.errors import FormatError
from flatline.parsers.scontrol import parse, recognise, resolve

FIXTURES = Path(__file__).parents[1] / "fixtures/slurm"
FINAL = (FIXTURES / "job.final.txt").read_bytes()
NODES = (FIXTURES / "node.drain.txt").read_bytes()
DOWN = (FIXTURES / "node.down.txt").read_bytes()

ONE_LINE = (
    "JobId=7 JobName=my run JobState=COMPLETED UserId=u(1000) JobState=FAILED "
    "Reason=NonZeroExitCode Dependency=(null) Requeue=1 Restarts=3 ExitCode=137:0 "
    "TimeLimit=1-00:00:00 "
    "StartTime=2026-11-20T10:00:00 EndTime=2026-11-20T11:00:00 NodeList=n[1-2] NumNodes=2 "
    "AllocTRES=cpu=4,gres/gpu=8 Command=/home/u/my script.sh --lr 3 WorkDir=/home/u "
    "Comment=a = b StdErr=/home/u/my log.err StdOut=/home/u/my log.out\n"
)


def test_recorded_jobs() -> None:
    """True exit codes (143, not 15), the array task's name, limits, paths."""
    jobs = {job.id: job for job in parse(FINAL, "job.txt").jobs}
    assert (jobs["9"].exit_code, jobs["9"].signal) == (143, 15)
    assert (jobs["6"].exit_code, jobs["6"].reason) == (7, "NonZeroExitCode")
    assert (jobs["16_2"].disposition, jobs["16_2"].exit_code) == ("failed", 1)
    assert (jobs["6"].nodes, jobs["6"].tasks) == (("n1", "n2", "n3", "n4"), 4)
    assert jobs["6"].std_out == "/home/usr/slurm/joblogs/fail-6.out"
    assert jobs["11"].ended_at == datetime(2026, 11, 20, 15, 54, 4, tzinfo=UTC)


def test_plans_are_no_facts() -> None:
    """A pending job has not started, a completing one has an end that is only a plan."""
    (waiting,) = parse((FIXTURES / "job.23.afterfail.txt").read_bytes(), "s").jobs
    assert (waiting.disposition, waiting.started_at, waiting.exit_code) == ("pending", None, None)
    assert (waiting.restarts, waiting.limit_s) == (1, None)
    records = parse((FIXTURES / "job.completing.txt").read_bytes(), "s")
    assert (records.jobs[0].disposition, records.jobs[0].ended_at) == ("unknown", None)
    assert records.now == datetime(2026, 11, 20, 16, 28, 49, tzinfo=UTC)


def test_one_line_records_with_spaces_in_values() -> None:
    """`-o`: values with spaces reach to the next key; what stands twice is left out."""
    (job,) = parse(ONE_LINE.encode(), "s").jobs
    assert (job.id, job.std_out, job.work_dir) == ("7", "/home/u/my log.out", "/home/u")
    assert (job.exit_code, job.signal, job.gpus, job.restarts) == (137, 9, 8, 3)
    assert (job.limit_s, job.nodes) == (86400.0, ("n1", "n2"))
    assert (job.state, job.disposition) == ("", "unknown")


def test_a_job_name_cannot_set_the_state() -> None:
    """In the usual form a name reaches to the end of its line."""
    text = (
        b"JobId=7 JobName=x JobState=COMPLETED\n   JobState=FAILED Reason=None\n   ExitCode=1:0\n"
    )
    (job,) = parse(text, "s").jobs
    assert (job.name, job.disposition) == ("x JobState=COMPLETED", "failed")


def test_recorded_nodes() -> None:
    """State, reason, who drained when, and when the system booted."""
    events = parse(NODES, "node.txt").node_events
    drained = [event for event in events if "DRAIN" in event.states]
    assert [(event.host, event.states, event.reason) for event in drained] == [
        ("n4", ("IDLE", "DRAIN"), "ECC errors")
    ]
    assert drained[0].at == datetime(2026, 11, 20, 15, 56, 34, tzinfo=UTC)
    assert {event.host for event in events if event.states == ("BOOTED",)} == {
        "n1",
        "n2",
        "n3",
        "n4",
    }


def test_marks_on_a_state_are_spelled_out() -> None:
    """`DOWN*+DRAIN` is down, not responding and drained; addresses name nodes where unique."""
    records = parse(DOWN.replace(b"DOWN+NOT_RESPONDING", b"DOWN*+DRAIN"), "s")
    assert records.node_events[0].states == ("DOWN", "NOT_RESPONDING", "DRAIN")
    assert records.addresses == {"10.88.0.3": "gpu03"}
    assert parse(NODES, "s").addresses == {}


def test_reasons_with_brackets_and_without_a_setter() -> None:
    """Only a trailing `[who@when]` is cut from a reason."""
    text = (
        b"NodeName=n1 Arch=x86_64\n   State=DOWN\n"
        b"   Reason=gpu[3] lost [x] [root@2026-01-02T03:04:05]\n"
    )
    (event,) = parse(text, "s").node_events
    assert (event.reason, event.at) == (
        "gpu[3] lost [x]",
        datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    )
    (bare,) = parse(text.replace(b" [root@2026-01-02T03:04:05]", b""), "s").node_events
    assert (bare.reason, bare.at) == ("gpu[3] lost [x]", None)


def test_no_value_is_no_signal() -> None:
    """A job that never ran shows 0:126, Slurm's NO_VAL taken for a wait status."""
    text = b"JobId=1 JobName=x\n   JobState=CANCELLED Reason=Priority\n   ExitCode=0:126\n"
    (job,) = parse(text, "s").jobs
    assert (job.exit_code, job.signal) == (None, None)


def test_every_citation_resolves_again() -> None:
    """`record 3, JobState` leads back to the value."""
    for data in (FINAL, NODES, DOWN, ONE_LINE.encode(), FINAL + NODES):
        records = parse(data, "s")
        for cite in [j.cite for j in records.jobs] + [e.cite for e in records.node_events]:
            assert resolve(data, cite.pointer) == cite.value


def test_recognised_by_content() -> None:
    """Records of jobs and nodes are; partitions, configuration and other text are not."""
    assert all(recognise("x", data[:4000]) for data in (FINAL, NODES, DOWN, ONE_LINE.encode()))
    headed = b"JobId=7  JobName=x  nodes=n[1-4]  start: Wed May 13\nMASTER_PORT=29500\n"
    others = (b"PartitionName=p State=UP", b"JobId=5 done", b"step 5 JobId=3 JobName=x", b"\0")
    for text in (*others, headed):
        assert not recognise("job.txt", text)


@pytest.mark.parametrize(
    "data", [b"", b"slurm_load_jobs error: Invalid job id specified\n", b"\0\1"]
)
def test_other_text_is_refused(data: bytes) -> None:
    """An error message saved in place of a record is a FormatError."""
    with pytest.raises(FormatError):
        parse(data, "s")


@given(st.binary(max_size=100), st.sampled_from([b"", b"JobId=1 ", FINAL[:300], NODES[:300]]))
def test_arbitrary_bytes_raise_only_format_error(data: bytes, head: bytes) -> None:
    """No bytes raise anything but FormatError."""
    assert recognise("x", head + data) in (True, False)
    with suppress(FormatError):
        parse(head + data, "s")
    with suppress(FormatError):
        resolve(head + data, "record 1, JobState")


HELD = """JobId=140552 JobName=rm-train
   UserId=lea(2210) GroupId=ml(500)
   JobState=COMPLETED Reason=None Dependency=(null)
   NodeList=n[7-9] NumNodes=3
   JOB_GRES=gpu:h100:10
     Nodes=n[7-8] CPU_IDs=0-23 Mem=512000 GRES=gpu:h100:4(IDX:0-3)
     Nodes=n9 CPU_IDs=0-3,8-11 Mem=512000 GRES=gpu:h100:2(IDX:1,7)
   MinCPUsNode=1 MinMemoryNode=0 MinTmpDiskNode=0
"""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (HELD, {"n7": ("0", "1", "2", "3"), "n8": ("0", "1", "2", "3"), "n9": ("1", "7")}),
        (HELD.replace("(IDX:1,7)", "(IDX:N/A)"), {}),
        (HELD.replace("h100:2(IDX:1,7)", "h100_1g.10gb:2(IDX:8-9)"), {}),
        (HELD.replace("(IDX:0-3)", "").replace("(IDX:1,7)", ""), {}),
    ],
)
def test_the_gpus_that_a_job_held(text: str, wanted: object) -> None:
    """Where one node does not tell its own, none is known: half an answer would hide hosts."""
    (job,) = parse(text.encode(), "scontrol.txt").jobs

    assert dict(job.devices) == wanted


def test_no_node_holds_thousands_of_gpus() -> None:
    (job,) = parse(HELD.replace("0-3)", "0-9999)").encode(), "scontrol.txt").jobs

    assert len(dict(job.devices)["n7"]) <= 65
