"""
Sample Factory: its rate and all frames so far every few seconds, and the rewards below them.

    Fps is (10 sec: 61336.3, 60 sec: 61121.6, 300 sec: 61221.7). Total num frames: 169519140. ...
    Avg episode reward: [(0, '37.013')]

The reward is what the policies are to raise; of several the first is told.  Frames are steps of
the environment.

Source: `Runner._report_experiment_summary` and `print_stats` of
alex-petrenko/sample-factory sample_factory/algo/runners/runner.py.
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
)
_FRAMES = Late(
    rf"Fps is \(10 sec: ({NUMBER}), 60 sec: [^)]{{1,80}}\)\. Total num frames: ([0-9]{{1,15}})\."
)
_REWARD = Late(rf"Avg episode reward: \[\([0-9]{{1,4}}, '({NUMBER})'\)")


class Reader:
    """Reads one stream; holds the frames and the rate at hand."""

    def __init__(self) -> None:
        self._frames: int | None = None
        self._rate: float | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """A point for each pair of lines."""
        text = text[:1000]
        if found := _FRAMES.search(text):
            self._rate, self._frames = number(found[1]), int(found[2])
        elif (found := _REWARD.search(text)) and self._frames:
            frames, self._frames = self._frames, None
            return (
                Progress("train", frames, loss=number(found[1]), loss_name=RISING, falling=False,
                         throughput=self._rate, throughput_unit="frames/s"),
            )  # fmt: skip
        return ()
