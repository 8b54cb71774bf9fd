"""Pods by what kube-state-metrics exposes of them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from flatline.errors import FormatError
from flatline.model import Pod, Records
from flatline.parsers import kube_state_metrics

BEGAN = 1_760_000_000


def info(pod: str, node: str, at: int, kind: str = "PyTorchJob", of: str = "vla") -> str:
    return (
        f'kube_pod_info{{namespace="ml",pod="{pod}",host_ip="10.0.0.9",'
        f'pod_ip="10.1.0.{node[-1]}",node="{node}",created_by_kind="{kind}",'
        f'created_by_name="{of}"}} 1 {(BEGAN + at) * 1000}\n'
    )


def phase(pod: str, one: str, at: int, value: int = 1) -> str:
    return (
        f'kube_pod_status_phase{{namespace="ml",pod="{pod}",phase="{one}"}} {value}'
        f" {(BEGAN + at) * 1000}\n"
    )


def ended(pod: str, reason: str, at: int, metric: str = "terminated_reason") -> str:
    return (
        f'kube_pod_container_status_{metric}{{namespace="ml",pod="{pod}",container="main",'
        f'reason="{reason}"}} 1 {(BEGAN + at) * 1000}\n'
    )


def parsed(text: str) -> Records:
    return kube_state_metrics.parse(text.encode(), "ksm.prom")


def pod(text: str) -> Pod:
    (one,) = parsed(text).pods
    return one


RUNS = info("vla-worker-0", "n3", 0) + phase("vla-worker-0", "Running", 0)


def test_a_pod_that_runs() -> None:
    told = parsed(
        RUNS + phase("vla-worker-0", "Failed", 0, 0)
        + 'kube_pod_start_time{namespace="ml",pod="vla-worker-0"} 1.7600000e+09\n'
    )  # fmt: skip
    (one,) = told.pods

    assert (one.name, one.status, one.node, one.job) == ("vla-worker-0", "Running", "n3", "vla")
    assert one.started_at == told.now == datetime.fromtimestamp(BEGAN, UTC)
    assert told.addresses == {"vla-worker-0": "n3", "10.1.0.3": "n3"}


@pytest.mark.parametrize(
    ("more", "status"),
    [
        (phase("vla-worker-0", "Succeeded", 60), "Succeeded"),
        (phase("vla-worker-0", "Failed", 60), "Failed"),
        (
            phase("vla-worker-0", "Failed", 60) + ended("vla-worker-0", "OOMKilled", 60),
            "OOMKilled",
        ),
        (
            phase("vla-worker-0", "Running", 60)
            + ended("vla-worker-0", "CrashLoopBackOff", 60, "waiting_reason"),
            "CrashLoopBackOff",
        ),
        (
            phase("vla-worker-0", "Running", 60)
            + ended("vla-worker-0", "Completed", 60)
            + ended("vla-worker-0", "Error", 60),
            "Error",
        ),
        (phase("vla-worker-0", "Running", 60) + ended("vla-worker-0", "Completed", 60), "Running"),
        (
            ended("vla-worker-0", "CrashLoopBackOff", 0, "waiting_reason")
            + phase("vla-worker-0", "Running", 60),
            "Running",
        ),
        (ended("vla-worker-0", "OOMKilled", 60, "last_terminated_reason"), "Running"),
        (phase("vla-worker-1", "Failed", 60), "Running"),
    ],
    ids=[
        "done",
        "failed",
        "with its reason",
        "crashes again and again",
        "one container failed",
        "a helper is done",
        "crashed before",
        "restarted",
        "another pod's",
    ],
)
def test_the_last_word_on_it(more: str, status: str) -> None:
    assert pod(RUNS + info("vla-worker-0", "n3", 60) + more).status == status


def test_a_pod_of_no_phase_has_a_node_alone() -> None:
    told = parsed(info("vla-worker-0", "n3", 0))

    assert not told.pods
    assert told.addresses["vla-worker-0"] == "n3"


def test_one_that_was_deleted_is_gone() -> None:
    told = parsed(RUNS + info("vla-worker-1", "n4", 900) + phase("vla-worker-1", "Running", 900))

    assert [one.name for one in told.pods] == ["vla-worker-1"]


def test_what_a_replica_set_made_is_of_no_job() -> None:
    text = RUNS.replace("PyTorchJob", "ReplicaSet")
    assert pod(text).job is None


def test_what_it_cites_is_found_again() -> None:
    cite = pod(RUNS).cite

    assert kube_state_metrics.resolve(RUNS.encode(), cite.pointer) == cite.value == "1"
    with pytest.raises(FormatError):
        kube_state_metrics.resolve(RUNS.encode(), "line 99")


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("# HELP kube_pod_info Information about pod.\n" + RUNS, True),
        (RUNS + 'node_load1{instance="n3"} 3\n' + RUNS, False),
        ("see kube_pod_info in Grafana\n", False),
        ("", False),
    ],
)
def test_what_is_such_a_file(text: str, known: bool) -> None:
    """What other exporters say beside it makes it metrics like any."""
    assert kube_state_metrics.recognise("x.prom", text.encode()) is known


@pytest.mark.parametrize("text", ["", "kube_pod_info{", "kube_pod_info{pod=1} x\n", "\0"])
def test_bad_input_is_told(text: str) -> None:
    with pytest.raises(FormatError):
        parsed(text)


def ready(node: str, status: str, at: int) -> str:
    return "".join(
        f'kube_node_status_condition{{node="{node}",condition="Ready",status="{one}"}}'
        f" {int(one == status)} {(BEGAN + at) * 1000}\n"
        for one in ("true", "false", "unknown")
    )


def test_a_node_that_was_not_heard_of() -> None:
    """From the first sample that says so to the first that says otherwise."""
    told = parsed(
        "".join(
            ready("n3", "unknown" if 60 <= at < 180 else "true", at) for at in range(0, 300, 30)
        )
        + "".join(ready("n4", "false" if at > 200 else "true", at) for at in range(0, 300, 30))
        + "".join(ready("n5", "true", at) for at in range(0, 300, 30))
    )
    events = {event.host: event for event in told.node_events}

    assert set(events) == {"n3", "n4"}
    assert events["n3"].states == ("NOT_RESPONDING",)
    assert events["n3"].at == datetime.fromtimestamp(BEGAN + 60, UTC)
    assert events["n3"].until == datetime.fromtimestamp(BEGAN + 180, UTC)
    assert (events["n4"].states, events["n4"].until) == (("NOT_READY",), None)


def test_a_node_that_is_told_of_no_more() -> None:
    """Until where its samples end; one without times says what is, not since when."""
    gone = "".join(ready("n3", "unknown", at) for at in range(0, 300, 30))
    told = parsed(gone + ready("n4", "true", 4_000))
    (event,) = told.node_events
    assert event.until == datetime.fromtimestamp(BEGAN + 270, UTC)

    (now,) = parsed('kube_node_status_condition{node="n3",condition="Ready",status="unknown"} 1\n'
                    ).node_events  # fmt: skip
    assert (now.host, now.at, now.until) == ("n3", None, None)


@pytest.mark.parametrize(("kind", "outlives"), [("RayCluster", True), ("PyTorchJob", False)])
def test_what_keeps_its_pods(kind: str, outlives: bool) -> None:
    """A cluster is no job."""
    one = pod(info("vla-worker-0", "n3", 0, kind) + phase("vla-worker-0", "Running", 0))

    assert one.outlives == outlives
