"""Groups of processes that were never made, by what NCCL, Horovod and torch say of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

STEPS = tuple(f"step {n} loss {4 - n / 10}" for n in range(1, 9))
HEAD = ("Traceback (most recent call last):", '  File "train.py", line 61, in <module>')
REDUCED = (*HEAD, "    dist.all_reduce(seen)")
CHECK = (
    "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/"
    "NCCLUtils.hpp:317, internal error - please report this issue to the NCCL developers,"
    " NCCL version 2.21.5"
)
CALL = CHECK.replace(
    "internal error - please report this issue to the NCCL developers",
    "unhandled system error (run with NCCL_DEBUG=INFO for details)",
)
GONE = CHECK.replace(
    "internal error - please report this issue to the NCCL developers",
    "remote process exited or there was a network error",
)
DOOR = (
    *HEAD,
    '    dist.init_process_group("nccl")',
    '  File "/venv/torch/distributed/distributed_c10d.py", line 402, in init_process_group',
    "    store, rank, world_size = next(rendezvous(url))",
    '  File "/venv/torch/distributed/rendezvous.py", line 143, in _env_rendezvous_handler',
    "    store = TCPStore(addr, port, world_size, start_daemon)",
)
HOROVOD = (
    "horovod.common.exceptions.HorovodInternalError: ncclCommInitRank failed: unhandled {} error"
)
NO_NET = "graph/topo.h:230 NCCL WARN Could not find NET with id 0"


def verdict(folder: Path, *lines: str) -> Verdict:
    (folder / "job.log").write_text("\n".join(lines) + "\n")
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("lines", "code", "fault_class"),
    [
        ((*REDUCED, CHECK, "ncclInternalError: Internal check failed."), "C1", None),
        ((*REDUCED, CALL), "C1", None),
        ((NO_NET, *REDUCED, CHECK), "C1", None),
        ((*DOOR, "RuntimeError: Connection timed out"), "C1", None),
        ((*DOOR, "socket.gaierror: [Errno -2] Name or service not known"), "C1", None),
        ((*HEAD, "    hvd.init()", HOROVOD.format("system")), "C1", None),
        ((*HEAD, "    hvd.init()", HOROVOD.format("cuda")), "A1", "env"),
        ((*STEPS, *HEAD, "    hvd.allreduce(x)", HOROVOD.format("system")), "C5", None),
        ((*STEPS, *REDUCED, CALL), "C5", None),
    ],
)
def test_what_could_not_be_made(
    tmp_path: Path, lines: tuple[str, ...], code: str, fault_class: str | None
) -> None:
    """Which call failed, or why, none of them says."""
    found = verdict(tmp_path, *lines)
    assert (found.code, found.fault_class) == (code, fault_class)
    assert found.confidence < 0.8


@pytest.mark.parametrize(
    "lines",
    [
        (*STEPS, *REDUCED, CHECK),
        (*HEAD, "    self.on_train_epoch_end()", *REDUCED[1:], CHECK),
        (*REDUCED, GONE, CHECK),
        (*REDUCED, CHECK, "srun: error: node3: task 5: Killed"),
    ],
)
def test_a_check_that_may_have_failed_for_a_lost_peer(
    tmp_path: Path, lines: tuple[str, ...]
) -> None:
    assert verdict(tmp_path, *lines).code != "C1"


def test_a_store_that_a_program_asks_later(tmp_path: Path) -> None:
    """The same words out of another call are no rendezvous."""
    found = verdict(tmp_path, *HEAD, "    db.connect()", "RuntimeError: Connection timed out")
    assert found.code == "A1"


def test_what_a_warning_says_of_failures_is_none(tmp_path: Path) -> None:
    """A log's last words, in a warning of what could come."""
    found = verdict(
        tmp_path,
        "INFO: building the trainer",
        "/venv/trainer.py:256: UserWarning: with `auto` a trial may fail with CUDA out of memory",
        "INFO: seed 17",
    )
    assert found.state == "undetermined"


def test_a_job_that_slurm_refuses_submitit(tmp_path: Path) -> None:
    refused = (
        "submitit.core.utils.FailedJobError: sbatch: error: --gres=gpu:8 is not accepted here"
    )
    found = verdict(tmp_path, *HEAD, "    executor.submit(main)", refused)
    assert (found.code, found.attribution) == ("F4", "job")


def test_a_checkpoint_to_go_on_from_that_is_not_there(tmp_path: Path) -> None:
    said = "UserWarning: No checkpoint file exists at `resume_from_checkpoint`. Start from scratch"
    found = verdict(tmp_path, "GPU available: True", said)
    assert (found.code, found.confidence < 0.8) == ("E2", True)


STORE_LOST = (
    "[W1102 11:20:14.001 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=84,"
    " addr=[node09]:32259, remote=[node07]:29500): Connection reset by peer"
)
CANNOT = (
    "[W1102 11:20:14.101 TCPStore.cpp:340] [c10d] TCP client failed to connect/validate to host"
    " 10.1.4.7:29500 - retrying (try=0, timeout=60000ms, delay=448ms): Connection reset by peer"
)
EXITED = "srun: error: node9: task 0: Exited with exit code 1"


@pytest.mark.parametrize(
    "behind", [(), ("torch.distributed.DistNetworkError: Connection reset by peer",), (EXITED,)]
)
def test_a_store_whose_connection_breaks_as_it_is_made(
    tmp_path: Path, behind: tuple[str, ...]
) -> None:
    """A process connects to it once, before its group is made."""
    found = verdict(tmp_path, "starting", STORE_LOST, CANNOT, *behind)

    assert (found.code, found.confidence < 0.8) == ("C1", True)
    assert "connection to its store broke off" in found.headline
    assert "NCCL" not in found.headline


@pytest.mark.parametrize(
    "lines",
    [
        (*STEPS, STORE_LOST, CANNOT),
        ("starting", STORE_LOST),
        ("starting", CANNOT),
        (*(f"shard {n} was read" for n in range(70)), STORE_LOST, CANNOT),
        ("starting", STORE_LOST, *(f"shard {n} was read" for n in range(30)), CANNOT),
        ("starting", STORE_LOST, CANNOT, EXITED.replace("Exited with exit code 1", "Killed")),
    ],
    ids=["after steps", "it was connected", "it tries again", "at work", "long before", "killed"],
)
def test_near_misses_of_a_store_that_breaks_off(tmp_path: Path, lines: tuple[str, ...]) -> None:
    assert verdict(tmp_path, *lines).code != "C1"
