"""DeepSpeed's own lines."""

from __future__ import annotations

import re

import pytest

from flatline.model import Progress
from flatline.parsers import deepspeed


def said(line: str) -> list[Progress]:
    values = list(deepspeed.Reader().feed(line))
    assert not values or any(re.search(t, line) for t in deepspeed.TRIGGERS), line
    return values


@pytest.mark.parametrize("loss", ["2.5", "nan", "inf"])
def test_the_pipeline_line(loss: str) -> None:
    """Step, loss, seconds and samples per second."""
    (point,) = said(f"steps: 10 loss: {loss} iter time (s): 0.512 samples/sec: 12.25")
    assert (point.step, str(point.loss), point.step_s) == (10, str(float(loss)), 0.512)
    assert (point.throughput, point.throughput_unit) == (12.25, "samples/s")


def test_what_a_program_adds_to_the_pipeline_line() -> None:
    """Seconds of a step spent waiting for data."""
    (point,) = said(
        "steps: 5 loss: 9.7 iter time (s): 6.031 samples/sec: 21.2 data time (s): 2.95"
    )
    assert (point.step_s, point.data_s) == (6.031, 2.95)


def test_the_optimizer_line_names_a_step_and_a_rate() -> None:
    """It has no loss."""
    (point,) = said(
        "[2026-01-01 06:58:56,121] [INFO] [logging.py:96:log_dist] [Rank 0] step=20, skipped=17, "
        "lr=[5e-05, 5e-05], mom=[(0.9, 0.999)]"
    )
    assert (point.step, point.lr, point.loss) == (20, 5e-05, None)


@pytest.mark.parametrize(
    ("step", "skipped", "lost"), [(2000, 1995, True), (2000, 400, False), (30, 28, False)]
)
def test_the_optimizer_line_counts_what_was_skipped(step: int, skipped: int, lost: bool) -> None:
    """A scaler that seeks its scale skips the first steps."""
    (point,) = said(f"[Rank 0] step={step}, skipped={skipped}, lr=[5e-05], mom=[(0.9, 0.999)]")
    assert point.skipped is lost


def test_the_optimizer_line_of_step_0_is_printed_before_any_step() -> None:
    """The engine says it while it is built."""
    line = "[INFO] [logging.py:60:log_dist] [Rank 0] step=0, skipped=0, lr=[0.0], mom=[(0.9,)]"
    assert said(line) == []


@pytest.mark.parametrize(
    "line",
    [
        "[timer.py:260:stop] epoch=0/micro_step=80/global_step=20, RunningAvgSamplesPerSec=25.5, "
        "CurrSamplesPerSec=24.5, MemAllocated=4.32GB",
        "[INFO] [timer.py:198:stop] 0/20, RunningAvgSamplesPerSec=25.5, CurrSamplesPerSec=24.5",
        "[INFO] [timer.py:154:stop] 0/20, SamplesPerSec=24.5",
    ],
)
def test_the_timer_in_its_dialects(line: str) -> None:
    """The current speed, not the running average."""
    (point,) = said(line)
    assert (point.step, point.throughput) == (20, 24.5)


@pytest.mark.parametrize(
    "line",
    [
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 3",
        "[deepscale] OVERFLOW! Rank 3 Skipping step. Attempted loss scale: 256, reducing to 128.0",
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 131072, but hysteresis "
        "is 2. Reducing hysteresis to 1",
        "[deepspeed] fp16 dynamic loss scale overflow! Skipping step. Attempted loss scale: 6.0",
    ],
)
def test_an_overflow_is_a_skipped_step(line: str) -> None:
    """The line names no step and no loss."""
    (point,) = said(line)
    assert (point.kind, point.skipped, point.step, point.loss) == ("train", True, None, None)


@pytest.mark.parametrize(
    ("line", "kind", "step"),
    [
        ("[Torch] Checkpoint global_step500 is ready now!", "checkpoint_saved", 500),
        ("[Torch] Checkpoint /out/run-0/global_step40 is ready now!", "checkpoint_saved", 40),
        (
            "zero checkpoint saved /x/global_step500/zero_pp_rank_0_mp_rank_00_optim_states.pt",
            "checkpoint_saved",
            500,
        ),
        (
            "[Torch] Loaded checkpoint from /x/global_step500/mp_rank_00_model_states.pt.",
            "checkpoint_loaded",
            500,
        ),
        ("Unable to find latest file at /x/latest, if trying to load latest", "fresh", None),
    ],
)
def test_checkpoints(line: str, kind: str, step: int | None) -> None:
    """Whole ones, loaded ones, and the warning that none was found."""
    (value,) = said(line)
    assert (value.kind, value.step) == (kind, step)


def test_rlhf_losses_are_not_meant_to_fall() -> None:
    """DeepSpeed-Chat, old and new."""
    for line in (
        "epoch: 0|step: 10|ppo_ep: 1|act_loss: -0.0125|cri_loss: 0.2|unsuper_loss: 0.0",
        "Epoch: 0 | Step: 10 | PPO Epoch: 1 | Actor Loss: -0.0125 | Critic Loss: 0.2",
    ):
        (point,) = said(line)
        assert (point.step, point.loss, point.falling) == (10, -0.0125, False)


@pytest.mark.parametrize(
    "line",
    [
        "[Torch] Checkpoint global_step500 is about to be saved!",
        "[INFO] [logging.py:96:log_dist] [Rank 0] Saving model checkpoint: /x/mp_rank_00.pt",
        "[INFO] [config.py:904:print]   steps_per_print .............. 10",
        "[INFO] [config.py:904:print]   loss_scale ................... 0",
        "[Rank 0] time (ms) | optimizer_step: 12.5",
        "Unable to find latest file: none was asked for",
    ],
)
def test_near_misses_say_nothing(line: str) -> None:
    """Beginnings, settings, timers."""
    assert said(line) == []


@pytest.mark.parametrize(
    ("added", "loss"), [(" loss=3.25", 3.25), (", loss: 3.25", 3.25), (", MaxMem=1GB", None)]
)
def test_a_loss_behind_the_timer(added: str, loss: float | None) -> None:
    (point,) = said(
        "[timer.py:264:stop] epoch=0/micro_step=80/global_step=20, RunningAvgSamplesPerSec=25.5, "
        f"CurrSamplesPerSec=24.5, MemAllocated=4.3GB, MaxMemAllocated=9.2GB{added}"
    )
    assert (point.step, point.loss) == (20, loss)


@pytest.mark.parametrize(("epoch", "ended"), [(3, True), (2, False), (0, False)])
def test_the_end_of_a_stage_of_deepspeed_chat(epoch: int, *, ended: bool) -> None:
    """It saves the final model behind the evaluation of its last epoch."""
    reader = deepspeed.Reader()
    lines = [f"***** Evaluating perplexity, Epoch {epoch}/3 *****", "ppl: 3.2",
             "saving the final model ..."]  # fmt: skip
    kinds = [value.kind for line in lines for value in reader.feed(line)]

    assert kinds == (["finished"] if ended else [])
    assert all(any(re.search(t, line) for t in deepspeed.TRIGGERS) for line in lines[::2])
