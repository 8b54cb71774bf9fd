"""
What Kubernetes says of a pod's end, beside the log of its run.

The outputs are composed here in the shapes of kubectl: no cluster runs where these tests do.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

STEPS = "".join(
    f"2026-03-02 09:{i // 60:02d}:{i % 60:02d},000 step {i}/5000 loss {8 - i * 0.01:.3f}\n"
    for i in range(0, 600, 10)
)
STATE = """\
Name:             llm-worker-3
Node:             pool-7/10.0.3.4
Containers:
  pytorch:
    State:          Terminated
      Reason:       {reason}
      Exit Code:    {code}
    Limits:
      memory:          64Gi
Tolerations:  node.kubernetes.io/not-ready:NoExecute op=Exists for 300s
Conditions:
  MemoryPressure   False   kubelet has sufficient memory available
"""
EVENT = "LAST SEEN   TYPE      REASON    OBJECT             MESSAGE\n2m          Warning   {}\n"


def verdict(folder: Path, said: str, log: str = STEPS) -> Verdict:
    (folder / "kubectl.txt").write_text(said)
    if log:
        (folder / "train.log").write_text(log)
    return diagnose(collect(Request((str(folder),))))


def test_a_container_over_its_limit(tmp_path: Path) -> None:
    """The pod's state says so; exit code 137 alone would not."""
    told = verdict(tmp_path, STATE.format(reason="OOMKilled", code=137))

    assert (told.code, told.fault_class, told.attribution) == ("A2", "cgroup-oom", "job")


def test_a_container_that_ended_well_and_a_node_with_room(tmp_path: Path) -> None:
    """The names of conditions and tolerations stand in every description."""
    told = verdict(tmp_path, STATE.format(reason="Completed", code=0))

    assert told.state == "undetermined"
    assert not told.findings


@pytest.mark.parametrize(
    ("event", "code", "log"),
    [
        ("Evicted   pod/llm-3   The node was low on resource: memory. Threshold quantity: 100Mi,"
         " available: 41Mi.", "A2", STEPS),
        ('Evicted   pod/llm-3   Usage of EmptyDir volume "cache" exceeds the limit "50Gi".', "C6",
         STEPS),
        ('Failed    pod/llm-3   Failed to pull image "registry.example/train:v7": rpc error', "F4",
         ""),
        ("UnexpectedAdmissionError   pod/llm-3   Allocate failed due to requested number of"
         " devices unavailable for nvidia.com/gpu. Requested: 8, Available: 7", "F4", ""),
        ("UnexpectedAdmissionError   pod/llm-3   Allocate failed due to no healthy devices"
         " present; cannot allocate unhealthy devices nvidia.com/gpu", "B2", ""),
        ("NodeNotReady   pod/llm-3   Node is not ready", "F1", STEPS),
        ("DeadlineExceeded   job/llm   Job was active longer than specified deadline", "F3",
         STEPS),
    ],
)  # fmt: skip
def test_an_event_that_ended_a_pod(tmp_path: Path, event: str, code: str, log: str) -> None:
    assert verdict(tmp_path, EVENT.format(event), log).code == code


@pytest.mark.parametrize(
    "event",
    [
        "BackOff   pod/llm-3   Back-off restarting failed container",
        'Pulled    pod/llm-3   Successfully pulled image "registry.example/train:v7" in 31s',
        "Killing   pod/llm-3   Stopping container pytorch",
    ],
)
def test_an_event_that_says_no_cause(tmp_path: Path, event: str) -> None:
    assert verdict(tmp_path, EVENT.format(event)).state == "undetermined"


def test_a_killed_container_is_on_the_node_its_pod_is_described_with(tmp_path: Path) -> None:
    """Of several pods each has its own; one that was given none has none."""
    fine = STATE.format(reason="Completed", code=0)
    killed = STATE.format(reason="OOMKilled", code=137).replace(
        "pool-7/10.0.3.4", "pool-9/10.0.3.6"
    )
    told = verdict(tmp_path, fine + killed + fine)

    assert [place.host for place in told.culprits] == ["pool-9"]
    unplaced = killed.replace("pool-9/10.0.3.6", "<none>")
    assert verdict(tmp_path, unplaced).culprits == ()


@pytest.mark.parametrize(("now", "code"), [("Running", None), ("Waiting", "A2")])
def test_the_container_before_this_one_was_killed(
    tmp_path: Path, now: str, code: str | None
) -> None:
    """Of one that runs again the log is the new one's; one that waits has not run since."""
    state = f"    State:          {now}\n      Started:      Mon, 02 Mar 2026 08:59:20 +0000\n"
    before = (
        "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n"
    )

    told = verdict(tmp_path, f"Name: llm-3\nContainers:\n  pytorch:\n{state}{before}")

    assert told.code == code
    assert "A2" not in {one.code for one in told.ruled_out}


POD = """\
Name:             llm-worker-3
Node:             pool-7/10.0.3.4
Status:           Running
Init Containers:
  prepare:
    Container ID:   containerd://0a1
    State:          Terminated
      Reason:       Completed
      Exit Code:    0
Containers:
  pytorch:
    Container ID:   containerd://1f0
    State:          {state}
    Last State:     {last}
    Limits:
      memory:          64Gi
      nvidia.com/gpu:  8
  log-shipper:
    Container ID:   containerd://2b7
    State:          {beside}
Conditions:
  Type              Status
  Ready             {ready}
Events:
  Type     Reason   Age   From     Message
  Warning  {event}
"""
KILLED = "Terminated\n      {}Reason:       OOMKilled\n      Exit Code:    137"
LONG = "Message:      a\n      b\n      c\n      d\n      "
PULLED = 'Failed   60m   kubelet  Failed to pull image "registry.example/train:v7": rpc error'
LOST = "NodeNotReady   45m   node-controller  Node is not ready"


def described(folder: Path, log: str = STEPS, **said: str) -> Verdict:
    fine = {"state": "Running", "last": "<none>", "beside": "Running", "ready": "True",
            "event": "Unhealthy   1m   kubelet  Readiness probe failed"}  # fmt: skip
    return verdict(folder, POD.format(**(fine | said)), log)


@pytest.mark.parametrize(
    "said",
    [
        {"last": KILLED.format(LONG)},
        {"beside": KILLED.format("")},
        {"event": PULLED},
        {"event": LOST},
    ],
    ids=["the one before", "one without a GPU", "pulled in the end", "ready again"],
)
@pytest.mark.parametrize("log", [STEPS, "loading\nbatch done\n"], ids=["steps", "no steps"])
def test_a_pod_that_runs_was_ended_by_nothing(
    tmp_path: Path, said: dict[str, str], log: str
) -> None:
    assert described(tmp_path, log, **said).state == "undetermined"


def test_the_log_of_the_container_before(tmp_path: Path) -> None:
    """As `kubectl logs --previous` gives it: what ended that one ended what was read."""
    (tmp_path / "llm-worker-3-previous.log").write_text(STEPS)

    assert described(tmp_path, "", last=KILLED.format("")).code == "A2"


@pytest.mark.parametrize(
    ("said", "code", "log"),
    [
        ({"state": KILLED.format("")}, "A2", STEPS),
        ({"state": "Waiting", "last": KILLED.format(LONG)}, "A2", STEPS),
        ({"state": "Waiting", "event": PULLED}, "F4", ""),
        ({"ready": "False", "event": LOST}, "F1", STEPS),
    ],
    ids=["the one now", "waits", "prepared and never pulled", "not ready"],
)
def test_a_pod_that_does_not_run(
    tmp_path: Path, said: dict[str, str], code: str, log: str
) -> None:
    told = described(tmp_path, log, **said)

    assert (told.code, told.confidence >= 0.8) == (code, True)
    assert {place.host for place in told.culprits} <= {"pool-7"}


OBJECT = """\
kind: Pod
status:
  containerStatuses:
  - containerID: containerd://1f0
    lastState:{last}
    name: pytorch
    state:{now}
  phase: Running
"""
OF_OBJECT = """
      terminated:
        containerID: containerd://1f0
        exitCode: 137
        reason: OOMKilled"""


@pytest.mark.parametrize(
    ("last", "now", "code"),
    [
        (OF_OBJECT, "\n      running:\n        startedAt: 2026-03-02T08:59:20Z", None),
        (" {}", OF_OBJECT, "A2"),
        (OF_OBJECT, "\n      waiting:\n        reason: CrashLoopBackOff", "A2"),
    ],
)
def test_the_states_of_a_pod_as_an_object(
    tmp_path: Path, last: str, now: str, code: str | None
) -> None:
    """There the one before stands first."""
    assert verdict(tmp_path, OBJECT.format(last=last, now=now)).code == code


DONE = STEPS.replace("/5000", "/590") + "2026-03-02 09:10:00,000 Training completed\n"
ELSEWHERE = "NodeNotReady   node/pool-9   Node pool-9 status is now: NodeNotReady"


def test_a_list_of_everybodys_pods_and_nodes(tmp_path: Path) -> None:
    """What nothing else names is told of with doubt, and not of a run that reached its end."""
    other = "Evicted   pod/jupyter-anna   The node was low on resource: memory. Threshold"
    for event in (other, ELSEWHERE):
        told = verdict(tmp_path, EVENT.format(event))

        assert told.state == "found"
        assert told.confidence < 0.8
        assert any("is of this run" in open_ for open_ in told.cannot_decide)
        assert verdict(tmp_path, EVENT.format(event), DONE).state == "healthy"
    victim = "SystemOOM   9m  kubelet  System OOM encountered, victim process: chrome, pid: 22342"
    assert verdict(tmp_path, EVENT.format(victim)).confidence < 0.8

    (tmp_path / "llm-worker-0.log").write_text(STEPS)
    own = "Evicted   pod/llm-worker-3   The node was low on resource: memory. Threshold"
    assert verdict(tmp_path, EVENT.format(own)).confidence >= 0.8


WIDE = """\
NAME           READY   STATUS      RESTARTS   AGE   IP          NODE     NOMINATED NODE
llm-worker-0   1/1     Running     0          94m   10.0.4.7    pool-8   <none>
llm-worker-3   0/1     {}   0          94m   10.0.3.4    pool-7   <none>
"""


@pytest.mark.parametrize(("status", "code"), [("OOMKilled", "A2"), ("Completed", None)])
def test_a_list_with_the_nodes_of_pods(tmp_path: Path, status: str, code: str | None) -> None:
    """The row of a pod that was killed names the node."""
    (tmp_path / "llm-worker-0.log").write_text(STEPS)
    told = verdict(tmp_path, WIDE.format(status), "")

    assert told.code == code
    assert [place.host for place in told.culprits] == ["pool-7"] * (code is not None)


TOOLKIT = (
    "2026-03-02T09:00:41Z   Warning   Failed   pod/{}   Error: failed to create containerd task:"
    " OCI runtime create failed: nvidia-container-cli: initialization error: nvml error:"
    " driver/library version mismatch: unknown\n"
)


@pytest.mark.parametrize(
    ("pod", "host"), [("llm-worker-3", "pool-7"), ("llm-worker-0", "pool-8"), ("llm-9", None)]
)
def test_a_container_that_its_node_could_not_start(
    tmp_path: Path, pod: str, host: str | None
) -> None:
    """The row of the event names the pod, a list its node; one that is not listed names none."""
    (tmp_path / "pods.txt").write_text(WIDE.format("CreateContainerError"))
    told = verdict(tmp_path, TOOLKIT.format(pod), "")

    assert told.code == "F4"
    assert [place.host for place in told.culprits] == ([host] if host else [])


@pytest.mark.parametrize(
    "said",
    [
        'upload failed: {"error": {"code": 504, "reason": "DeadlineExceeded"}}',
        'autoscaler: {"reason": "NodeLost"} for a pool that was scaled down',
        "controller: pod ml/other-7 terminated, reason: OOMKilled",
    ],
)
def test_a_reason_within_a_sentence_is_of_no_pod(tmp_path: Path, said: str) -> None:
    """It stands in a line of its own in what kubectl prints."""
    for log in (STEPS, DONE):
        (tmp_path / "train.log").write_text(f"{log}{said}\n")
        told = diagnose(collect(Request((str(tmp_path),))))

        assert told.state == ("healthy" if log == DONE else "undetermined")


@pytest.mark.parametrize(
    ("code", "found", "fault_class"),
    [(137, "A2", "kill-unknown"), (139, "A2", "segv"), (1, None, None), (143, None, None)],
)
def test_the_exit_code_of_a_container_without_a_reason(
    tmp_path: Path, code: int, found: str | None, fault_class: str | None
) -> None:
    """A signal that nothing explains is a kill by nobody knows whom."""
    told = verdict(tmp_path, STATE.format(reason="Error", code=code))

    assert (told.code, told.fault_class) == (found, fault_class)


@pytest.mark.parametrize(("placed", "code"), [("", "F4"), ("Started container pytorch", None)])
def test_a_pod_waits_for_a_node(tmp_path: Path, placed: str, code: str | None) -> None:
    """Until one can take it."""
    state = "Waiting" if not placed else "Running"
    events = (
        "Events:\n  Warning  FailedScheduling  9m  default-scheduler"
        f"  0/8 nodes are available: 8 Insufficient nvidia.com/gpu.\n  Normal  Started  {placed}\n"
    )
    pod = f"Name: llm-3\nNode: <none>\nContainers:\n  pytorch:\n    State:          {state}\n"

    assert verdict(tmp_path, pod + events, "loading\n").code == code


INIT = (
    "Warning   BackOff   llm-3   Back-off restarting failed container {} in pod llm-3_ml(0b8d)\n"
)
STARTED = "Normal    Started   pod/llm-3   Started container {}\n"


@pytest.mark.parametrize(
    "said",
    [
        STARTED.format("init-pytorch") + INIT.format("init-pytorch"),
        INIT.format("llm-init"),
        "NAME    READY   STATUS                  RESTARTS   AGE\n"
        "llm-3   0/1     Init:CrashLoopBackOff   5          9m\n",
    ],
)
def test_what_prepares_a_pod_fails_again_and_again(tmp_path: Path, said: str) -> None:
    """The program never ran; the next try may work."""
    told = verdict(tmp_path, said, "")

    assert told.code == "F4"
    assert told.confidence < 0.8


@pytest.mark.parametrize(
    ("said", "log"),
    [
        (INIT.format("pytorch"), ""),
        (INIT.format("initializer"), ""),
        (INIT.format("init-pytorch") + STARTED.format("pytorch"), ""),
        (INIT.format("init-pytorch"), STEPS),
        (
            "NAME    READY   STATUS     RESTARTS   AGE\nllm-3   0/1   Init:0/1   0   9s\n",
            "",
        ),
    ],
    ids=[
        "the program's own",
        "a name that only begins so",
        "it went on",
        "it trains",
        "a first try",
    ],
)
def test_what_fails_is_not_what_prepares_the_pod(tmp_path: Path, said: str, log: str) -> None:
    assert verdict(tmp_path, said, log).code != "F4"


def test_a_name_that_does_not_resolve_yet(tmp_path: Path) -> None:
    """The log of what waits for it, and the same before a run that trains."""
    asked = (
        "nslookup: can't resolve 'llm-master-0': Name does not resolve\nwaiting for master\n" * 3
    )
    (tmp_path / "alone").mkdir()
    (tmp_path / "before").mkdir()
    assert verdict(tmp_path / "alone", "", asked).code == "F4"
    assert verdict(tmp_path / "alone", "", asked).confidence < 0.8
    assert verdict(tmp_path / "before", "", asked + STEPS).code != "F4"
