"""The pods of a run as the record of one job."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from flatline.collect.merging import merge
from flatline.collect.pod_job import ASSIGNED, assigned, job_of, nodes_of_its_pods
from flatline.model import NOWHERE, Job, LogCite, Match, Pod, RecordCite, Records, Signature

BEGAN = datetime(2026, 1, 8, 4, 0, tzinfo=UTC)


def pod(name: str, status: str, **more: object) -> Pod:
    return replace(Pod(name, status, RecordCite("pods.txt", "line 1", status, name)), **more)  # type: ignore[arg-type]


def test_a_job_of_its_pods() -> None:
    """It failed where one of them did; it lasts from the first start to the last end."""
    job = job_of(
        [
            pod("bert-worker-0", "Completed", node="wk1", gpus=8, started_at=BEGAN,
                ended_at=BEGAN + timedelta(minutes=9)),
            pod("bert-worker-1", "OOMKilled", node="wk2", gpus=8, exit_code=137,
                started_at=BEGAN + timedelta(minutes=1), ended_at=BEGAN + timedelta(minutes=8)),
        ]
    )  # fmt: skip

    assert job is not None
    assert (job.id, job.disposition, job.state, job.exit_code) == (
        "bert", "out_of_memory", "OOMKilled", 137)  # fmt: skip
    assert (job.nodes, job.gpus, job.scheduler) == (("wk1", "wk2"), 16, "kubernetes")
    assert (job.started_at, job.ended_at) == (BEGAN, BEGAN + timedelta(minutes=9))


@pytest.mark.parametrize(
    "pods",
    [
        [],
        [pod("a-worker-0", "Running"), pod("b-worker-0", "Running")],
        [pod("a-worker-0", "Running"), pod("a-worker-1", "Pending")],
        [pod("a-worker-0", "Running"), pod("a-worker-1", "Error")],
        [pod("a-worker-0", "Running"), pod("a-worker-1", "Completed")],
        [pod("a-x7k2p", "Error", job="a"), pod("a-zz9qq", "Completed", job="a")],
        [pod("a-node-0-1-x7k2p", "Error"), pod("a-node-0-1-zz9qq", "Completed")],
        [pod("a-worker-0", "Error", job="one"), pod("a-worker-1", "Error", job="other")],
    ],
    ids=[
        "none",
        "two jobs",
        "one waits",
        "failed and running",
        "completed and running",
        "started anew",
        "one of several started anew",
        "two jobs by their labels",
    ],
)
def test_where_pods_tell_of_no_job(pods: list[Pod]) -> None:
    """Of several jobs, not all of them started, or of more than one try."""
    assert job_of(pods) is None


def test_of_a_pod_that_is_listed_and_described_the_description_counts() -> None:
    """It has the times, and the label of its job."""
    listed = pod("a-worker-0", "Error", node="wk1")
    described = pod("a-worker-0", "OOMKilled", job="a", started_at=BEGAN, gpus=4)

    for pods in ([listed, described], [described, listed]):
        job = job_of(pods)
        assert job is not None
        assert (job.id, job.state, job.gpus) == ("a", "OOMKilled", 4)


@pytest.mark.parametrize(
    ("names", "stem"),
    [
        (["llm-master-0", "llm-worker-0", "llm-worker-1"], "llm"),  # Kubeflow
        (["llm-workers-0-3-xk2p9", "llm-workers-0-4-aa2p9"], "llm"),  # JobSet
        (["ray-x-head-ab1cd", "ray-x-gpu-workers-worker-zz9qq"], "ray-x"),  # KubeRay
        (["sweep-7-0", "sweep-7-1"], "sweep"),
        (["llm-node-0-0-abcde", "llm-node-0-1-fghij"], "llm"),  # Kubeflow's TrainJob
    ],
)
def test_the_name_before_the_roles(names: list[str], stem: str) -> None:
    """As the operators name the pods of one job."""
    job = job_of([pod(name, "Running") for name in names])

    assert job is not None
    assert job.id == stem


def test_a_job_of_slurm_goes_first() -> None:
    """A site may run pods beside it."""
    of_slurm = Job(
        id="9",
        name="llm",
        disposition="failed",
        state="FAILED",
        cite=RecordCite("s", "row 1", "x", "x"),
    )

    merged = merge([Records(pods=(pod("a-worker-0", "Running"),)), Records(jobs=(of_slurm,))])

    assert [job.id for job in merged.jobs] == ["9"]
    assert [job.id for job in merge([Records(pods=(pod("a-worker-0", "Running"),))]).jobs] == ["a"]


def said(number: int, which: str = "x", **groups: str) -> Match:
    signature = Signature(which, "x", "marker", "", "", "", ("x",))
    return Match(signature, LogCite("events.txt", number, "", NOWHERE), groups)


def test_pods_and_the_nodes_they_were_given() -> None:
    """By their name and by that without what is drawn; one that was given two has none."""
    pods = {"llm-0-0-bbk2z": "wk1", "llm-0-1-qq9xz": "wk2", "ps-0": "wk3"}
    told = [said(n, ASSIGNED, pod=pod, node=node) for n, (pod, node) in enumerate(pods.items())]
    moved = said(9, ASSIGNED, pod="ps-0", node="wk4")

    assert assigned([*told, said(7, pod="other", node="wk9")]) == pods | {
        "llm-0-0": "wk1", "llm-0-1": "wk2"}  # fmt: skip
    assert "ps-0" not in assigned([*told, moved])
    anew = said(9, ASSIGNED, pod="llm-0-1-zz2bz", node="wk4")
    assert "llm-0-1" not in assigned([*told, anew])


@pytest.mark.parametrize(
    ("own", "world", "held"),
    [
        ("llm-worker-0", "32", ("wk0", "wk1", "wk2", "wk3")),
        ("llm-worker-0", "64", ()),  # more ranks than these nodes hold: some are not told of
        ("llm-worker-0", "30", ()),
        ("llm-worker-0", "", ()),
        ("job", "32", ()),  # a log of no pod
    ],
)
def test_the_nodes_of_all_pods_of_its_job(own: str, world: str, held: tuple[str, ...]) -> None:
    """Those of other jobs beside them are none of its own."""
    nodes = {f"llm-worker-{n}": f"wk{n}" for n in range(4)} | {"eval-worker-0": "wk9"}

    assert nodes_of_its_pods(nodes, [said(1, comm_size=world)], [own, "train"]) == held


@pytest.mark.parametrize(
    ("one", "disposition"),
    [
        (pod("sum-raycluster-x7k2p-worker-a-zz9qq", "Running", job="sum"), "unknown"),
        (pod("raycluster-x7-head-bb2qq", "Running", outlives=True), "unknown"),
        (pod("sum-raycluster-x7k2p-worker-a-zz9qq", "OOMKilled"), "out_of_memory"),
        (pod("ray-hgx-0", "Running"), "unknown"),
        (pod("chest-x-ray-worker-0", "Running"), "running"),
        (pod("sum-worker-0", "Running"), "running"),
    ],
    ids=[
        "of a RayJob",
        "of its kind",
        "that was killed",
        "called so",
        "of X-rays",
        "of another operator",
    ],
)
def test_a_ray_cluster_runs_on(one: Pod, disposition: str) -> None:
    """When what it was asked to do is over."""
    job = job_of([one])

    assert job is not None
    assert job.disposition == disposition
