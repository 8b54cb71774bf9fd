"""Ends of runs as launchers, schedulers and clouds tell them, and what looks like one."""

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

SRUN = (
    "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
    "slurmstepd: error: *** STEP 1594.0 ON n8 CANCELLED AT 2026-02-27T11:22:33 ***\n"
    "srun: error: n8: task 0: Killed\n"
)
CUT = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 9, in <module>\n    loss = step()\n'
    '  File "train.py", line 5, in step\n    out = model(x)\n'
)


def said(tmp_path: Path, text: str) -> Verdict:
    (tmp_path / "train.log").write_text(text)
    return diagnose(collect(Request((str(tmp_path),))))


def test_a_cancel_that_follows_an_overrun_memory_limit_is_no_other_cause(tmp_path: Path) -> None:
    limit = (
        "slurmstepd: error: Step 1594.0 exceeded memory limit (6776728 > 6291456), being killed\n"
    )
    verdict = said(tmp_path, limit + SRUN)

    assert (verdict.code, verdict.fault_class) == ("A2", "cgroup-oom")
    (tmp_path / "train.log").write_text(SRUN)
    assert diagnose(collect(Request((str(tmp_path),)))).state == "undetermined"


def test_tasks_that_srun_kills_as_it_is_told_to_end_were_cancelled(tmp_path: Path) -> None:
    verdict = said(
        tmp_path,
        "c4 4572/4572\nsrun: forcing job termination\n"
        + SRUN.replace("CANCELLED AT 2026-02-27T11:22:33", "CANCELLED AT 2026-02-27T11:22:33 DUE"
                       " to SIGNAL Killed"),
    )  # fmt: skip

    assert verdict.state == "undetermined"
    assert "cancelled" in verdict.headline


def test_a_revoked_allocation_met_its_limit(tmp_path: Path) -> None:
    revoked = "salloc: Job 255 has exceeded its time limit and its allocation has been revoked.\n"
    verdict = said(tmp_path, revoked + "srun: forcing job termination\n" + SRUN)

    assert verdict.state == "undetermined"
    assert "time limit" in verdict.headline


def test_a_spawned_process_that_was_killed_is_a_kill(tmp_path: Path) -> None:
    verdict = said(
        tmp_path,
        CUT + "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with"
        " signal SIGKILL\n",
    )

    assert (verdict.code, verdict.fault_class) == ("A2", "kill-unknown")


def test_a_spawned_process_that_left_by_itself_is_no_kill(tmp_path: Path) -> None:
    verdict = said(
        tmp_path,
        CUT + "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with"
        " exit code 1\n",
    )

    assert verdict.code != "A2"


@pytest.mark.parametrize(
    ("code", "crashed"),
    [("3221225477", True), ("-1073740791", True), ("3221225781", False), ("3221225786", False)],
    ids=["access violation", "stack overrun", "no such library", "Ctrl-C"],
)
def test_a_spawned_process_that_crashed_on_windows(
    tmp_path: Path, code: str, crashed: bool
) -> None:
    verdict = said(
        tmp_path,
        CUT + "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with"
        f" exit code {code}\n",
    )

    assert (verdict.fault_class in ("segv", "abort")) is crashed


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("out of memory", "B1"),
        ("misaligned address", "A3"),
        ("invalid argument", None),
        ("3 buffers out of memory", None),
    ],
)
def test_the_words_of_cuda_below_where_it_failed(
    tmp_path: Path, words: str, code: str | None
) -> None:
    text = f"allocating 9 MiB for parameters\n[CUDA ERROR] at file run.cu:77:\n{words}\n"
    found = said(tmp_path, text).code
    assert found == code or (code is None and found not in ("B1", "A3"))


def test_a_machine_the_cloud_takes_back_is_a_preemption(tmp_path: Path) -> None:
    verdict = said(
        tmp_path,
        "2026-12-17 16:03:58 start-worker GCP Metadata Service says termination is imminent\n",
    )

    assert verdict.code == "F2"


def test_a_second_launch_on_the_port_of_a_run_that_goes_on_ended_nothing(tmp_path: Path) -> None:
    """BasicSR's lines, of the run that holds the port."""
    step = (
        "2026-02-04 22:{m:02d}:09,911 INFO: [basel..][epoch: {e:2d}, iter: {n:7,d},"
        " lr:(3.000e-05,)] [eta: 4:06:17, time (data): 1.663 (0.247)] l_pix: {loss:.4e} \n"
    )
    steps = [step.format(m=n, e=n, n=n * 100, loss=0.3 / (n + 1)) for n in range(1, 12)]
    port = (
        "RuntimeError: The server socket has failed to listen on any local network address."
        " port: 4321, useIpv6: 0, code: -98, name: EADDRINUSE, message: address already in use\n"
    )

    assert said(tmp_path, "".join([*steps[:3], CUT, port, *steps[3:]])).state != "found"
    assert said(tmp_path, CUT + port).code == "C1"


def test_an_exception_whose_name_is_cut_off_is_not_given_an_empty_one(tmp_path: Path) -> None:
    losses = "".join(f"step {n} loss {3 - n / 9:.3f}\n" for n in range(6))
    verdict = said(tmp_path, losses + CUT)

    assert verdict.code == "A3"
    assert "its name is cut off" in verdict.headline


def test_a_checkpoint_that_cannot_be_written_is_io_after_steps(tmp_path: Path) -> None:
    verdict = said(
        tmp_path,
        CUT.replace("out = model(x)", "torch.save({'model': net.state_dict()}, path)")
        + '  File "/opt/site-packages/torch/serialization.py", line 287, in __init__\n'
        "    super().__init__(torch._C.PyTorchFileWriter(str(name)))\n"
        "RuntimeError: File out/checkpoint_0.pt cannot be opened.\n",
    )

    assert (verdict.code, verdict.fault_class) == ("A3", "io")


@pytest.mark.parametrize(
    ("line", "killed"),
    [
        ("RuntimeError: Some background worker is 6 feet under. Yuck.", False),
        ("RuntimeError: DataLoader worker (pid(s) 6139, 8530) exited unexpectedly", False),
        ("RuntimeError: DataLoader worker (pid 6139) is killed by signal: Killed.", True),
    ],
)
def test_a_process_that_is_gone_is_not_said_to_be_killed(
    tmp_path: Path, line: str, killed: bool
) -> None:
    """No signal is claimed that no line shows."""
    steps = "".join(f"step {n}/900 loss {2 + 9 / n:.4f}\n" for n in range(1, 60))
    verdict = said(tmp_path, f"{steps}{line}\n")

    told = " ".join([verdict.headline, *(one.text for one in (*verdict.shows, *verdict.implies))])
    assert (verdict.code, verdict.fault_class) == ("A2", "kill-unknown")
    assert ("SIGKILL" in told) == killed
