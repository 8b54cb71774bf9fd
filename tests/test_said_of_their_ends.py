"""What icefall, ptxas, Determined, Moab, JAX and TensorFlow's profiler say of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

STEPS = "".join(f"step {n}/9000 loss {3 - n / 200:.3f}\n" for n in range(1, 40))
HEAD = "Traceback (most recent call last):\n"
FRAME = '  File "{}.py", line 7, in {}\n    {}\n'


def said(folder: Path, text: str) -> Verdict:
    (folder / "train.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


SCALED = HEAD + FRAME.format("train", "train_one_epoch", "raise RuntimeError(")
NEWER = HEAD + FRAME.format("icefall/err", "raise_grad_scale_is_too_small_error", "raise Run(")
KERNEL = HEAD + FRAME.format("triton/compiler", "make_cubin", "raise RuntimeError(error)")
PTXAS = KERNEL + "RuntimeError: `ptxas` failed with error code 255: \nptxas fatal   : {}\n"
TRIAL = (
    "<error>   [2026-05-28, 08:20:22] unexpected failure of trial after restart 5/5: container"
    " failed with non-zero exit code: container failed with non-zero exit code: {0} (exit code"
    ' {0})  trial-id="3" type="trial"\n'
)


@pytest.mark.parametrize(
    ("text", "code", "fault_class"),
    [
        (STEPS + SCALED + "RuntimeError: grad_scale is too small, exiting: 1.2e-11\n",
         "E1", "non-finite"),
        (STEPS + NEWER + "RuntimeError: \n        grad_scale is too small, exiting: 8.4e-22\n"
         "        ========================= NOTE =========================\n",
         "E1", "non-finite"),
        (STEPS + SCALED + "RuntimeError: grad_scale must be a float\n", "A3", None),
        (PTXAS.format("Value 'sm_121a' is not defined for option 'gpu-name'"), "A1", "env"),
        (PTXAS.format("Unresolved extern function 'f'"), "A1", "config"),
        (STEPS + TRIAL.format(137), "A2", "kill-unknown"),
        (STEPS + TRIAL.format(1), None, None),
    ],
    ids=["icefall", "icefall of today", "another word on the scale", "a card too new",
         "ptxas of something else", "killed", "left with an error"],
)  # fmt: skip
def test_how_it_ended(
    tmp_path: Path, text: str, code: str | None, fault_class: str | None
) -> None:
    verdict = said(tmp_path, text)

    assert verdict.code == code
    assert fault_class is None or verdict.fault_class == fault_class


MAIL = (
    "PBS Job Id: 99.head\nJob Name:   fold\nExec host:  {}\njob deleted\n"
    "Job deleted at request of root@head\njob preempted ({})\n"
)


@pytest.mark.parametrize(
    ("text", "code", "hosts"),
    [
        (MAIL.format("gpu-3-7/4", "node failure"), "F1", ["gpu-3-7"]),
        (MAIL.format("n01/0+n01/1", "node failure"), "F1", ["n01"]),
        (MAIL.format("n01/0+n02/0", "node failure"), "F1", []),
        (MAIL.format("gpu-3-7/4", "a job of higher priority"), None, []),
    ],
    ids=["one core", "several cores", "several hosts", "for another job"],
)
def test_a_node_that_moab_lost(
    tmp_path: Path, text: str, code: str | None, hosts: list[str]
) -> None:
    verdict = said(tmp_path, STEPS + text)

    assert verdict.code == code
    assert [place.host for place in verdict.culprits] == hosts


def test_the_abort_of_one_whom_the_coordinator_ended(tmp_path: Path) -> None:
    """It is accused of nothing: another one's heartbeats had stopped."""
    text = (
        "2026-01-15 16:03:15.140058: E external/org_tensorflow/tensorflow/core/"
        "distributed_runtime/coordination/coordination_service.cc:954] /job:jax_worker/replica:0/"
        "task:5 has been set to ERROR in coordination service: UNAVAILABLE: Task /job:jax_worker/"
        "replica:0/task:5 heartbeat timeout. This indicates that the remote task has failed, got"
        " preempted, or crashed unexpectedly.\n"
        "2026-01-15 16:03:15.188490: F external/org_tensorflow/tensorflow/compiler/xla/pjrt/"
        "distributed/client.h:75] Terminating process because the coordinator detected missing"
        " heartbeats. This most likely indicates that another task died; see the other task logs"
        " for more details.\nFatal Python error: Aborted\n"
    )
    verdict = said(tmp_path, STEPS + text)

    assert verdict.code == "C2"
    assert [place.task for place in verdict.culprits] == [5]


SAMPLED = (
    "Your program is {} input-bound because {}% of the total step time sampled is waiting for"
    " input. Therefore, you should first focus on reducing the input time.\n"
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (SAMPLED.format("HIGHLY", "71.3"), "D1"),
        (SAMPLED.format("HIGHLY", "24.0"), None),
        (SAMPLED.format("MODERATELY", "11.5"), None),
        (SAMPLED.format("HIGHLY", "71.3") + SAMPLED.format("HIGHLY", "21.0"), None),
    ],
    ids=["most of it", "a quarter", "little", "mended since"],
)
def test_what_a_profiler_says_of_input(tmp_path: Path, text: str, code: str | None) -> None:
    verdict = said(tmp_path, STEPS + text)

    assert verdict.code == code
