"""The lines of orbit's controller."""

from __future__ import annotations

from flatline.model import Progress
from flatline.parsers.orbit import Reader


def said(*lines: str) -> list[Progress]:
    reader = Reader()
    return [one for line in lines for one in reader.feed(line)]


HEAD = "I1002 04:13:58.418300 139871 controller.py:494] train | step:    {} | steps/sec:    4.0 |"


def test_a_step_and_its_output() -> None:
    output = "    {'image_loss': 5.61951, 'learning_rate': 0.30000, 'training_loss': 6.17549}"
    point = Progress("train", 200, loss=6.17549, loss_name="training_loss", lr=0.3, step_s=0.25)
    assert said(f"{HEAD.format(200)} output: ", output) == [point]
    assert said(f"{HEAD.format(200)} output: {output.strip()}") == [point]
    assert said(output) == []


def test_a_step_whose_output_is_not_there() -> None:
    lines = (f"{HEAD.format(200)} output: ", f"{HEAD.format(400)} output: ",
             "saved checkpoint to /d/r50/ckpt-400.")  # fmt: skip
    assert said(*lines) == [
        Progress("train", 200, step_s=0.25),
        Progress("train", 400, step_s=0.25),
        Progress("checkpoint_saved", 400),
    ]
    assert said("restored model from /d/r50/ckpt-400.") == [Progress("checkpoint_loaded", 400)]
