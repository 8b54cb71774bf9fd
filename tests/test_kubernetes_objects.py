"""
Status files of Kubernetes that were left beside a log, as `kubectl get -o yaml` and `-o json`.

The objects are composed here in the shapes of kubectl: no cluster runs where these tests do.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.errors import FormatError
from flatline.model import Verdict
from flatline.parsers import kubernetes_objects

STEPS = "".join(
    f"2026-03-02 09:{i // 60:02d}:{i % 60:02d},000 step {i}/5000 loss {8 - i * 0.01:.3f}\n"
    for i in range(0, 600, 10)
)
DONE = STEPS.replace("/5000", "/590") + "2026-03-02 09:10:00,000 Training completed\n"
RUNS = {"running": {"startedAt": "2026-03-02T08:59:20Z"}}


def ended(code: int, reason: str = "Error", **more: Any) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason, **more}}


def pod(name: str = "llm-worker-3", **said: Any) -> dict[str, Any]:
    """One whose main container holds the GPUs; `beside` is another one's state."""
    main = {"lastState": said.get("last", {}), "name": "pytorch", "state": said.get("state", RUNS)}
    other = {"lastState": {}, "name": "log-shipper", "state": said.get("beside", RUNS)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"labels": {"app": "llm"}, "name": name},
        "spec": {
            "containers": [
                {
                    "args": said.get("args", ["--epochs", "10"]),
                    "name": "pytorch",
                    "resources": {"limits": {"memory": "64Gi", "nvidia.com/gpu": "8"}},
                },
                {"name": "log-shipper", "resources": {}},
            ],
            "nodeName": said.get("node", "pool-7"),
        },
        "status": {
            "conditions": said.get("conditions", []),
            "containerStatuses": [other, main] if said.get("state") != "none" else [],
            **said.get("status", {}),
            "phase": said.get("phase", "Running"),
            "podIP": "10.0.3.4",
        },
    }


def yaml(value: Any, indent: int = 0) -> str:
    """As kubectl prints it: lists as far in as their key."""
    pad, lines = " " * indent, []
    for key, one in value.items():
        if isinstance(one, dict) and one:
            lines.append(f"{pad}{key}:\n{yaml(one, indent + 2)}")
        elif isinstance(one, list) and one:
            lines.append(f"{pad}{key}:\n")
            for item in one:
                text = yaml(item, indent + 2) if isinstance(item, dict) else f"{pad}  {item}\n"
                lines.append(f"{pad}- {text[indent + 2 :]}")
        elif isinstance(one, str) and "\n" in one:
            inner = one.replace("\n", f"\n{pad}  ")
            lines.append(f"{pad}{key}: |\n{pad}  {inner}\n")
        else:
            quoted = isinstance(one, str) and (one.isdigit() or ": " in one)
            lines.append(f"{pad}{key}: '{one}'\n" if quoted else f"{pad}{key}: {one}\n")
    return "".join(lines)


def verdict(folder: Path, held: dict[str, Any], log: str = STEPS, form: str = "yaml") -> Verdict:
    text = yaml(held) if form == "yaml" else json.dumps(held, indent=4)
    (folder / f"pod.{form}").write_text(text)
    if log:
        (folder / "train.log").write_text(log)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("form", ["yaml", "json", "yml", "txt"])
@pytest.mark.parametrize(
    ("state", "code", "fault_class"),
    [
        (ended(137, "OOMKilled"), "A2", "cgroup-oom"),
        (ended(137), "A2", "kill-unknown"),
        (ended(139), "A2", "segv"),
        (ended(134), "A2", "abort"),
        (ended(0, "Error", signal=9), "A2", "kill-unknown"),
    ],
)
def test_how_a_container_ended(
    tmp_path: Path, form: str, state: dict[str, Any], code: str, fault_class: str
) -> None:
    """By the reason, the exit code or the signal of its state, on the node of its pod."""
    told = verdict(tmp_path, pod(state=state, phase="Failed"), form="json" if form == "json"
                   else "yaml")  # fmt: skip
    if form not in ("yaml", "json"):
        (tmp_path / "pod.yaml").rename(tmp_path / f"status.{form}")
        told = diagnose(collect(Request((str(tmp_path),))))

    assert (told.code, told.fault_class) == (code, fault_class)
    assert [place.host for place in told.culprits] == ["pool-7"]
    assert (told.confidence >= 0.8) is (fault_class != "kill-unknown" and fault_class != "abort")


@pytest.mark.parametrize(
    "said",
    [
        {"state": ended(1), "phase": "Failed"},
        {"state": ended(0, "Completed"), "phase": "Succeeded"},
        {"last": ended(137, "OOMKilled")},
        {"beside": ended(137, "OOMKilled")},
        {"args": ["echo", "reason: OOMKilled", "torch.OutOfMemoryError: CUDA out of memory"]},
        {"state": ended(143), "phase": "Failed"},
    ],
    ids=["failed", "completed", "the one before", "one without a GPU", "its arguments", "stopped"],
)
@pytest.mark.parametrize("form", ["yaml", "json"])
def test_what_says_no_cause(tmp_path: Path, said: dict[str, Any], form: str) -> None:
    """An error of the program's own, a state of long ago, and what only the manifest quotes."""
    told = verdict(tmp_path, pod(**said), form=form)

    assert told.code in (None, "G1")  # a pod that runs is a run that goes on


def test_the_container_before_was_killed_and_this_one_waits(tmp_path: Path) -> None:
    """It has not run since."""
    waits = {"waiting": {"reason": "CrashLoopBackOff"}}

    assert verdict(tmp_path, pod(state=waits, last=ended(137, "OOMKilled"))).code == "A2"


def test_an_exception_goes_before_the_exit_code_of_its_container(tmp_path: Path) -> None:
    """A rank that had raised is killed with the rest."""
    log = STEPS + (
        "Traceback (most recent call last):\n"
        '  File "/app/train.py", line 9, in <module>\n'
        "    train()\n"
        "ZeroDivisionError: division by zero\n"
    )

    assert verdict(tmp_path, pod(state=ended(137), phase="Failed"), log).code == "A3"


def test_a_container_that_was_killed_after_its_run_had_ended(tmp_path: Path) -> None:
    """Whatever it still did, training lost nothing by it: that is at most in doubt."""
    told = verdict(tmp_path, pod(state=ended(137), phase="Failed"), DONE)

    assert told.code == "G1" or told.confidence < 0.8


LOW = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 41Mi."


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ({"message": LOW, "reason": "Evicted"}, "A2"),
        ({"message": 'Usage of EmptyDir volume "cache" exceeds the limit "50Gi".',
          "reason": "Evicted"}, "C6"),
        ({"reason": "Evicted"}, "F2"),
        ({"reason": "NodeLost"}, "F1"),
        ({"message": "Pod was terminated in response to imminent node shutdown.",
          "reason": "Terminated"}, "F2"),
        ({"message": "Preempted in order to admit critical pod", "reason": "Preempting"}, "F2"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["yaml", "json"])
def test_a_pod_that_was_taken_off_its_node(
    tmp_path: Path, status: dict[str, str], code: str, form: str
) -> None:
    """By its own reason, and the message beside it."""
    told = verdict(tmp_path, pod(state="none", status=status, phase="Failed"), form=form)

    assert told.code == code


@pytest.mark.parametrize(
    ("kind", "true", "code"),
    [
        ("PreemptionByScheduler", "True", "F2"),
        ("PreemptionByScheduler", "False", None),
        ("DeletionByPodGC", "True", "F1"),
        ("DeletionByTaintManager", "True", "F1"),
    ],
)
def test_a_disruption_counts_where_its_condition_holds(
    tmp_path: Path, kind: str, true: str, code: str | None
) -> None:
    conditions = [
        {"lastProbeTime": None, "reason": kind, "status": true, "type": "DisruptionTarget"}
    ]

    assert verdict(tmp_path, pod(conditions=conditions, phase="Failed")).code == code


WAITING = ("ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError", "RunContainerError")


@pytest.mark.parametrize("reason", [*WAITING, "ContainerCreating", "PodInitializing"])
def test_a_container_that_waits(tmp_path: Path, reason: str) -> None:
    """For what does not come; or only for its turn."""
    held = pod(state={"waiting": {"reason": reason}}, phase="Pending")
    told = verdict(tmp_path, held, "")

    assert told.code == ("F4" if reason in WAITING else None)


NOWHERE = "0/8 nodes are available: 8 Insufficient nvidia.com/gpu."


def test_a_pod_that_no_node_could_take(tmp_path: Path) -> None:
    """The condition is false that it was placed; one that runs was placed in the end."""
    unplaced = [{"message": NOWHERE, "reason": "Unschedulable", "status": "False",
                 "type": "PodScheduled"}]  # fmt: skip

    told = verdict(tmp_path, pod(state="none", conditions=unplaced, phase="Pending"), "")
    assert told.code == "F4"
    assert verdict(tmp_path, pod(conditions=unplaced), "loading\n").state == "undetermined"


def listed(*held: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "items": list(held), "kind": "List"}


def event(name: str, message: str, reason: str, kind: str = "Pod") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "involvedObject": {"kind": kind, "name": name},
        "kind": "Event",
        "message": message,
        "metadata": {"name": f"{name}.17a"},
        "reason": reason,
    }


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_events_and_pods_of_others_are_told_of_with_doubt(tmp_path: Path, form: str) -> None:
    """Lists hold a whole namespace; what a log is named after is the run's."""
    of_events = listed(event("jupyter-anna", LOW, "Evicted"), event("x-0", "Started", "Started"))
    of_pods = listed(pod("jupyter-anna", state=ended(137, "OOMKilled")), pod("x-0"))
    for held in (of_events, of_pods):
        told = verdict(tmp_path, held, form=form)
        assert (told.code, told.confidence < 0.8) == ("A2", True)
        assert any("jupyter-anna" in open_ for open_ in told.cannot_decide)

    (tmp_path / "jupyter-anna.log").write_text(STEPS)
    assert verdict(tmp_path, of_events, form=form).confidence >= 0.8
    killed = verdict(tmp_path, of_pods, form=form)
    assert killed.confidence >= 0.8
    assert [place.host for place in killed.culprits] == ["pool-7"]


def condition(kind: str, true: str, message: str, reason: str) -> dict[str, str]:
    return {"message": message, "reason": reason, "status": true, "type": kind}


@pytest.mark.parametrize(
    ("conditions", "code"),
    [
        ([condition("Failed", "True", "Job was active longer than specified deadline",
                    "DeadlineExceeded")], "F3"),
        ([condition("Failed", "True", "PyTorchJob llm is failed because 1 Worker replica(s)"
                    " failed.", "PyTorchJobFailed")], None),
        ([condition("Failed", "False", "3/16 workers are evicted", "MPIJobEvicted")], None),
        ([condition("Failed", "True", "3/16 workers are evicted", "MPIJobEvicted")], "F2"),
    ],
)  # fmt: skip
def test_the_status_of_a_job(
    tmp_path: Path, conditions: list[dict[str, str]], code: str | None
) -> None:
    """A condition counts while it holds, and says seldom why."""
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "llm"},
        "spec": {"runPolicy": {"backoffLimit": 3}},
        "status": {"conditions": conditions, "replicaStatuses": {"Worker": {"failed": 1}}},
    }

    assert verdict(tmp_path, job).code == code


def test_the_last_words_that_a_container_left(tmp_path: Path) -> None:
    """`terminationMessagePolicy: FallbackToLogsOnError` keeps the end of its log."""
    message = (
        "Traceback (most recent call last):\n"
        '  File "/app/train.py", line 9, in <module>\n'
        "    import transformers\n"
        "ModuleNotFoundError: No module named 'transformers'"
    )
    told = verdict(tmp_path, pod(state=ended(1, "Error", message=message), phase="Failed"), "")

    assert (told.code, told.fault_class) == ("A1", "env")


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec:\n  nodeName: b\n",
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nstatus: {}\n",
        "kind: Pod\nstatus:\n  phase: Failed\n  reason: Evicted\n",
        "apiVersion: v1\nkind: ConfigMap\ndata:\n  a: |\n    reason: OOMKilled\n",
        "model:\n  name: gpt2\nstatus:\n  reason: OOMKilled\n",
    ],
    ids=["a manifest", "no status", "no version", "of another kind", "of a program"],
)
def test_what_is_no_object_with_a_status(tmp_path: Path, text: str) -> None:
    """It is not read: the settings of a run lie beside its log."""
    assert not kubernetes_objects.recognise("a.yaml", text.encode())
    with pytest.raises(FormatError):
        kubernetes_objects.parse(text.encode(), "a.yaml")
    (tmp_path / "a.yaml").write_text(text)
    (tmp_path / "train.log").write_text(STEPS)
    assert diagnose(collect(Request((str(tmp_path),)))).state == "undetermined"


def test_nodes_and_addresses_of_pods() -> None:
    """For hosts that logs know by their pods."""
    data = yaml(listed(pod("llm-0", node="pool-1"), pod("llm-1", node="pool-2"))).encode()

    told = kubernetes_objects.parse(data, "pods.yaml").addresses
    assert told == {"llm-0": "pool-1", "llm-1": "pool-2"}  # one address on two nodes tells neither
    line = next(n for n, one in enumerate(data.split(b"\n"), 1) if b"pool-2" in one)
    assert kubernetes_objects.resolve(data, f"line {line}") == "pool-2"


def test_pods_by_the_container_that_has_their_gpus() -> None:
    """Whatever one beside it came to; a node that is listed with them is none."""
    failed = pod("llm-0", state=ended(137, "OOMKilled", startedAt="2026-03-02T08:59:20Z",
                                      finishedAt="2026-03-02T09:09:20Z"),
                 beside=ended(0, "Completed"), phase="Failed")  # fmt: skip
    failed["metadata"]["labels"] = {"app": "x", "jobset.sigs.k8s.io/jobset-name": "llm"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "pool-7"},
            "status": {"phase": "Running"}}  # fmt: skip
    data = yaml(listed(failed, pod("llm-1"), node)).encode()

    first, second = kubernetes_objects.parse(data, "pods.yaml").pods

    assert (first.name, first.status, first.exit_code, first.gpus, first.job) == (
        "llm-0", "OOMKilled", 137, 8, "llm")  # fmt: skip
    assert first.started_at is not None
    assert first.ended_at is not None
    assert (first.ended_at - first.started_at).total_seconds() == 600
    assert (second.status, second.node, second.ended_at) == ("Running", "pool-7", None)
    assert kubernetes_objects.resolve(data, first.cite.pointer) == "OOMKilled"


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_a_pod_is_the_record_of_its_run(tmp_path: Path, form: str) -> None:
    """What to do is said in the words of Kubernetes; one that goes on is not called failed."""
    for state, phase, disposition in [
        (RUNS, "Running", "running"),
        (ended(1), "Failed", "failed"),
        (ended(0, "Completed"), "Succeeded", "completed"),
    ]:
        told = verdict(tmp_path, pod(state=state, phase=phase), form=form)

        assert (told.run.disposition, told.run.id) == (disposition, "llm")
        assert not any("sacct" in (one.command or "") for one in told.actions)


@pytest.mark.parametrize(
    "text",
    [
        "- " * 5_000 + "a: b\n",
        "".join(f"{' ' * (n % 390)}k{n}:\n" for n in range(5_000)),
        "a: &x [*x, *x]\n" * 5_000,
        "{\n" * 5_000 + "}\n" * 5_000,
        "m: |\n" + "  reason: OOMKilled\n" * 5_000,
        "\t\x00:\n- -\n---\n: :\n",
    ],
)
def test_hostile_text_is_read_in_one_pass(text: str) -> None:
    """Nothing is followed or expanded: there are never more entries than lines."""
    found = list(kubernetes_objects.entries(text.split("\n")))

    assert len(found) <= text.count("\n") + 1
    assert all(len(entry.path) <= 3 * kubernetes_objects.MOST_DEEP for entry in found)


def test_more_objects_than_are_read_are_a_gap(tmp_path: Path) -> None:
    """None of them is told of."""
    many = "status:\n  phase: Failed\n  reason: Evicted\n" + "  a: b\n" * (
        kubernetes_objects.MOST_LINES
    )
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\n" + many)
    (tmp_path / "train.log").write_text(STEPS)
    facts = collect(Request((str(tmp_path),)))

    assert diagnose(facts).state == "undetermined"
    assert any("more than is read" in gap.reason for gap in facts.gaps)
