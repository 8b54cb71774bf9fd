"""Nodes given up while at work, children ended alone, GPUs looked at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Place, Verdict
from flatline.render.json import render
from flatline.verify import verify

DRIVER = (
    "epoch 6 step 3200 loss 0.41\nepoch 6 step 3300 loss 0.40\n"
    "2026-07-08 19:20:37,812 WARNING worker.py:1123 -- The node with node id: 5c22b9 and address:"
    " 10.1.0.4 and node name: 10.1.0.4 has been marked dead because the detector has missed too"
    " many heartbeats from it.\n"
    "Traceback (most recent call last):\n"
    '  File "tune.py", line 88, in <module>\n    ray.get(trainers)\n'
    "ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task.\n"
)
LEFT = (
    "[2026-07-08 19:20:38,019 C 84 84] (raylet) node_manager.cc:1027: [Timeout] Exiting because"
    " this node manager has mistakenly been marked as dead by the GCS: GCS failed to check the"
    " health of this node for 5 times.\n"
)
WORKED = (
    "[2026-07-08 19:20:{s},004 I 84 84] (raylet) local_object_manager.cc:490: Restored 22 MiB,"
    " 4 objects, write throughput 118 MiB/s\n"
)


def said(folder: Path, **files: str) -> Verdict:
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    return diagnose(collect(Request((str(folder),))))


def test_a_node_that_ray_gave_up_while_its_raylet_worked(tmp_path: Path) -> None:
    verdict = said(tmp_path, driver=DRIVER,
                   raylet=WORKED.format(s=20) + WORKED.format(s=31) + LEFT)  # fmt: skip

    assert verdict.code == "C4"
    assert verdict.confidence < 0.8
    assert verdict.cleared == (Place(host="10.1.0.4"),)
    assert all(check.ok for check in verify(json.loads(render(verdict)), (str(tmp_path),)))


def test_a_raylet_that_stood_still_until_it_left_proves_no_work(tmp_path: Path) -> None:
    """Nor is its host down: it ran to say so."""
    verdict = said(tmp_path, driver=DRIVER, raylet=WORKED.format(s="01") + LEFT)

    assert verdict.state == "undetermined"


def test_a_node_that_ray_gave_up_and_that_said_nothing_is_down(tmp_path: Path) -> None:
    assert said(tmp_path, driver=DRIVER).code == "F1"


STEPS = "".join(f"{{'loss': {1.3 - n / 100}, 'learning_rate': 0.0001, 'epoch': 0.0{n}}}\n"
                for n in range(1, 8))  # fmt: skip
RAISED = (
    "Traceback (most recent call last):\n"
    '  File "/venv/bin/accelerate", line 8, in <module>\n    sys.exit(main())\n'
    "subprocess.CalledProcessError: Command '['/venv/bin/python', 'train.py']' died with"
    " <Signals.SIGTERM: 15>.\n"
)


def test_a_child_that_its_launcher_outlived_was_ended_alone(tmp_path: Path) -> None:
    verdict = said(tmp_path, train=STEPS + RAISED)

    assert (verdict.code, verdict.fault_class) == ("A2", "kill-unknown")
    assert verdict.confidence < 0.8
    assert "SIGTERM" in verdict.headline
    assert "SIGKILL" not in str(verdict)


def test_a_child_that_is_ended_as_the_job_is_cancelled_was_not(tmp_path: Path) -> None:
    cancel = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-04-14T16:20:46 ***\n"

    assert said(tmp_path, train=STEPS + cancel + RAISED).state == "undetermined"


TABLE = """Thu Mar 28 {at} 2026
+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 535.161.07             Driver Version: 535.161.07   CUDA Version: 12.2     |
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |
|                                         |                      |               MIG M. |
|=========================================+======================+======================|
|   0  NVIDIA RTX A5000               Off | 00000000:3B:00.0 Off |                  Off |
| 30%   33C    P8              21W / 230W |   {held}MiB / 24564MiB |      {busy}%      Default |
|                                         |                      |                  N/A |
+-----------------------------------------+----------------------+----------------------+
"""
EPOCHS = "".join(f"2026-03-28 13:{10 + 3 * n}:00 epoch {n} loss {2.0 - n / 10:.2f}\n"
                 for n in range(8))  # fmt: skip


@pytest.mark.parametrize(
    ("at", "held", "busy", "wanted"),
    [
        ("17:31:40", 8231, 0, "found"),
        ("17:31:40", 8231, 97, "undetermined"),
        ("17:31:40", 214, 0, "undetermined"),
        ("13:49:40", 8231, 0, "undetermined"),
    ],
)
def test_a_gpu_that_was_looked_at_once(
    tmp_path: Path, at: str, held: int, busy: int, wanted: str
) -> None:
    """Long after the last line, with memory held and nothing run, it is a hang; never surely."""
    smi = TABLE.format(at=at, held=held, busy=busy)
    (tmp_path / "train.log").write_text(EPOCHS)
    verdict = said(tmp_path, nvidia=smi)

    assert verdict.state == wanted
    if wanted == "found":
        assert verdict.code == "C3"
        assert verdict.confidence < 0.8


LOST = (
    "2026-08-26 03:53:44.810220: E external/xla/xla/service/gpu/nccl_utils.cc:191] Aborting"
    " communicator: 0x5555 due to async NCCL error: remote process exited or there was a network"
    " error\n"
)
SEGV = "Fatal Python error: Segmentation fault\n\nThread 0x0000 (most recent call first):\n"


def test_native_code_that_fails_as_a_lost_peer_is_left(tmp_path: Path) -> None:
    """Whose process ended, or whether the network broke, is not told; another rank's line is no
    reason for this one."""
    (tmp_path / "rank17.err").write_text(LOST + SEGV)
    (tmp_path / "rank40.err").write_text(LOST)
    assert diagnose(collect(Request((str(tmp_path),)))).code != "A2"

    (tmp_path / "rank17.err").write_text(SEGV)
    assert diagnose(collect(Request((str(tmp_path),)))).code == "A2"


def iteration(n: int, planned: int = 20) -> str:
    return (
        f" [2026-04-21 01:{n:02d}:00] iteration {n:8d}/{planned:8d} | consumed samples:"
        f" {n * 512:9d} | elapsed time per iteration (ms): 59000.0 | lm loss: {9 - n / 5:.6E}"
        " | grad norm: 0.5 |\n"
    )


def test_a_gpu_that_a_run_still_holds_once_its_last_epoch_was_made(tmp_path: Path) -> None:
    """So does a notebook."""
    (tmp_path / "train.log").write_text(
        "".join(f"2026-03-28 13:{10 + 3 * n}:00 Epoch {n}/8 loss {2.0 - n / 10:.2f}\n"
                for n in range(1, 9))
    )  # fmt: skip

    assert said(tmp_path, nvidia=TABLE.format(at="17:31:40", held=8231, busy=0)).code != "C3"


DONE = "[after training is done] datetime: 2026-04-21 01:20:08\n"
LIMIT = (
    "[2026-04-21T01:{at}:05.017] error: *** STEP 7.0 ON n1 CANCELLED AT"
    " 2026-04-21T01:{at}:05 DUE TO TIME LIMIT ***\n"
)


def test_processes_that_hold_on_after_training_was_done(tmp_path: Path) -> None:
    """What was planned was made; without the program's word on its end it stays open."""
    steps = "".join(map(iteration, range(1, 21)))
    verdict = said(tmp_path, train=steps + DONE + LIMIT.format(at=29))

    assert verdict.state == "healthy"
    assert verdict.confidence < 0.8
    assert "held on until the time limit" in verdict.headline

    cut = "".join(iteration(n, planned=40) for n in range(1, 21))
    assert said(tmp_path, train=cut + DONE + LIMIT.format(at=29)).state != "healthy"
