"""Rewards that rise, as the loops of reinforcement learning print them."""

from __future__ import annotations

from flatline.model import RISING, Progress
from flatline.parsers import LineReader, dreamer, mujoco_playground, sample_factory


def said(reader: LineReader, text: str) -> list[object]:
    return [one for line in text.splitlines() for one in reader.feed(line)]


def test_dreamer() -> None:
    """A rule alone, or one in a line of prose, is of no step."""
    text = """\
[15:15:50] ──────────────────────── Step 1240 ────────────────────────
[15:15:50] episode/score -2.2 / episode/length 500 / train/loss/dyn 8.37 / fps/policy 61.2
-------------------- Step 2480 --------------------
episode/score nan / episode/length 500
episode/score 7.0 / episode/length 500
see Step 3 of the manual
Reached run.steps, exiting.
"""
    first, second, last = said(dreamer.Reader(), text)
    assert first == Progress("train", 1240, loss=-2.2, loss_name=RISING, falling=False,
                             throughput=61.2, throughput_unit="frames/s")  # fmt: skip
    assert isinstance(second, Progress)
    assert (second.step, second.loss == second.loss, second.throughput) == (2480, False, None)
    assert last == Progress("finished", 2480)
    assert said(dreamer.Reader(), "Reached run.steps, exiting.") == []


def test_sample_factory() -> None:
    text = """\
[2025-01-16 21:21:31,039][11820] Avg episode reward: [(0, '36.1')]
[2025-01-16 21:21:36,059][11820] Fps is (10 sec: nan, 60 sec: nan, 300 sec: nan). Total num frames: 0. Throughput: 0: nan.
[2025-01-16 21:21:36,059][11820] Avg episode reward: [(0, '36.2')]
[2025-01-16 21:21:41,079][11820] Fps is (10 sec: 60874.2, 60 sec: 61112.8, 300 sec: 61224.1). Total num frames: 170133721. Throughput: 0: 15218.5.
[2025-01-16 21:21:41,079][11820] Avg episode reward: [(0, '37.619'), (1, '2.5')]
"""  # noqa: E501
    assert said(sample_factory.Reader(), text) == [
        Progress("train", 170133721, loss=37.619, loss_name=RISING, falling=False,
                 throughput=60874.2, throughput_unit="frames/s")
    ]  # fmt: skip


def test_checkpoints_of_sample_factory() -> None:
    """One is saved once the run went on behind it."""
    rate = (
        "Fps is (10 sec: 6.2, 60 sec: 6.8, 300 sec: 6.1). Total num frames: {}. Throughput: 0: 1."
    )
    saves = "[03130] Saving /d/nav/checkpoint_p0/checkpoint_000003541_29015263.pth..."
    assert said(sample_factory.Reader(), saves) == []
    assert said(sample_factory.Reader(), f"{saves}\n{rate.format(29100000)}") == [
        Progress("checkpoint_saved", 29015263)
    ]
    assert said(
        sample_factory.Reader(), "Did not load from checkpoint, starting from scratch!"
    ) == [Progress("fresh")]
    assert said(
        sample_factory.Reader(),
        "Loaded experiment state at self.train_step=3541, self.env_steps=29015263",
    ) == [Progress("checkpoint_loaded", 29015263)]


def test_mujoco_playground() -> None:
    text = """\
Done training.
train_jax_ppo.py:301] 60162048: reward=24.260
node7: reward=3
Done training.
Time to JIT compile: 211.331
"""
    assert said(mujoco_playground.Reader(), text) == [
        Progress("train", 60162048, loss=24.26, loss_name=RISING, falling=False),
        Progress("eval", 60162048, loss=24.26, loss_name="reward", falling=False),
        Progress("finished", 60162048),
    ]
