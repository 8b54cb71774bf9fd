"""`sacct --json` in the dialects of Slurm 22.05 to 25.11."""

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
from flatline.model import Job
from flatline.parsers import sacct_json
from flatline.parsers.sacct_json import parse, recognise, resolve

RECORDED = Path(__file__).parents[1] / "fixtures/slurm/sacct-22.05.json"


def some(number: float) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": number}


NONE = {"set": False, "infinite": False, "number": 0}
OLD_EXIT = {"status": "SUCCESS", "return_code": 0}
TIMES = {"start": 1795189877, "end": 1795189880, "submission": 1795189870, "elapsed": 3}


def new_exit(code: int | None = None, signal: int | None = None) -> dict[str, Any]:
    status = "SIGNALED" if signal else "ERROR" if code else "SUCCESS"
    return {
        "status": [status],
        "return_code": NONE if code is None else some(code),
        "signal": {"id": NONE if signal is None else some(signal), "name": ""},
    }


def job_2302(**changed: Any) -> dict[str, Any]:
    """A failed job as Slurm 23.02 (data_parser v0.0.39) writes it."""
    return {
        "job_id": 700,
        "name": "train",
        "nodes": "gpu[07-08]",
        "allocation_nodes": 2,
        "state": {"current": "FAILED", "reason": "NonZeroExitCode"},
        "exit_code": OLD_EXIT,
        "derived_exit_code": {
            "status": "SIGNALED",
            "signal": {"signal_id": 9, "name": "Killed"},
        },
        "array": {"job_id": 0, "task_id": NONE, "task": ""},
        "het": {"job_id": 0, "job_offset": NONE},
        "time": TIMES | {"limit": some(60)},
        "failed_node": "",
        "submit_line": "sbatch -o out/%j.log train.sh",
        "kill_request_user": "",
        "tres": {"allocated": [{"type": "gres", "name": "gpu", "id": 1001, "count": 16}]},
        "steps": [
            {
                "state": "FAILED",
                "exit_code": OLD_EXIT,
                "step": {"id": {"job_id": 700, "step_id": "batch"}, "name": "batch"},
                "time": TIMES,
                "nodes": {"count": 1, "range": "gpu07", "list": ["gpu07"]},
                "tasks": {"count": 1},
            }
        ],
    } | changed


def job_2311(**changed: Any) -> dict[str, Any]:
    """The same as Slurm 23.11 to 24.11 (v0.0.40, v0.0.41) write it."""
    step = {
        "state": ["FAILED"],
        "exit_code": new_exit(7),
        "step": {"id": "700.batch", "name": "batch"},
        "time": {"start": some(1795189877), "end": some(1795189880)},
        "nodes": {"count": 1, "range": "gpu07", "list": ["gpu07"]},
        "tasks": {"count": 1},
    }
    srun = step | {"exit_code": new_exit(signal=9), "step": {"id": "700.0", "name": "bash"}}
    return (
        job_2302()
        | {
            "state": {"current": ["FAILED"], "reason": "NonZeroExitCode"},
            "exit_code": new_exit(143),
            "derived_exit_code": new_exit(signal=9),
            "steps": [step, srun],
        }
        | changed
    )


def job_2505(**changed: Any) -> dict[str, Any]:
    """The same as Slurm 25.05 (v0.0.43) writes it: output paths, restarts, step ids in parts."""
    job = job_2311()
    for step, number in zip(job["steps"], (0xFFFFFFFB, 0), strict=True):
        step["step"] = {"id": {"job_id": 700, "step_id": some(number)}, "name": "x"}
    extra = {
        "restart_cnt": 2,
        "stdout": "out/%j.log",
        "stdout_expanded": "/home/u/out/700.log",
        "stderr_expanded": "",
        "working_directory": "/home/u",
    }
    return job | extra | changed


def one(job: dict[str, Any], **envelope: Any) -> Job:
    return parse(json.dumps({"jobs": [job]} | envelope).encode(), "sacct.json").jobs[0]


def test_the_old_dialects_do_not_know_exit_codes() -> None:
    """Slurm 22.05 and 23.02 print 0 for every exit: a failed job's code is not known, never 0."""
    job = one(job_2302())
    assert (job.disposition, job.exit_code, job.signal) == ("failed", None, None)
    assert job.steps[0].exit_code is None
    assert one(job_2302(state={"current": "COMPLETED"})).exit_code == 0


@pytest.mark.parametrize("make", [job_2302, job_2311, job_2505])
def test_what_all_dialects_say_alike(make: Any) -> None:
    """Times, nodes, limit, GPUs and the signal of a step's end are the same in every dialect."""
    job = one(make())
    assert job.nodes == ("gpu07", "gpu08")
    assert job.started_at == datetime(2026, 11, 20, 15, 51, 17, tzinfo=UTC)
    assert (job.limit_s, job.gpus, job.derived_signal) == (3600.0, 16, 9)
    assert (job.state, job.reason, job.failed_node) == ("FAILED", "NonZeroExitCode", None)
    assert job.steps[0].id == "batch"


def test_the_newer_dialects_give_true_codes() -> None:
    """143 is an exit code that reports signal 15; a step's own signal stands without a code."""
    job = one(job_2311())
    assert (job.exit_code, job.signal) == (143, 15)
    assert [(s.id, s.exit_code, s.signal) for s in job.steps] == [
        ("batch", 7, None),
        ("0", None, 9),
    ]


def test_step_ids_in_parts_and_expanded_paths() -> None:
    """Slurm 25.05 numbers the batch step 0xfffffffb and says where the output went."""
    job = one(job_2505())
    assert [step.id for step in job.steps] == ["batch", "0"]
    assert (job.std_out, job.std_err, job.restarts) == ("/home/u/out/700.log", None, 2)


def test_array_tasks_and_parts_of_heterogeneous_jobs_are_named_as_sacct_does() -> None:
    """The id is `16_2`, `20+0` or `16_[3-9%2]`, as in sacct's tables."""
    task = one(job_2302(array={"job_id": 16, "task_id": some(2)}))
    part = one(job_2302(het={"job_id": 20, "job_offset": some(0)}))
    waiting = one(job_2302(array={"job_id": 16, "task_id": NONE, "task": "3-9%2"}))
    assert [job.id for job in (task, part, waiting)] == ["16_2", "20+0", "16_[3-9%2]"]


def test_out_of_memory_is_no_signal_125() -> None:
    """The mark is left out of `signal` and kept in `derived_signal`, alone evidence of a step."""
    oom = {"current": ["OUT_OF_MEMORY"], "reason": "None"}
    job = one(
        job_2311(state=oom, exit_code=new_exit(signal=125), derived_exit_code=new_exit(signal=125))
    )
    assert (job.disposition, job.exit_code, job.signal) == ("out_of_memory", None, None)
    assert job.derived_signal == 125


def test_a_running_job_vouches_for_now_and_has_no_end() -> None:
    """Start and elapsed time give the instant of the query."""
    times = {"start": 1795189877, "end": 0, "submission": 1795189870, "elapsed": 600}
    row = job_2311(state={"current": ["RUNNING"]}, time=times, steps=[])
    records = parse(json.dumps({"jobs": [row]}).encode(), "s")
    assert records.now == datetime(2026, 11, 20, 16, 1, 17, tzinfo=UTC)
    assert records.jobs[0].ended_at is None


def test_flags_do_not_hide_the_base_state() -> None:
    """FAILED with COMPLETING is failed, and the state keeps both words."""
    job = one(job_2311(state={"current": ["COMPLETING", "FAILED"]}))
    assert (job.disposition, job.state) == ("failed", "COMPLETING+FAILED")


def test_typed_gpus_and_unset_numbers() -> None:
    """Typed counts add up where no plain one stands; NO_VAL is no number."""
    rows = [{"type": "gres", "name": f"gpu:{kind}", "count": 4} for kind in ("a100", "h100")]
    job = one(job_2311(tres={"allocated": rows}, allocation_nodes=0xFFFFFFFE))
    assert (job.gpus, job.node_count) == (8, None)


def test_a_requeued_job_stands_oldest_first() -> None:
    """The rows of one job come together, ordered by their start."""
    late = job_2311(time=TIMES | {"start": 1795190000, "end": 1795190100})
    early = job_2311(state={"current": ["REQUEUED"]})
    data = json.dumps({"jobs": [late, job_2311(job_id=5), early]}).encode()
    jobs = parse(data, "s").jobs
    assert [(job.id, job.disposition) for job in jobs] == [
        ("700", "requeued"),
        ("700", "failed"),
        ("5", "failed"),
    ]


def test_recorded_jobs_are_what_was_done() -> None:
    """The recorded run: a requeue, an OOM kill seen only in a step, an array task."""
    jobs = parse(RECORDED.read_bytes(), "sacct.json").jobs
    by_id = {job.id: job for job in jobs}
    assert [job.disposition for job in jobs if job.id == "10"] == ["requeued", "cancelled"]
    assert (by_id["11"].disposition, by_id["11"].derived_signal) == ("failed", 125)
    assert by_id["11"].steps[1].disposition == "out_of_memory"
    assert (by_id["4"].gpus, by_id["9"].steps[1].signal) == (32, 15)
    assert by_id["16_2"].disposition == "failed"


def test_every_citation_resolves_again() -> None:
    """The pointer of each job's and step's citation leads back to the cited value."""
    newer = json.dumps({"jobs": [job_2505(), job_2302(state={"current": None})]}).encode()
    for data in (RECORDED.read_bytes(), newer):
        for job in parse(data, "s").jobs:
            for cite in (job.cite, *(step.cite for step in job.steps)):
                assert resolve(data, cite.pointer) == cite.value
                assert cite.text.startswith("JobID=")


def test_recognised_by_content() -> None:
    """The head of every dialect is told from the controller's JSON and from other JSON."""
    assert recognise("x", RECORDED.read_bytes()[:2000])
    assert recognise("x", json.dumps({"jobs": [job_2311()]}).encode()[:1000])
    assert not recognise("sacct.json", b'{"jobs": [{"account": "a", "accrue_time": 0}]}')
    assert not recognise("sacct.json", b'{"meta": {"plugin": {"type": "openapi/dbv0.0.38"}}}')


def test_names_that_are_not_utf8_and_infinities_are_read() -> None:
    """A job name may hold any bytes; Slurm prints Infinity, which JSON does not know."""
    data = json.dumps({"jobs": [job_2311(name="NAME")], "x": float("inf")}).encode()
    job = parse(data.replace(b"NAME", b"\xff\xfeok"), "s").jobs[0]
    assert job.name is not None
    assert job.name.endswith("ok")


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"null", b"{}", b'{"jobs": 3}', b"[" * 100_000, b'{"jobs": [{"job_state": 1}]}'],
)
def test_other_json_is_refused(data: bytes) -> None:
    """What has no accounting rows is a FormatError, however deep or empty."""
    with pytest.raises(FormatError):
        parse(data, "s")


ODD = [
    None, True, -1, 10**30, 1e308, 0xFFFFFFFE, "", "n[1-2", "[]", [], [1, None], ["A", 2], {},
    {"set": True}, {"set": True, "infinite": True, "number": 1}, {"number": "x"}, [{}], [[]],
    {"id": {"set": True, "number": 4294967291}}, {"current": 5}, {"current": ["X"]},
]  # fmt: skip


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(list(job_2505())), st.sampled_from(ODD), max_size=4))
def test_odd_values_anywhere_never_raise(changed: dict[str, Any]) -> None:
    """Whatever stands in a row's fields, parsing answers, and its citations resolve."""
    step = {key: changed.get(key, value) for key, value in job_2505()["steps"][0].items()}
    data = json.dumps({"jobs": [job_2505() | {"steps": [step]} | changed]}).encode()
    for job in parse(data, "s").jobs:
        assert resolve(data, job.cite.pointer) == job.cite.value


@given(st.binary(max_size=200))
def test_arbitrary_bytes_raise_only_format_error(data: bytes) -> None:
    """No bytes raise anything but FormatError."""
    assert sacct_json.recognise("x", data) in (True, False)
    for read in (lambda: parse(data, "s"), lambda: resolve(data, "/jobs/0")):
        with suppress(FormatError):
            read()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"time": {"start": "yesterday"}}, "time/start of 1 row"),
        ({"time": {"start": -5}}, "time/start of 1 row"),
        ({"exit_code": [1]}, "exit_code of 1 row"),
        ({"state": {"current": ["BANANA"]}}, "state/current of 1 row"),
        ({"nodes": {"a": 1}}, "nodes of 1 row"),
        ({"steps": 7}, "steps of 1 row"),
        ({"job_id": None}, "1 row names no job"),
    ],
)
def test_fields_that_hold_nonsense_are_gaps(changed: dict[str, Any], said: str) -> None:
    """They are passed over, and that is said."""
    data = json.dumps({"meta": {}, "jobs": [job_2311(**changed)]}).encode()
    (gap,) = sacct_json.parse(data, "sacct.json").gaps

    assert gap.reason.startswith(said)


@pytest.mark.parametrize("make", [job_2302, job_2311, job_2505])
def test_no_dialect_is_nonsense(make: Any) -> None:
    """Unset and infinite numbers, words and lists of words are what Slurm prints."""
    assert sacct_json.parse(json.dumps({"jobs": [make()]}).encode(), "sacct.json").gaps == ()
