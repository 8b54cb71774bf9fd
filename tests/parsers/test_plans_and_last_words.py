"""Plans that no line states, and ends that are told in a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict


def judged(folder: Path, text: str) -> Verdict:
    (folder / "train.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


def clock(seconds: int) -> str:
    return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def detected(epochs: int, of: int = 6, slow: int = 1) -> str:
    """Half a second a step, `slow` times as long in the last three lines; 620 steps an epoch."""
    rows = []
    for n in range(12 * epochs):
        epoch, at = n // 12, n % 12 * 50 + 50
        left = (of * 620 - epoch * 620 - at) // 2
        took = 0.5 * (slow if n >= 12 * epochs - 3 else 1)
        rows.append(
            f"05/02 10:{n // 2 % 60:02d}:00 - mmengine - INFO - Epoch(train) "
            f" [{epoch + 1}][{at:3d}/620]  lr: 1e-4  eta: {clock(left)}  time: {took:.4f}"
            f"  data_time: 0.01  loss: {2 * 0.98**n:.4f}\n"
        )
    return "".join(rows)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (detected(6), "G1"),
        (detected(4), None),
        (detected(4, slow=3), None),
        ("".join(detected(6).splitlines(True)[:-6]), None),
    ],
    ids=["all", "two epochs left", "slower at the last", "within the last"],
)
def test_the_time_left_tells_the_last_epoch(tmp_path: Path, text: str, code: str | None) -> None:
    """It is that of all steps to come."""
    assert judged(tmp_path, text).code == code


def recognised(epochs: int, of: int, each: int = 40) -> str:
    return "".join(
        f"[2026/03/02 10:{n // 12 % 60:02d}:{n % 12 * 5:02d}] ppocr INFO: epoch:"
        f" [{(10 * n - 1) // each + 1}/{of}], global_step: {10 * n}, lr: 0.0005, loss:"
        f" {30 * 0.98**n:.4f}, avg_batch_cost: 0.2 s, ips: 600.1 samples/s\n"
        for n in range(1, each * epochs // 10 + 1)
    )


@pytest.mark.parametrize(("epochs", "code"), [(20, "G1"), (19, None)])
def test_the_length_of_an_epoch_by_the_steps_of_many(
    tmp_path: Path, epochs: int, code: str | None
) -> None:
    """Between two lines ten lengths fit one epoch; over many only one does."""
    assert judged(tmp_path, recognised(epochs, 20)).code == code


SIMPLE = (
    "Epoch {}/9, Steps: {:3d}%|###       | {}/1800 [{}<{},  2.00s/it, lr=1e-4, step_loss={:.4f}]\n"
)
TOLD = "***** Running training *****\n-  Num Epochs = 9\n  - Total optimization steps = 1800\n"


def tuned(last: int) -> str:
    return TOLD + "".join(
        SIMPLE.format(
            n // 300 + 1, n // 18, n, clock(2 * n), clock(3600 - 2 * n), 1 / (2 + n / 90)
        )
        for n in range(20, last + 1, 20)
    )


@pytest.mark.parametrize(("last", "code"), [(1800, "G1"), (900, None)])
def test_a_bar_of_all_epochs(tmp_path: Path, last: int, code: str | None) -> None:
    """Its label names the epoch; what it counts is the run."""
    assert judged(tmp_path, tuned(last)).code == code


def noted(made: int, last: str) -> str:
    rows = "".join(
        f"\x1b[35m[{n}]\x1b[0m training_loss = {7 * 0.97 ** (n // 50):.5f}\n"
        f"\x1b[35m[{n}]\x1b[0m img/sec/core = 801.2\n"
        for n in range(50, made + 1, 50)
    )
    return rows + f"NOTE: val evaluation...\n{last}"


@pytest.mark.parametrize(
    ("last", "code"),
    [
        ("NOTE: Steps:5030/5030 [100.0%]\nNOTE: Done!\n", "G1"),
        ("NOTE: Steps:5030/9000 [55.9%]\nNOTE: Done!\n", None),
        ("NOTE: Done!\n", None),
    ],
)
def test_a_count_of_all_steps_and_a_bare_word(tmp_path: Path, last: str, code: str | None) -> None:
    assert judged(tmp_path, noted(5000, last)).code == code


def shown(images: int) -> str:
    rows = "".join(
        f"Status: Training  {n} Mimg  time 0d 0{n // 60}h {n % 60:02d}m  sec/tick 60.1"
        f"  loss {0.8 * 0.98**n + 0.3:.4f}  gpumem 40.1 GB\n"
        for n in range(0, images + 1, 2)
    )
    return "Training for 200.0 Mimg...\n" + rows


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (shown(200) + "\nExiting...\n", "G1"),
        (shown(120) + "\nExiting...\n", None),
        (shown(200) + "\nAborting...\nExiting...\n", None),
        (shown(120), None),
    ],
)
def test_as_many_images_as_were_planned(tmp_path: Path, text: str, code: str | None) -> None:
    """EDM2 leaves by the same word where it is stopped."""
    assert judged(tmp_path, text).code == code


def played(rising: bool, end: str) -> str:
    return "".join(
        f"global_step={97 * n}, episodic_return=[{5 + n * rising + 8.0 * (n * 7 % 5)}]\n"
        for n in range(1, 400)
    ) + end  # fmt: skip


SUCCESS = "wandb: Waiting for W&B process to finish... (success).\nwandb:   charts/SPS 2100\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (played(True, SUCCESS), "G1"),
        (played(False, SUCCESS), None),
        (played(True, SUCCESS.replace("success", "failed 1")), None),
        (played(True, ""), None),
        (SUCCESS, None),
    ],
)
def test_episodes_and_the_tracker(tmp_path: Path, text: str, code: str | None) -> None:
    """Single returns scatter; their level rose and stayed."""
    assert judged(tmp_path, text).code == code


UNEVEN = (
    "2026-02-14 10:20:23,558 INFO Detected uneven workload distribution:"
    " [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 30000ms for"
    " recv operation to complete\nBreak current worker to manually join all workers, world_size 8,"
    " current rank {0}, current local_rank {0}\n"
)
WENET = (
    "2026-02-14 1{}:{:02d}:00,558 DEBUG TRAIN | steps/sec 2.3| Batch {}/{} loss {:.4f}"
    " loss_ctc 9.1 lr 0.0004 rank 0\n"
)
CV = "2026-02-14 15:51:20,558 INFO Epoch 3 CV info cv_loss 8.8 rank 0 acc 0.9\n"
FINAL = "2026-02-14 15:52:20,558 INFO Epoch 3 Training finished; final model exp/x/final.pt\n"


def heard() -> str:
    return "".join(
        WENET.format(epoch, n, epoch, 100 * n, 90 * 0.97 ** (20 * epoch + n))
        + (UNEVEN.format(3) + UNEVEN.format(6) if n == 19 else "")
        for epoch in range(4) for n in range(20)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (CV + FINAL, "G1"),
        (CV, None),  # nothing tells how many epochs there are
        (UNEVEN.replace("Detected uneven workload distribution", "RuntimeError").format(1), "C2"),
    ],
)
def test_workers_that_join_at_the_end_of_an_epoch(
    tmp_path: Path, end: str, code: str | None
) -> None:
    """WeNet's barrier times out by design; the same words raised are a failure."""
    assert judged(tmp_path, heard() + end).code == code
