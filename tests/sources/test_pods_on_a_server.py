"""Pods of a run by the kube-state-metrics of its cluster, which a server holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flatline.cli import Engine, answer
from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.errors import SourceError
from flatline.facts import Facts
from flatline.render.json import document
from flatline.sources.prometheus import PrometheusServer
from flatline.verify import verify
from sources.test_as_its_files import served

BEGAN = datetime(2026, 3, 4, 8, tzinfo=UTC)
MINUTES = 20
OWN = {"sft-master-0": "gpu-1", "sft-worker-0": "gpu-2"}
OTHER = {"sft-large-worker-0": "gpu-3"}


def at(seconds: float) -> str:
    return str(int((BEGAN + timedelta(seconds=seconds)).timestamp() * 1000))


def leave(folder: Path, host: str = "sft-master-0", last: Sequence[str] = ()) -> None:
    """The log of the first pod, whose lines of NCCL name it."""
    (folder / "run").mkdir()
    rows = [
        f"{host}:71:512 [0] NCCL INFO ncclCommInitRank comm 0x55d4e0a0 rank 0 nranks 2 cudaDev 0"
        " nvmlDev 0 busId 1b000 commId 0x9f3a - Init COMPLETE"
    ]
    for step in range(1, MINUTES * 30 + 1):
        stamp = f"{BEGAN + timedelta(seconds=2 * step):%Y-%m-%d %H:%M:%S}"
        rows.append(f"{stamp},000 INFO step {step}/9000 loss {9 / step + 2:.4f} step_time_s 2.0")
    (folder / "run" / "train.log").write_text("\n".join([*rows, *last]) + "\n")


def pods(states: dict[str, str], *, until: float = MINUTES * 60 + 400) -> Iterator[str]:
    """What is exposed of all pods each half minute: `states` are those after the last line."""
    seconds = -120.0
    while (seconds := seconds + 30) <= until:
        for pod, node in (OWN | OTHER).items():
            there, of = f'namespace="ml",pod="{pod}"', pod.rsplit("-", 2)[0]
            over = pod in states and seconds > MINUTES * 60
            if over and not states[pod]:
                continue  # deleted
            more = f'node="{node}",pod_ip="10.1.0.{node[-1]}",created_by_kind="PyTorchJob"'
            yield f'kube_pod_info{{{there},{more},created_by_name="{of}"}} 1 {at(seconds)}'
            for phase in ("Running", "Failed"):
                now = int((phase == "Failed") == over)
                yield f'kube_pod_status_phase{{{there},phase="{phase}"}} {now} {at(seconds)}'
            if over:
                why = f'{there},container="pytorch",reason="{states[pod]}"'
                yield f"kube_pod_container_status_terminated_reason{{{why}}} 1 {at(seconds)}"


def cards() -> Iterator[str]:
    """A card of each node: that of another run's is by far the coldest."""
    for seconds in range(-120, MINUTES * 60 + 400, 30):
        for node in ("gpu-1", "gpu-2", "gpu-3"):
            watts = 90 if node == "gpu-3" else 500
            where = f'Hostname="{node}",gpu="0",UUID="GPU-{node}"'
            yield f"DCGM_FI_DEV_POWER_USAGE{{{where}}} {watts} {at(seconds)}"
            yield f"DCGM_FI_DEV_GPU_UTIL{{{where}}} 97 {at(seconds)}"


def read(folder: Path, rows: Sequence[str]) -> Facts:
    with served(folder, [*rows, *cards()]) as url:
        return collect(Request((str(folder / "run"),), prometheus=url))


def test_a_pod_of_the_run_that_was_killed_for_its_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leave(tmp_path, last=["[rank0]: torch.distributed.DistBackendError: NCCL communicator was"
                          " aborted on rank 0."])  # fmt: skip
    run = str(tmp_path / "run")
    with served(tmp_path, [*pods({"sft-worker-0": "OOMKilled", "sft-master-0": "Error"}),
                           *cards()]) as url:  # fmt: skip
        facts = collect(Request((run,), prometheus=url))
        verdict = diagnose(facts)
        checks = verify(document(verdict), (run,), prometheus=url)
        sealed = str(tmp_path / "sealed.capsule")
        assert answer(["capsule", run, "--prometheus", url, "--output", sealed], Engine()) == 0
    capsys.readouterr()

    assert [(job.id, job.disposition, job.nodes) for job in facts.jobs] == [
        ("sft", "out_of_memory", ("gpu-1", "gpu-2"))
    ]
    assert facts.nodes["sft-worker-0"] == facts.nodes["10.1.0.2"] == "gpu-2"
    assert "sft-large-worker-0" not in facts.nodes
    assert (verdict.code, [str(place) for place in verdict.culprits]) == ("A2", ["gpu-2"])
    assert "process on gpu-2 was killed" in verdict.headline
    assert all(check.ok for check in checks), checks
    again = diagnose(collect(Request((sealed,))))
    assert (again.code, again.culprits) == (verdict.code, verdict.culprits)


def test_pods_that_were_deleted_by_then(tmp_path: Path) -> None:
    """How they fared at last is not told; where they ran still is."""
    leave(tmp_path)
    with served(tmp_path, [*pods(dict.fromkeys(OWN, "")), *cards()]) as url:
        facts = collect(Request((str(tmp_path / "run"),), prometheus=url))
        drawn = facts.series("avg by (host) (gpu_power_watts)")

    assert facts.jobs == ()
    assert drawn is not None
    assert {row.place.host for row in drawn.rows} == {"gpu-1", "gpu-2"}
    assert (facts.nodes["sft-master-0"], facts.nodes["sft-worker-0"]) == ("gpu-1", "gpu-2")


def test_pods_that_run_on(tmp_path: Path) -> None:
    """Only the cards of their nodes are looked at."""
    leave(tmp_path)
    with served(tmp_path, [*pods({}), *cards()]) as url:
        facts = collect(Request((str(tmp_path / "run"),), prometheus=url))
        drawn = facts.series("avg by (host) (gpu_power_watts)")

    assert [(job.id, job.disposition) for job in facts.jobs] == [("sft", "running")]
    assert drawn is not None
    assert {row.place.host for row in drawn.rows} == {"gpu-1", "gpu-2"}


def test_pods_that_run_on_long_after_the_last_line(tmp_path: Path) -> None:
    """They are followed for as long as they are told to run: the run may hang."""
    leave(tmp_path)
    facts = read(tmp_path, [*pods({}, until=MINUTES * 60 + 5400)])

    assert [(job.id, job.disposition) for job in facts.jobs] == [("sft", "running")]
    assert facts.now == BEGAN + timedelta(seconds=MINUTES * 60 + 5400)


def test_a_server_that_refuses_to_look_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it told of the pods soon after the last line still counts."""
    whole = PrometheusServer.data

    def refuses(self: PrometheusServer, path: str, form: dict[str, list[str]], **how: bool) -> Any:
        if "max_over_time" in str(form.get("query")):
            raise SourceError("the subquery reaches too far")
        return whole(self, path, form, **how)

    monkeypatch.setattr(PrometheusServer, "data", refuses)
    leave(tmp_path)
    facts = read(tmp_path, [*pods({"sft-worker-0": "OOMKilled", "sft-master-0": "Error"})])

    assert [(job.id, job.disposition) for job in facts.jobs] == [("sft", "out_of_memory")]


def test_a_log_that_names_no_pod(tmp_path: Path) -> None:
    """Nothing tells which of a cluster's pods are its own."""
    leave(tmp_path, host="builder")
    facts = read(tmp_path, [*pods({"sft-worker-0": "OOMKilled"})])

    assert facts.jobs == ()
    assert not facts.nodes


def test_a_name_that_two_namespaces_have(tmp_path: Path) -> None:
    """Which of both it is cannot be told."""
    leave(tmp_path)
    rows = [*pods({"sft-worker-0": "OOMKilled"})]
    facts = read(tmp_path, [*rows, *(row.replace('"ml"', '"dev"') for row in rows)])

    assert facts.jobs == ()
