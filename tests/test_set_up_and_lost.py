"""Connections between processes, and processes that are gone: what their lines decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

STEPS = tuple(f"step {n} loss {4 - n / 10}" for n in range(1, 9))
PAIR = "n7:41:77 [1] misc/ibvwrap.cc:284 NCCL WARN Call to ibv_modify_qp failed with {}"
CLOSED = "tensorflow.python.framework.errors_impl.UnavailableError: Socket closed"
ABORTING = (
    "2022-03-04 05:06:07.123456: E tensorflow/core/common_runtime/ring_reducer.cc:369] Aborting"
    " RingReduce with Unavailable: Socket closed"
)
ABORTED = "*** SIGABRT received by PID 811 (TID 811) on cpu 3 from PID 811; stack trace: ***"
GONE = (
    "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR"
    " Worker exit detail: Worker unexp"
)
DIED = "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task."
RAISED = (
    "Traceback (most recent call last):",
    '  File "train.py", line 9, in <module>',
    "    main()",
)


def verdict(folder: Path, *lines: str) -> Verdict:
    (folder / "job.log").write_text("\n".join(lines) + "\n")
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ((PAIR.format("error Invalid argument"),), "C1"),
        ((PAIR.format("22 Invalid argument, on dev mlx5_2:1"),), "C1"),
        ((PAIR.format("error Cannot allocate memory"),), "A1"),
        ((PAIR.format("12 Cannot allocate memory, on dev mlx5_2:1"),), "A1"),
        ((*STEPS, PAIR.format("22 Invalid argument, on dev mlx5_2:1")), "C5"),
        (("n7:41:77 [1] NCCL WARN nvmlDeviceGetHandleByPciBusId() failed: Not Found",), "A1"),
        (("At least one pair of MPI processes are unable to reach each other for",), "F4"),
        ((*RAISED, CLOSED), "C5"),
        ((*STEPS, *RAISED, CLOSED), "C2"),
        ((*STEPS, ABORTING), "C2"),
        ((ABORTED,), "A2"),
        ((*RAISED, DIED, GONE), "A2"),
    ],
)
def test_what_it_is_and_never_surely(tmp_path: Path, lines: tuple[str, ...], code: str) -> None:
    """Each looks like something else as well."""
    found = verdict(tmp_path, *lines)
    assert (found.code, found.confidence < 0.8) == (code, True)


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (("F0224 19:21:00.123456   811 fusion.cc:82] Check failed: a == b (2 vs. 1)", ABORTED),
         "A2"),
        ((*RAISED, "KeyError: 'labels'", ABORTED), "A1"),
        ((*STEPS, *RAISED, "KeyError: 'labels'", ABORTED), "A3"),
        ((*STEPS, "ValueError: no such shard", *RAISED, "ValueError: no such shard", GONE), "A3"),
        ((*STEPS, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
          ABORTING), "B1"),
    ],
)  # fmt: skip
def test_what_came_before_explains_it(tmp_path: Path, lines: tuple[str, ...], code: str) -> None:
    """A failed check, an exception, a full card."""
    assert verdict(tmp_path, *lines).code == code


@pytest.mark.parametrize(
    "line",
    [
        "W base_collective_executor.cc:217] BaseCollectiveExecutor::StartAbort Out of range: End"
        " of sequence",
        "n7:41:77 [1] misc/nvmlwrap.cc:230 NCCL WARN nvmlDeviceGetNvLinkState() failed: Not"
        " Supported",
        "*** SIGTERM received by PID 811 (TID 811) on cpu 3 from PID 1; stack trace: ***",
    ],
)
def test_lines_alike_that_decide_nothing(tmp_path: Path, line: str) -> None:
    """The end of the data, a link that a card lacks, somebody's SIGTERM."""
    assert verdict(tmp_path, *STEPS, line).code not in ("A1", "A2", "C2", "C5")
