"""Whom the others waited for, by the stacks of the processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.claims import number
from flatline.model import Verdict
from flatline.render.json import render
from flatline.verify import verify

REDUCE = (
    "all_reduce (torch/distributed/distributed_c10d.py:2810)",
    "wrapper (torch/distributed/c10d_logger.py:81)",
)
BARRIER = ("barrier (torch/distributed/distributed_c10d.py:4640)",)
MEETING = ("init_process_group (torch/distributed/distributed_c10d.py:1764)",)
LOADER = ("poll (selectors.py:416)", "_try_get_data (torch/utils/data/dataloader.py:1132)")
SAVING = ("_save (torch/serialization.py:902)", "save (torch/serialization.py:653)")
ITEM = ("log_metrics (train.py:77)",)
WORKER = (
    "get (multiprocessing/queues.py:113)",
    "_worker_loop (torch/utils/data/_utils/worker.py:275)",
)
LAUNCHER = (
    "_poll (subprocess.py:2001)",
    "_invoke_run (torch/distributed/elastic/agent/server/api.py:870)",
)
FSDP = (
    "forward (model.py:44)",
    "forward (torch/distributed/fsdp/fully_sharded_data_parallel.py:864)",
)


def steps(count: int = 40) -> str:
    return "".join(
        f"2026-10-18 08:02:{n:02d},000 step {n}/5000 loss {8 - n * 0.01:.3f}\n"
        for n in range(count)
    )


def dump(
    calls: tuple[str, ...], pid: int, command: str = "python -u train.py", label: str = ""
) -> str:
    lines = [f"Process {pid}: {command}", "Python v3.10.12 (/usr/bin/python3.10)", "",
             f'Thread {pid} (idle): "MainThread"', *(f"    {call}" for call in calls),
             "    <module> (train.py:240)",
             f'Thread {pid + 40} (idle): "QueueFeederThread"', "    wait (threading.py:327)",
             "    _bootstrap (threading.py:1002)"]  # fmt: skip
    return "".join(f"{label}{line}\n" for line in lines)


def crashed(calls: tuple[str, ...], *, fatal: bool, file: str = "/opt/venv/lib/") -> str:
    """As faulthandler prints the stacks of two threads, the main one last."""
    head = "Fatal Python error: Segmentation fault\n\n" if fatal else ""
    frames = [call[:-1].replace(" (", ":").split(":") for call in calls]
    return (
        f"{head}Thread 0x00007f6652aff6c0 (most recent call first):\n"
        '  File "/usr/lib/python3.11/threading.py", line 327 in wait\n'
        '  File "/usr/lib/python3.11/threading.py", line 1002 in _bootstrap\n\n'
        "Current thread 0x00007f667a88ab80 (most recent call first):\n"
        + "".join(f'  File "{file}{path}", line {line} in {name}\n' for name, path, line in frames)
        + '  File "/home/u/train.py", line 240 in <module>\n'
    )


def verdict(folder: Path, log: str, stacks: dict[str, str]) -> Verdict:
    (folder / "job.log").write_text(log)
    (folder / "stacks").mkdir()
    for name, text in stacks.items():
        (folder / "stacks" / f"{name}.txt").write_text(text)
    return diagnose(collect(Request((str(folder),))))


def of_ranks(*calls: tuple[str, ...]) -> dict[str, str]:
    return {f"rank{n}": dump(one, 4100 + n) for n, one in enumerate(calls)}


def named(found: Verdict) -> list[int | None]:
    return [number(place) for place in found.culprits]


@pytest.mark.parametrize(
    ("calls", "ranks"),
    [
        ((REDUCE, REDUCE, LOADER, REDUCE), [2]),
        ((SAVING, REDUCE), [0]),
        ((REDUCE, REDUCE, LOADER, LOADER), []),
        ((REDUCE, BARRIER, REDUCE, REDUCE), [1]),
        ((REDUCE, BARRIER, REDUCE), []),
        ((REDUCE, REDUCE, REDUCE, REDUCE), []),
        ((ITEM, REDUCE, REDUCE, REDUCE), []),
        ((FSDP, REDUCE, REDUCE, REDUCE), []),
    ],
    ids=["loader", "one of two saves", "half of them load", "another collective",
         "another of three", "all alike", "may wait for its device", "within a wrapped model"],
)  # fmt: skip
def test_who_is_waited_for(
    tmp_path: Path, calls: tuple[tuple[str, ...], ...], ranks: list[int]
) -> None:
    found = verdict(tmp_path, steps(), of_ranks(*calls))
    assert found.code == "C2"
    assert found.confidence < 0.8
    assert named(found) == ranks
    checks = verify(json.loads(render(found)), (str(tmp_path),))
    assert checks
    assert all(check.ok for check in checks)


def test_a_process_group_that_is_still_set_up_is_no_training_that_froze(tmp_path: Path) -> None:
    found = verdict(tmp_path, "starting\n", of_ranks(MEETING, MEETING, LOADER, MEETING))
    assert (found.code, named(found)) == ("C1", [2])


def test_all_in_their_loaders_wait_for_nobody(tmp_path: Path) -> None:
    assert verdict(tmp_path, steps(), of_ranks(LOADER, LOADER, LOADER)).state == "undetermined"


def test_launchers_and_workers_of_a_loader_are_no_ranks(tmp_path: Path) -> None:
    stacks = of_ranks(REDUCE, REDUCE, LOADER, REDUCE)
    stacks["rank2"] = dump(LOADER, 4102) + dump(WORKER, 4190)
    stacks["torchrun"] = dump(LAUNCHER, 4000, "torchrun --nproc-per-node 4 train.py")
    assert named(verdict(tmp_path, steps(), stacks)) == [2]


def test_stacks_in_the_log_by_local_rank(tmp_path: Path) -> None:
    shown = "".join(
        dump(one, 4100 + n, f"python -u train.py --local-rank={n}")
        for n, one in enumerate((REDUCE, LOADER, REDUCE, REDUCE))
    )
    assert named(verdict(tmp_path, steps() + shown, {})) == [1]


def test_lines_of_other_ranks_between_those_of_a_stack(tmp_path: Path) -> None:
    shown = [
        dump(one, 4100 + n, label=f"{n}: ").splitlines()
        for n, one in enumerate((REDUCE, REDUCE, LOADER, REDUCE))
    ]
    mixed = [line for row in zip(*shown, strict=False) for line in row] + [shown[2][-1]]
    log = "".join(f"{n % 4}: {line}\n" for n, line in enumerate(steps().splitlines()))
    assert named(verdict(tmp_path, log + "\n".join(mixed) + "\n", {})) == [2]


def test_faulthandler(tmp_path: Path) -> None:
    stacks = {
        f"rank{n}": crashed(one, fatal=False)
        for n, one in enumerate((REDUCE, LOADER, REDUCE, REDUCE))
    }
    found = verdict(tmp_path, steps(), stacks)
    assert (found.code, named(found)) == ("C2", [1])


def test_the_stack_of_a_crash_is_no_wait(tmp_path: Path) -> None:
    stacks = {f"rank{n}": crashed(one, fatal=n == 1) for n, one in enumerate((REDUCE, LOADER))}
    found = verdict(tmp_path, steps(), stacks)
    assert found.code == "A2"


def test_a_run_that_went_on_did_not_stand_still(tmp_path: Path) -> None:
    shown = "".join(dump(one, 4100 + n) for n, one in enumerate((REDUCE, REDUCE, LOADER)))
    later = "".join(
        f"2026-10-18 08:10:{n:02d},000 step {40 + n}/5000 loss {7.6 - n * 0.01:.3f}\n"
        for n in range(40)
    )
    assert verdict(tmp_path, steps() + shown + later, {}).code != "C2"


def test_a_timeout_that_the_stacks_explain_is_sure_of_whom(tmp_path: Path) -> None:
    timed_out = "".join(
        f"[rank{n}]:[E1018 08:33:00.000 ProcessGroupNCCL.cpp:607] [Rank {n}] Watchdog caught"
        " collective operation timeout: WorkNCCL(SeqNum=811, OpType=ALLREDUCE, NumelIn=1,"
        " NumelOut=1, Timeout(ms)=1800000) ran for 1800012 milliseconds before timing out.\n"
        for n in (0, 1)
    )
    found = verdict(tmp_path, steps() + timed_out, of_ranks(REDUCE, REDUCE, LOADER, REDUCE))
    assert (found.code, named(found)) == ("C2", [2])
    assert found.confidence >= 0.8


def of_pods() -> str:
    """Sixteen ranks in two pods of eight, with the number of each process, as NCCL prints them."""
    events = "TIME   TYPE   REASON   OBJECT   MESSAGE\n" + "".join(
        f"2026-10-18T08:00:0{n}Z  Normal  Scheduled  pod/{pod}"
        f"  Successfully assigned ml/{pod} to pool-{n + 7}\n"
        for n, pod in enumerate(("train-0-0-xk4bz", "train-0-1-xk5bz"))
    )
    ranks = "".join(
        f"train-0-{pod}:{310 + n + 40 * pod}:9{n:02d} [{n}] NCCL INFO ncclCommInitRankConfig comm"
        f" 0x5{n:x}a rank {8 * pod + n} nranks 16 cudaDev {n} nvmlDev {n} busId {n + 1}b000 commId"
        " 0x77 - Init COMPLETE\n"
        for pod in range(2)
        for n in range(8)
    )
    return events + ranks


@pytest.mark.parametrize(
    ("asked", "pid", "culprit"),
    [
        ("kubectl exec train-0-1-xk5bz -c main -- py-spy dump --pid {}", 353, "rank 11 on pool-8"),
        ("kubectl -n ml exec -it pod/train-0-1-xk5bz -- py-spy dump -p {}", 353,
         "rank 11 on pool-8"),
        ("py-spy dump --pid {}", 353, "rank 11 on pool-8"),  # no other has that number
        ("kubectl exec train-0-1-xk5bz -- py-spy dump --pid {}", 999, "pool-8"),
        ("kubectl exec train-0-0-xk4bz -- py-spy dump --pid {}", 353, "pool-7"),
        ("py-spy dump --pid {}", 999, None),
    ],
)  # fmt: skip
def test_the_rank_of_a_process_in_a_pod(
    tmp_path: Path, asked: str, pid: int, culprit: str | None
) -> None:
    """By the pod that was asked for its stack, and the number of its process in NCCL's lines."""
    shown = f"$ {asked.format(pid)}\n{dump(LOADER, pid)}\n"
    shown += f"$ kubectl exec train-0-0-xk4bz -- py-spy dump --pid 310\n{dump(REDUCE, 310)}"
    found = verdict(tmp_path, of_pods() + steps(), {"dumps": shown})

    assert found.code == "C2"
    assert [str(place) for place in found.culprits] == ([culprit] if culprit else [])
    assert all(check.ok for check in verify(json.loads(render(found)), (str(tmp_path),)))


def test_a_number_that_processes_of_two_pods_have(tmp_path: Path) -> None:
    """Each container counts its processes anew."""
    log = of_pods().replace("train-0-1:35", "train-0-1:31") + steps()
    shown = f"$ py-spy dump --pid 313\n{dump(LOADER, 313)}\n{dump(REDUCE, 8)}"

    assert verdict(tmp_path, log, {"dumps": shown}).culprits == ()


LIMIT = "slurmstepd: error: *** JOB 9 ON n4 CANCELLED AT 2026-10-18T{} DUE TO TIME LIMIT ***\n"
ELSEWHERE = ("draw (plots.py:12)",)


def noted(*calls: tuple[str, ...]) -> dict[str, str]:
    """All in one file, the rank written behind each command."""
    shown = (dump(one, 300 + n, f"python fit.py (rank {n})") for n, one in enumerate(calls))
    return {"dumps": "".join(shown)}


@pytest.mark.parametrize(
    ("calls", "ends", "ranks"),
    [
        ((ITEM, ITEM, LOADER, ITEM), "11:40:00", [2]),
        ((ITEM, ITEM, LOADER, ITEM), "08:02:45", None),
        ((ITEM, LOADER, LOADER, ITEM), "11:40:00", None),
        ((ITEM, ITEM, ELSEWHERE, ITEM), "11:40:00", None),
        ((ITEM, LOADER), "11:40:00", None),
    ],
    ids=["all but one in one line", "it did not stand", "two load", "in own code", "of two"],
)
def test_one_line_of_the_script_where_the_run_stood(
    tmp_path: Path, calls: tuple[tuple[str, ...], ...], ends: str, ranks: list[int] | None
) -> None:
    found = verdict(tmp_path, steps() + LIMIT.format(ends), noted(*calls))
    if ranks is None:
        assert found.code != "C2"
    else:
        assert (found.code, named(found)) == ("C2", ranks)
        assert found.confidence < 0.8
