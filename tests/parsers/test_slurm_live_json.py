"""The controller's JSON: squeue, sinfo, scontrol --json, slurmrestd."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flatline.errors import FormatError
from flatline.parsers.slurm_live_json import parse, recognise, resolve

FIXTURES = Path(__file__).parents[1] / "fixtures/slurm"
SQUEUE = (FIXTURES / "squeue-22.05.json").read_bytes()
SINFO = (FIXTURES / "sinfo-22.05.json").read_bytes()
GROUPS = {
    "sinfo": [
        {
            "node": {"state": ["DOWN", "NOT_RESPONDING"]},
            "nodes": {"nodes": ["gpu07", "gpu08"], "addresses": ["10.0.0.7", "10.0.0.8"]},
            "reason": {"description": "Not responding", "time": 1795190115, "user": "root"},
            "partition": {"name": name},
        }
        for name in ("train", "debug")
    ]
}


def some(number: float) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": number}


def job(**changed: Any) -> dict[str, Any]:
    """A failed job as squeue of Slurm 23.11 and later writes it."""
    return {
        "job_id": 700,
        "name": "train",
        "job_state": ["FAILED"],
        "state_reason": "NonZeroExitCode",
        "exit_code": {
            "status": ["ERROR"],
            "return_code": some(1),
            "signal": {"id": {"set": False, "infinite": False, "number": 0}, "name": ""},
        },
        "submit_time": some(1795189870),
        "start_time": some(1795189877),
        "end_time": some(1795189880),
        "time_limit": some(60),
        "node_count": some(2),
        "tasks": some(16),
        "nodes": "gpu[07-08]",
        "tres_alloc_str": "cpu=2,mem=128G,node=2,gres/gpu=16",
        "restart_cnt": 1,
        "standard_output": "/home/u/%j.out",
        "stdout_expanded": "/home/u/700.out",
        "current_working_directory": "/home/u",
        "failed_node": "",
    } | changed


def written(*jobs: dict[str, Any]) -> bytes:
    return json.dumps({"jobs": list(jobs), "last_update": some(1795189999)}).encode()


def test_recorded_jobs_have_wait_statuses() -> None:
    """In 22.05 a code is a wait(2) status: 1792 is 7, 36608 is 143, 256 is 1, 253 is the mark."""
    jobs = {job.id: job for job in parse(SQUEUE, "squeue.json").jobs}
    assert (jobs["6"].exit_code, jobs["6"].derived_exit_code) == (7, 3)
    assert (jobs["9"].exit_code, jobs["9"].signal, jobs["9"].derived_signal) == (143, 15, 15)
    assert (jobs["11"].exit_code, jobs["11"].derived_signal) == (1, 125)
    assert (jobs["16_2"].exit_code, jobs["23"].restarts) == (1, 1)
    assert (jobs["26"].exit_code, jobs["26"].signal) == (None, None)


def test_a_newer_job() -> None:
    """Wrapped numbers, a list of states, expanded paths, minutes as seconds."""
    records = parse(written(job()), "s")
    found = records.jobs[0]
    assert (found.disposition, found.exit_code, found.limit_s) == ("failed", 1, 3600.0)
    assert (found.gpus, found.tasks, found.node_count, found.restarts) == (16, 16, 2, 1)
    assert (found.std_out, found.reason) == ("/home/u/700.out", "NonZeroExitCode")
    assert records.now == datetime(2026, 11, 20, 15, 53, 19, tzinfo=UTC)


def test_plans_are_no_facts() -> None:
    """The end of a running job and the start of a pending one are estimates."""
    running = parse(written(job(job_state=["RUNNING"])), "s").jobs[0]
    assert (running.ended_at, running.exit_code) == (None, None)
    waiting = parse(written(job(job_state=["PENDING", "REQUEUED"])), "s").jobs[0]
    assert (waiting.disposition, waiting.started_at) == ("pending", None)


def test_names_of_array_tasks_and_heterogeneous_parts() -> None:
    """Ids are spelt as sacct spells them."""
    task = job(array_job_id=some(16), array_task_id=some(0))
    part = job(het_job_id=some(20), het_job_offset=some(1))
    waiting = job(array_job_id=some(16), array_task_string="3-9%2")
    assert [j.id for j in parse(written(task, part, waiting), "s").jobs] == [
        "16_0",
        "20+1",
        "16_[3-9%2]",
    ]


def test_recorded_nodes() -> None:
    """A drained node, its reason and since when; boot times; shared addresses name nobody."""
    records = parse(SINFO, "sinfo.json")
    (drained,) = [event for event in records.node_events if "DRAIN" in event.states]
    assert (drained.host, drained.states, drained.reason) == (
        "n4",
        ("IDLE", "DRAIN"),
        "ECC errors",
    )
    assert drained.at == datetime(2026, 11, 20, 15, 56, 34, tzinfo=UTC)
    assert records.addresses == {}


def test_groups_of_nodes() -> None:
    """Since 23.02 sinfo gives groups, one a partition: every node once, with its reason."""
    records = parse(json.dumps(GROUPS).encode(), "s")
    assert [(event.host, event.states) for event in records.node_events] == [
        ("gpu07", ("DOWN", "NOT_RESPONDING")),
        ("gpu08", ("DOWN", "NOT_RESPONDING")),
    ]
    assert records.node_events[0].reason == "Not responding"
    assert records.addresses == {}


def test_a_job_or_node_without_its_envelope() -> None:
    """One job or node saved alone is read; its pointers start at the root."""
    data = json.dumps(job()).encode()
    assert parse(data, "s").jobs[0].cite.pointer == "/job_state/0"
    node = {"name": "n1", "state": ["DOWN"], "slurmd_start_time": some(1), "address": "10.0.0.1"}
    records = parse(json.dumps(node).encode(), "s")
    assert (records.node_events[0].host, records.addresses) == ("n1", {"10.0.0.1": "n1"})


def test_every_citation_resolves_again() -> None:
    """The pointer of each citation leads back to the cited value."""
    odd = written(job(job_state=None), job(job_state="FAILED"), job())
    for data in (SQUEUE, SINFO, json.dumps(GROUPS).encode(), odd):
        records = parse(data, "s")
        for cite in [j.cite for j in records.jobs] + [e.cite for e in records.node_events]:
            assert resolve(data, cite.pointer) == cite.value


def test_recognised_by_content() -> None:
    """Jobs and nodes are; the accounting database's JSON, diagnostics and pings are not."""
    assert recognise("x", SQUEUE[:3000])
    assert recognise("x", SINFO[:3000])
    assert recognise("x", json.dumps(GROUPS | {"meta": {"command": ["sinfo"]}}).encode())
    for other in (
        (FIXTURES / "sacct-22.05.json").read_bytes()[:3000],
        b'{"statistics": {}}',
        b"[]",
    ):
        assert not recognise("squeue.json", other)


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[1]", b'{"jobs": [{"job_id": 3}]}', b'{"nodes": 5}']
)
def test_other_json_is_refused(data: bytes) -> None:
    """What has neither a job of the controller's nor a node is a FormatError."""
    with pytest.raises(FormatError):
        parse(data, "s")


def test_an_empty_queue_is_an_answer() -> None:
    """No job at all is what an idle cluster says, not a broken file."""
    assert parse(b'{"jobs": [], "last_update": 1795189999}', "s").jobs == ()


ODD = [
    None,
    True,
    -1,
    10**30,
    "",
    "n[1-2",
    [],
    [1],
    ["A", 2],
    {},
    {"number": "x"},
    [{}],
    0xFFFFFFFF,
]


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(list(job())), st.sampled_from(ODD), max_size=4))
def test_odd_values_anywhere_never_raise(changed: dict[str, Any]) -> None:
    """Whatever stands in a job's fields, parsing answers, and its citation resolves."""
    data = written(job(**changed))
    for found in parse(data, "s").jobs:
        assert resolve(data, found.cite.pointer) == found.cite.value


@given(st.binary(max_size=200))
def test_arbitrary_bytes_raise_only_format_error(data: bytes) -> None:
    """No bytes raise anything but FormatError."""
    assert recognise("x", data) in (True, False)
    with suppress(FormatError):
        parse(data, "s")


def test_the_gpus_of_each_node() -> None:
    """An entry for each node, in their order."""
    held = ["gpu:h100:4(IDX:0-3)", "gpu:h100:2(IDX:1,7)"]
    nodes = {"job_resources": {"nodes": "n[7-8]"}, "nodes": "n[7-8]"}
    (told,) = parse(written(job(**nodes, gres_detail=held)), "squeue.json").jobs
    (short,) = parse(written(job(**nodes, gres_detail=held[:1])), "squeue.json").jobs

    assert dict(told.devices) == {"n7": ("0", "1", "2", "3"), "n8": ("1", "7")}
    assert short.devices == ()
