"""
One cause behind many symptoms, on other ranks and hosts.

The runs are composed here, in the shapes in which torch, NCCL, Horovod and the kernel print: a
CPU cannot record them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Place, Verdict

DAY = "2026-03-02"
STEPS = "".join(
    f"[rank0]: {DAY} 04:{i // 60:02d}:{i % 60:02d},000 step {i}/5000 loss {8 - i * 0.003:.4f}\n"
    for i in range(0, 600, 10)
)


def watchdogs(ranks: Iterable[int], at: str = "04:20:01", timeout_ms: int = 600_000) -> str:
    """What c10d prints on every rank that waits in vain."""
    return "".join(
        f"[rank{r}]:[E302 {at}.{100 + r}001 ProcessGroupNCCL.cpp:616] [Rank {r}] Watchdog caught"
        f" collective operation timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=262144,"
        f" NumelOut=262144, Timeout(ms)={timeout_ms}) ran for {timeout_ms + 34} milliseconds"
        " before timing out.\n"
        for r in ranks
    )


def raised(rank: int, message: str, frame: str = "/app/train.py") -> str:
    lines = (
        "Traceback (most recent call last):",
        f'  File "{frame}", line 99, in <module>',
        "    main()",
        message,
    )
    return "".join(f"[rank{rank}]: {line}\n" for line in lines)


def verdict(folder: Path, **files: str) -> Verdict:
    for name, text in files.items():
        (folder / f"{name}.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


def roles(told: Verdict) -> dict[str, str]:
    return {j.finding.code: j.role for j in told.findings}


OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 5 has a total"
    " capacity of 79.10 GiB of which 1.10 GiB is free."
)


def test_memory_of_one_rank_behind_the_timeouts_of_all_others(tmp_path: Path) -> None:
    others = [r for r in range(8) if r != 5]
    told = verdict(tmp_path, train=STEPS + raised(5, OOM) + watchdogs(others))

    assert (told.code, [p.rank for p in told.culprits]) == ("B1", [5])
    assert roles(told)["C2"] == "consequence"


def test_memory_of_one_rank_behind_horovods_shutdown(tmp_path: Path) -> None:
    shut = "".join(
        f"[1,{r}]<stderr>:horovod.common.exceptions.HorovodInternalError: Horovod has been shut"
        " down. This was caused by an exception on one of the ranks or an attempt to allreduce,"
        " allgather or broadcast a tensor after one of the ranks finished execution.\n"
        for r in (0, 1, 2, 4, 5, 6, 7)
    )
    one = raised(
        3,
        "RuntimeError: CUDA out of memory. Tried to allocate 1.20 GiB (GPU 3; 31.75 GiB total"
        " capacity; 28.10 GiB already allocated; 700.00 MiB free)",
    )
    told = verdict(tmp_path, train=one.replace("[rank3]: ", "[1,3]<stderr>:") + shut)

    assert (told.code, [p.rank for p in told.culprits]) == ("B1", [3])


def test_a_blas_handle_that_finds_no_memory(tmp_path: Path) -> None:
    told = verdict(
        tmp_path,
        train=raised(0, "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"
                     " `cublasCreate(handle)`"),
    )  # fmt: skip

    assert told.code == "B1"
    assert told.confidence < 0.8


def test_a_link_error_behind_the_killed_channels(tmp_path: Path) -> None:
    """XID 45 is the tear-down of channels; 149 is why."""
    xid = f"{DAY}T04:1{{}} node01 kernel: NVRM: Xid (PCI:0000:{{}}:00): {{}}\n"
    kernel = xid.format(
        "0:58+0000", "9d", "149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 05 (0x4505c6)"
    )
    for bus in ("1b", "43", "52"):
        kernel += xid.format("1:02+0000", bus, "45, pid=4411, name=python3, Ch 00000010")
    failed = "".join(
        raised(r, "torch.AcceleratorError: CUDA error: unspecified launch failure")
        for r in range(4)
    )
    told = verdict(tmp_path, train=STEPS + failed, kernel=kernel)

    assert told.code == "B2"
    assert [(p.host, "9d" in (p.gpu or p.device or "")) for p in told.culprits] == [
        ("node01", True)
    ]
    assert roles(told)["A3"] == "consequence"


def test_a_gpu_lost_on_one_host_behind_the_timeouts_of_all(tmp_path: Path) -> None:
    """dmesg names no host; its file does."""
    lost = (
        "[Mon Mar  2 04:09:55 2026] NVRM: Xid (PCI:0000:ab:00): 79, pid='<unknown>',"
        " name=<unknown>, GPU has fallen off the bus.\n"
    )
    crash = raised(13, "RuntimeError: CUDA error: unspecified launch failure")
    train = STEPS + crash + watchdogs(range(13))
    (tmp_path / "dmesg-node02.txt").write_text(lost)
    told = verdict(tmp_path, train=train)

    assert (told.code, {p.host for p in told.culprits}) == ("B2", {"node02"})
    assert told.attribution == "infrastructure"


def test_a_loader_killed_on_one_rank(tmp_path: Path) -> None:
    gone = raised(3, "RuntimeError: DataLoader worker (pid(s) 4512) exited unexpectedly")
    told = verdict(tmp_path, train=STEPS + gone + watchdogs(r for r in range(8) if r != 3))

    assert (told.code, [p.rank for p in told.culprits]) == ("A2", [3])


def test_a_helpers_exit_code_before_a_success(tmp_path: Path) -> None:
    steps = "".join(
        f"{DAY} 04:{i // 60:02d}:{i % 60:02d} step {i}/600 loss {8 - i * 0.01:.4f}\n"
        for i in range(0, 601, 10)
    )
    told = verdict(
        tmp_path,
        train="srun: error: node01: task 0: Exited with exit code 4\n" + steps
        + f"{DAY} 04:10:05 training completed\n{DAY} 04:10:06 saved checkpoint to /ckpt/600\n",
    )  # fmt: skip

    assert (told.state, told.code) == ("healthy", "G1")


def test_many_hosts_at_once_behind_one_file_system(tmp_path: Path) -> None:
    """No host is to blame, and what they share is named."""
    failed = "".join(
        raised(h * 8, f"OSError: [Errno 116] Stale file handle: '/lustre/data/shard-{h:04d}'")
        for h in range(64)
    )
    told = verdict(tmp_path, train=STEPS + failed)

    assert (told.code, told.culprits, told.scope, told.domain) == (
        "C6", (), "shared", "/lustre/data",
    )  # fmt: skip


def test_a_link_is_blamed_where_its_own_kernel_lost_it(tmp_path: Path) -> None:
    """The ranks that name their peer are at both ends of the path."""
    named = "".join(
        f"node0{n}:4411:4620 [3] NCCL WARN NET/IB : Got completion from peer 10.1.0.{n}<45111>"
        " with status=12 opcode=32600 len=0 vendor err 129 (Recv) hca mlx5_3\n"
        for n in (1, 2)
    )
    kernel = "Mar  2 04:09:50 node02 kernel: mlx5_core 0000:5e:00.0 ib3: Link down\n"
    told = verdict(tmp_path, train=STEPS + named + watchdogs(range(8)), kernel=kernel)
    blind = verdict(tmp_path, kernel="")

    assert (told.code, {p.host for p in told.culprits}) == ("C5", {"node02"})
    assert (blind.code, blind.culprits) == ("C5", ())


def test_a_port_that_failed_is_no_gpus_fault(tmp_path: Path) -> None:
    """NCCL prints beside it which card the process has that lost it."""
    line = "node02:88121:88771 [3] NCCL WARN NET/IB : mlx5_3:1 async fatal event: port error\n"
    told = verdict(tmp_path, train=STEPS + line + watchdogs(range(8)))

    assert (told.code, told.culprits) == ("C5", (Place(host="node02", device="mlx5_3"),))


def test_a_peer_that_several_name_is_blamed(tmp_path: Path) -> None:
    named = "".join(
        f"node0{n}:4411:4620 [3] NCCL WARN NET/IB : Got completion from peer 10.1.0.9<45111>"
        " with status=12 opcode=32600 len=0 vendor err 129 (Recv) hca mlx5_3\n"
        for n in (1, 2, 3)
    )
    told = verdict(tmp_path, train=STEPS + named)

    assert (told.code, [p.host for p in told.culprits]) == ("C5", ["10.1.0.9"])
    assert all(action.command is None for action in told.actions)


def test_a_file_server_behind_the_timeouts(tmp_path: Path) -> None:
    kernel = "Mar  2 04:09:58 node01 kernel: nfs: server nas1 not responding, still trying\n"
    told = verdict(tmp_path, train=STEPS + watchdogs(range(8)), kernel=kernel)

    assert (told.code, roles(told)["C2"]) == ("C6", "consequence")


def test_a_rank_that_prepares_data_while_the_others_wait(tmp_path: Path) -> None:
    """Seven of eight time out in the first barrier; the eighth is rank 0, which prints on."""
    prep = "".join(f"{DAY} 04:{m:02d}:00,000 tokenizing shard {m}/400\n" for m in range(31))
    told = verdict(tmp_path, train=prep + watchdogs(range(1, 8), "04:31:01", 1_800_000))
    apart = tmp_path / "apart"
    apart.mkdir()
    own = {f"rank{r}": watchdogs([r], "04:31:01", 1_800_000) for r in range(1, 8)}

    assert (told.code, [p.rank for p in told.culprits]) == ("C2", [0])
    assert verdict(apart, **own).culprits == ()


def test_srun_kills_the_rest_of_a_step_that_one_task_left(tmp_path: Path) -> None:
    """It says so before; then SIGKILL is its own, and why the one task left is not known."""
    told = verdict(
        tmp_path,
        slurm="srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
        "srun: error: h1: tasks 0,2-3: Killed\n"
        "srun: Terminating StepId=38232896.0\n"
        "srun: error: h1: task 1: Exited with exit code 1\n",
    )

    assert told.state == "undetermined"


def test_a_ray_actor_that_cannot_be_reached_is_no_setting(tmp_path: Path) -> None:
    """The driver's exception is an echo of a worker that is gone."""
    told = verdict(
        tmp_path,
        driver="Traceback (most recent call last):\n"
        '  File "/app/main.py", line 46, in main\n    ray.get(runner.run.remote(config))\n'
        "ray.exceptions.ActorUnavailableError: The actor d5a1 is unavailable: RpcError\n"
        "(raylet) A worker died or was killed while executing a task by an unexpected system"
        " error. To troubleshoot the problem, check the logs for the dead worker.\n",
    )

    assert told.code in ("A2", None)


def test_an_exception_in_the_evaluation_after_a_step_is_no_start_up(tmp_path: Path) -> None:
    """The frames tell where the log has no line of progress."""
    told = verdict(
        tmp_path,
        train="Traceback (most recent call last):\n"
        '  File "/lib/transformers/trainer.py", line 2548, in _inner_training_loop\n'
        "    self._maybe_log_save_evaluate(\n"
        '  File "/lib/transformers/trainer.py", line 3005, in _maybe_log_save_evaluate\n'
        "    metrics = self._evaluate(trial, ignore_keys_for_eval)\n"
        "TypeError: iteration over a 0-d tensor\n",
    )

    assert (told.code, told.fault_class) == ("A3", "code")


def test_a_gpu_fault_after_losses_that_are_nan_is_its_own(tmp_path: Path) -> None:
    """NaN makes a program stop itself, and makes no kernel touch an unmapped page."""
    steps = "".join(f"[rank0]: step {i}/5000 loss {'nan' if i > 40 else 3.1}\n" for i in range(90))
    fault = (
        "Memory access fault by GPU node-1 (Agent handle: 0x5f6d730) on address 0x7fb5d8712000."
        " Reason: Page not present or supervisor privilege.\nAborted (core dumped)\n"
    )
    told = verdict(tmp_path, train=steps + fault)
    assert told.code == "A3"
    assert roles(told) == {"A3": "cause", "E1": "cause"}


def test_nccls_own_warning_names_the_call_its_exception_does_not(tmp_path: Path) -> None:
    """The exception says that some system call failed, the warning which; alone it is a guess."""
    (tmp_path / "train.err").write_text(
        "RuntimeError: NCCL error in: ../c10d/ProcessGroupNCCL.cpp:911, unhandled system error,"
        " NCCL version 2.7.8\n"
        "ncclSystemError: System call (socket, malloc, munmap, etc) failed.\n"
    )
    alone = verdict(tmp_path)
    (tmp_path / "nccl.log").write_text(
        "node4:3211:3290 [1] include/socket.h:403 NCCL WARN Connect to 10.20.3.7<51204> failed :"
        " Connection refused\n"
    )
    told = verdict(tmp_path)

    assert (alone.code, alone.confidence < 0.8) == ("C1", True)
    assert told.code == "C1"


def test_what_torch_raises_for_its_library_explains_nothing(tmp_path: Path) -> None:
    """Alone it says whose fault it is no more than its name does; what NCCL said last stands
    below it."""
    said = "[rank8]: torch.distributed.DistBackendError: NCCL error, ncclRemoteError\n"
    alone = verdict(tmp_path, rank8=said)
    told = verdict(
        tmp_path,
        rank8=said + "[rank8]: socketPollConnect: connect to 10.2.0.7<42307> returned Connection"
        " timed out, exceeded error retry count after 35 attempts\n",
    )

    assert (alone.state, told.code) == ("undetermined", "C1")


def _rank(n: int, end: str) -> str:
    return end.join((
        "".join(
            f"{DAY} 04:{i // 60:02d}:{i % 60:02d},000 | r{n} | world_size=3 step {i}/5000"
            f" loss {8 - i * 0.003:.4f}\n"
            for i in range(0, 600, 10)
        ),
        "Root Cause (first observed failure):\n[0]:\n"
        f"  time      : {DAY}_04:10:40\n  host      : node{n}\n"
        f"  rank      : {n} (local_rank: 0)\n  exitcode  : 1 (pid: 266{n})\n",
    ))  # fmt: skip


def _lost(n: int) -> str:
    return raised(n, "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:553]"
                     " Connection closed by peer [10.20.0.4]:41022")  # fmt: skip


def test_every_rank_lost_a_peer_and_none_had_gone(tmp_path: Path) -> None:
    """Between hosts something broke; a rank that says nothing may have died."""
    told = verdict(tmp_path, **{f"rank{n}": _rank(n, _lost(n)) for n in range(3)})
    silent = verdict(tmp_path, rank2=_rank(2, ""))

    assert (told.code, told.run.hosts) == ("C5", ("node0", "node1", "node2"))
    assert silent.code != "C5"
