"""What is said of a crash where no step could be read, and what is advised."""

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

RAISED = (
    "Traceback (most recent call last):\n"
    '  File "/w/train.py", line 88, in <module>\n    main()\n'
    '  File "/w/train.py", line 60, in main\n    build(config)\n'
)
CONFIG = RAISED + "ValueError: hidden size 100 is no multiple of 12 heads\n"


def said(tmp_path: Path, text: str) -> Verdict:
    (tmp_path / "train.log").write_text(text)
    return diagnose(collect(Request((str(tmp_path),))))


def test_a_log_without_anything_like_a_step(tmp_path: Path) -> None:
    verdict = said(tmp_path, "loading the model\nbuilding the mesh\n" + CONFIG)

    assert verdict.headline.endswith("; no training step was read before it")
    assert "nothing like one stands in the 2 lines before it" in verdict.cannot_decide[0]


def test_a_step_of_a_form_that_is_not_known_is_named(tmp_path: Path) -> None:
    """And leaves the family in doubt: the crash may have come later."""
    rows = "".join(f"<{n * n % 7}> current-loss~~{3 - n / 10}\n" for n in range(9))
    plain = said(tmp_path, "loading the model\n" + CONFIG)
    verdict = said(tmp_path, rows + CONFIG)

    assert "before the first training step" not in verdict.headline
    assert "train.log:9 may be one, in a form that is not known" in verdict.cannot_decide[0]
    assert verdict.confidence < min(plain.confidence, 0.8)


def test_steps_of_an_earlier_attempt_make_it_certain(tmp_path: Path) -> None:
    steps = "".join(f"step {n}/100 loss {4 - n / 50:.4f}\n" for n in range(10, 60, 10))
    again = "W torch/distributed/elastic/agent] restarting worker group\n"
    verdict = said(tmp_path, steps + CONFIG + again + CONFIG)

    assert "no training step was read" not in verdict.headline


@pytest.mark.parametrize(
    "frames",
    [
        '  File "/p/streaming/base/shared/memory.py", line 80, in __init__\n    assert size > 0\n',
        '  File "/w/data.py", line 9, in share\n    shm = SharedMemory(name, True, size)\n',
    ],
)
def test_shared_memory_is_no_dataset_to_repair(tmp_path: Path, frames: str) -> None:
    verdict = said(tmp_path, RAISED + frames + "AssertionError\n")

    assert verdict.fault_class == "env"
    assert "/dev/shm" in verdict.actions[0].text


def test_an_exception_that_says_nothing_is_looked_up_where_it_was_raised(tmp_path: Path) -> None:
    frame = '  File "/p/datasets/arrow_dataset.py", line 9, in shard\n    assert rank < world\n'
    verdict = said(tmp_path, RAISED + frame + "AssertionError\n")

    assert "shard was given at /p/datasets/arrow_dataset.py:9" in verdict.actions[0].text
