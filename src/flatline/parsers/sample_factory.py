"""
Sample Factory: its rate and all frames so far every few seconds, and the rewards below them.

    Fps is (10 sec: 61336.3, 60 sec: 61121.6, 300 sec: 61221.7). Total num frames: 169519140. ...
    Avg episode reward: [(0, '37.013')]

The reward is what the policies are to raise; of several the first is told.  Frames are steps of
the environment.  A checkpoint, whose name ends in them, is told as saved once the run went on.

Source: `Runner.print_stats` of alex-petrenko/sample-factory sample_factory/algo/runners/runner.py;
`Learner` of sample_factory/algo/learning/learner.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import RISING, Progress
from flatline.parsers._rules import NUMBER, Late, number

FORMAT = "sample_factory"
FRAMEWORK = "sample_factory"
TRIGGERS = (
    r"Fps is \(10 sec: ",
    r"Avg episode reward: \[\(",
    r"Saving [^ ]*/checkpoint_[0-9]+_[0-9]+\.pth",
    r"Did not load from checkpoint, starting from scratch",
    r"Loaded experiment state at ",
)
_FRAMES = Late(
    rf"Fps is \(10 sec: ({NUMBER}), 60 sec: [^)]{{1,80}}\)\. Total num frames: ([0-9]{{1,15}})\."
)
_REWARD = Late(rf"Avg episode reward: \[\([0-9]{{1,4}}, '({NUMBER})'\)")
_SAVES = Late(r"Saving \S{1,400}/checkpoint_[0-9]{1,15}_([0-9]{1,15})\.pth")
_LOADED = Late(r"Loaded experiment state at .{0,80}?env_steps[=: ]+([0-9]{1,15})")


class Reader:
    """Reads one stream; holds the frames and the rate at hand, and a checkpoint under way."""

    def __init__(self) -> None:
        self._frames: int | None = None
        self._rate: float | None = None
        self._saves: int | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """A point for each pair of lines, and what is said of checkpoints."""
        text = text[:1000]
        if found := _FRAMES.search(text):
            self._rate, self._frames = number(found[1]), int(found[2])
            step, self._saves = self._saves, None
            if step is not None:
                return (Progress("checkpoint_saved", step),)
        elif (found := _REWARD.search(text)) and self._frames:
            frames, self._frames = self._frames, None
            return (
                Progress("train", frames, loss=number(found[1]), loss_name=RISING, falling=False,
                         throughput=self._rate, throughput_unit="frames/s"),
            )  # fmt: skip
        elif found := _SAVES.search(text):
            self._saves = int(found[1])
        elif found := _LOADED.search(text):
            return (Progress("checkpoint_loaded", int(found[1])),)
        elif "Did not load from checkpoint, starting from scratch" in text:
            return (Progress("fresh"),)
        return ()
