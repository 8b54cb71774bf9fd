"""One log that ends with a connection closed from the other end, and what would explain that."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

STEPS = [f"step {n} loss {4 - n / 10}" for n in range(1, 9)]
CLOSED = ("RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:575] Connection"
          " closed by peer [10.31.2.47]:20918")  # fmt: skip
TRACE = ["Traceback (most recent call last):", '  File "train.py", line 9, in <module>',
         "    dist.recv(x)", CLOSED]  # fmt: skip


def verdict(folder: Path, *lines: str, **others: str) -> Verdict:
    (folder / "rank4.log").write_text("\n".join(lines) + "\n")
    for name, text in others.items():
        (folder / f"{name}.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


def test_it_is_told_with_little_confidence_and_nobody_is_blamed(tmp_path: Path) -> None:
    found = verdict(tmp_path, "Writing partitioned embeddings", *TRACE)
    assert (found.code, found.attribution, found.culprits) == ("C5", "unknown", ())
    assert found.confidence < 0.8
    assert "had ended before" in " ".join(found.cannot_decide)


def test_a_run_that_had_made_steps_stopped_for_a_lost_peer(tmp_path: Path) -> None:
    found = verdict(tmp_path, *STEPS, *TRACE)
    assert (found.code, found.fault_class) == ("C2", "lost-peer")
    assert found.confidence < 0.8


NCCL_LAST = (
    "[rank6]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:268, {}",
    "[rank6]: Last error:",
    "[rank6]: socketProgressOpt: {}",
)
REMOTE = "remote process exited or there was a network error, NCCL version 2.22.3"


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("Call to recv from 10.8.2.6<40112> failed : Connection reset by peer", "C5"),
        ("Connection closed by remote peer n4.lan<40112>", "C2"),
    ],
)
def test_a_reset_shows_no_standstill(tmp_path: Path, how: str, code: str) -> None:
    """A process that ends by itself closes its connections in order."""
    last = [line.format(text) for line, text in zip(NCCL_LAST, (REMOTE, "", how), strict=True)]
    found = verdict(tmp_path, *STEPS, *last)

    assert (found.code, found.attribution, found.culprits) == (code, "unknown", ())
    assert found.confidence < 0.8


WRAPS = (
    "Traceback (most recent call last):",
    '  File "/x/torch/distributed/utils.py", line 118, in _verify_param_shape_across_processes',
    "    return dist._verify_params_across_processes(process_group, tensors, logger)",
    "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1275, {}",
)


@pytest.mark.parametrize(
    ("how", "code"),
    [
        (
            "internal error, NCCL version 2.14.3\nNet : Connection closed by remote peer n7<4110>",
            "C5",
        ),
        (
            "internal error, NCCL version 2.14.3\nCall to recv from n7<410> failed : Broken pipe",
            "C5",
        ),
        ("unhandled system error\nCall to connect to n7<410> failed : Connection refused", "C1"),
    ],
    ids=["closed", "broken", "refused"],
)
def test_who_closed_a_connection_of_nccl_had_met_the_others(
    tmp_path: Path, how: str, code: str
) -> None:
    """In the first collective: the store that they met at is another matter."""
    found = verdict(tmp_path, *WRAPS[:3], WRAPS[3].format(how))

    assert (found.code, found.confidence < 0.8) == (code, True)


@pytest.mark.parametrize(
    "other",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-01-02T10:10:10 DUE TO TIME LIMIT"
        " ***",
        "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-02T10:10:10 ***",
        "srun: error: n2: task 3: Killed",
    ],
)
def test_what_else_is_told_explains_it(tmp_path: Path, other: str) -> None:
    assert verdict(tmp_path, *STEPS, other, *TRACE).code != "C5"


def test_another_rank_s_log_would_show_what_it_was(tmp_path: Path) -> None:
    assert verdict(tmp_path, *STEPS, *TRACE, rank0="\n".join(STEPS) + "\n").code != "C5"


def test_a_run_that_went_on(tmp_path: Path) -> None:
    assert verdict(tmp_path, *STEPS[:3], CLOSED, *STEPS[3:]).code != "C5"


RESET = "node{}:15:91 [3] include/socket.h:398 NCCL WARN Call to {} failed : Connection reset by peer\n"  # noqa: E501


def test_each_of_two_logs_lost_its_peer(tmp_path: Path) -> None:
    """None of the two had gone before."""
    found = verdict(tmp_path, RESET.format(1, "write"), rank5=RESET.format(2, "recv"))
    assert (found.code, found.attribution) == ("C5", "unknown")
    assert found.confidence < 0.8


def test_a_traceback_without_its_end_explains_no_lost_peer(tmp_path: Path) -> None:
    """It is printed for it."""
    text = ["Last error:", "Net : Connection closed by remote peer node7<43236>",
            "Traceback (most recent call last):", '  File "train.py", line 9, in <module>',
            "    trainer.fit(model)", '  File "/x/trainer.py", line 529, in fit',
            "    call._call("]  # fmt: skip
    assert verdict(tmp_path, *text).code == "C5"


ENDED = "srun: error: n{0}: task {1}: {2}"
CODE = "Exited with exit code {}"


@pytest.mark.parametrize(
    "line",
    [
        ENDED.format(2, 4, CODE.format(1)),
        "ERROR:composer.cli.launcher:Rank 4 crashed with exit code 1.",
    ],
)
def test_that_who_lost_its_peer_ended_with_an_error_hides_nothing(
    tmp_path: Path, line: str
) -> None:
    """It is what such an error does."""
    found = verdict(tmp_path, "Writing partitioned embeddings", *TRACE, line)

    assert (found.code, found.attribution, found.culprits) == ("C5", "unknown", ())
    assert found.confidence < 0.8


@pytest.mark.parametrize(
    "ends",
    [
        (ENDED.format(2, 4, "Killed"),),
        (ENDED.format(2, 4, "Terminated"),),
        (ENDED.format(2, 4, "Segmentation fault (core dumped)"),),
        (ENDED.format(2, 4, CODE.format(2)),),
        (ENDED.format(2, 4, CODE.format(137)),),
        (ENDED.format(2, 4, CODE.format(1)), ENDED.format(1, 0, CODE.format(1))),
    ],
    ids=["killed", "ended", "crashed", "another code", "killed in a shell", "another as well"],
)
def test_other_ends_say_what_went(tmp_path: Path, ends: tuple[str, ...]) -> None:
    """A signal, a code of its own, or a process of which there is no log."""
    assert verdict(tmp_path, "Writing partitioned embeddings", *TRACE, *ends).code != "C5"


def test_both_of_two_ended_with_an_error(tmp_path: Path) -> None:
    """Each in its own log."""
    reset = [RESET.format(n, "recv") + ENDED.format(n, n - 1, CODE.format(1)) for n in (1, 2)]

    assert verdict(tmp_path, reset[0], rank5=reset[1] + "\n").code == "C5"
