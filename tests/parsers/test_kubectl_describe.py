"""`kubectl describe pod`: pods with their nodes, labels, times and how their containers ended."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from flatline.errors import FormatError
from flatline.parsers import kubectl_describe

FAILED = b"""\
$ kubectl -n ml describe pod -l job=bert
Name:             bert-worker-0
Namespace:        ml
Priority:         0
Node:             wk1/192.0.2.11
Start Time:       Thu, 25 Sep 2025 15:04:10 +0000
Labels:           app=bert
                  training.kubeflow.org/job-name=bert
Annotations:      <none>
Status:           Failed
IP:               10.244.3.17
IPs:
  IP:  10.244.3.17
Containers:
  proxy:
    State:          Terminated
      Reason:       Completed
      Exit Code:    0
  train:
    Image:          registry.example/train:1
    Port:           <none>
    State:          Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Started:      Thu, 25 Sep 2025 15:05:00 +0000
      Finished:     Thu, 25 Sep 2025 15:45:41 +0000
    Last State:     Terminated
      Reason:       Error
      Exit Code:    1
    Ready:          False
    Restart Count:  0
    Limits:
      memory:          500Gi
      nvidia.com/gpu:  8
    Requests:
      nvidia.com/gpu:  8
    Environment:
      NCCL_DEBUG:  INFO
Conditions:
  Type              Status
  PodScheduled      True
Events:             <none>
"""
WAITS = b"""\
Name:             bert-worker-1
Namespace:        ml
Node:             <none>
Labels:           <none>
Status:           Pending
IP:
Containers:
  train:
    Image:      registry.example/train:1
    Limits:
      nvidia.com/gpu:  8
Conditions:
  Type           Status
  PodScheduled   False
"""


def test_a_pod_by_the_container_that_has_its_gpus() -> None:
    """Its present state counts, not the one before."""
    (pod,) = kubectl_describe.parse(FAILED, "pods.txt").pods

    assert (pod.name, pod.node, pod.job, pod.gpus) == ("bert-worker-0", "wk1", "bert", 8)
    assert (pod.status, pod.exit_code) == ("OOMKilled", 137)
    assert pod.started_at == datetime(2025, 9, 25, 15, 5, tzinfo=UTC)
    assert pod.ended_at == datetime(2025, 9, 25, 15, 45, 41, tzinfo=UTC)
    assert kubectl_describe.resolve(FAILED, pod.cite.pointer) == "OOMKilled"


def test_several_pods_and_one_that_no_node_has() -> None:
    """By names and addresses only of those that have one."""
    records = kubectl_describe.parse(FAILED + b"\n\n" + WAITS, "pods.txt")

    assert [pod.status for pod in records.pods] == ["OOMKilled", "Pending"]
    assert records.pods[1].node is None
    assert records.pods[1].started_at is None
    assert records.addresses == {"bert-worker-0": "wk1", "10.244.3.17": "wk1"}


def test_a_running_one_has_its_phase() -> None:
    """`State: Running` says no more than the phase."""
    running = FAILED.replace(b"Terminated\n      Reason:       OOMKilled", b"Running").replace(
        b"Status:           Failed", b"Status:           Running"
    )

    (pod,) = kubectl_describe.parse(running, "pods.txt").pods

    assert pod.status == "Running"


@pytest.mark.parametrize(
    "text",
    [
        FAILED + b"2025-09-25T15:05:10Z step 10 loss 2.31\n",
        FAILED.replace(b"Containers:", b"Contents:"),
        b"step 1 loss 2.0\n" + FAILED,
        b"Name:               wk1\nRoles:              <none>\nConditions:\n",
        b"",
    ],
    ids=["a log below", "no containers", "a log above", "a node", "nothing"],
)
def test_what_is_no_description_of_a_pod_alone(text: bytes) -> None:
    """A log in which one is printed stays a log."""
    assert not kubectl_describe.recognise("pods.txt", text)
    with pytest.raises(FormatError):
        kubectl_describe.parse(text, "pods.txt")


@pytest.mark.parametrize("pointer", ["line 0", "line 999", "row 1", "line 19999999999"])
def test_a_pointer_at_nothing(pointer: str) -> None:
    """Of no line that has a value."""
    with pytest.raises(FormatError):
        kubectl_describe.resolve(FAILED, pointer)


def test_a_broken_date_is_none() -> None:
    """The pod is known all the same."""
    broken = FAILED.replace(b"25 Sep 2025 15:45:41", b"45 Sep 2025 15:45:41")

    (pod,) = kubectl_describe.parse(broken, "pods.txt").pods

    assert (pod.ended_at, pod.exit_code) == (None, 137)
