"""Exceptions whose traceback has lost its head, and those of threads beside the loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

SAVES = (
    '  File "/opt/asr/trainer.py", line 644, in train_epoch\n    self.save_checkpoint(\n'
    '  File "/opt/asr/trainer.py", line 290, in save_checkpoint\n    remove(old)\n'
    "FileNotFoundError: [Errno 2] No such file or directory: 'out/model.pt.ep0.4000'\n"
)
BUILDS = (
    '  File "/opt/ops/builder.py", line 60, in check\n    raise Exception(\n'
    "Exception: the extension needs CUDA 12.1 or newer, please reinstall\n"
)
FEEDS = (
    "Traceback (most recent call last):\n"
    '  File "/opt/lib/python3.9/multiprocessing/queues.py", line 245, in _feed\n'
    "    obj = _ForkingPickler.dumps(obj)\n"
    "RuntimeError: unable to write to file </torch_4830_22_10>: No space left on device (28)\n"
)


def verdict(folder: Path, text: str) -> Verdict:
    (folder / "train.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("label", ["", "[rank8]: "])
def test_the_frames_above_tell_that_the_loop_ran(tmp_path: Path, label: str) -> None:
    text = "".join(f"{label}{line}\n" for line in SAVES.splitlines())

    assert verdict(tmp_path, text).code == "A3"


def test_a_bare_exception_counts_where_frames_stand_above_it(tmp_path: Path) -> None:
    told = verdict(tmp_path, BUILDS)

    assert (told.code, told.fault_class) == ("A1", "env")


def test_a_bare_exception_alone_is_any_programs_word(tmp_path: Path) -> None:
    told = verdict(tmp_path, "Exception: could not reach the dashboard, going on without\n")

    assert told.state == "undetermined"


IMPORTS = (
    "Traceback (most recent call last):\n"
    '  File "/app/train.py", line 9, in <module>\n'
    "    from .engine import evaluate, save_checkpoint\n"
    "ImportError: attempted relative import with no known parent package\n"
)
CONVERTS = (
    "Traceback (most recent call last):\n"
    '  File "/app/tools/convert.py", line 30, in <module>\n    main()\n'
    '  File "/app/tools/saver.py", line 12, in save_checkpoint\n    n = md.layers["count"]\n'
    "KeyError: 'count'\n"
)


@pytest.mark.parametrize("text", [IMPORTS, CONVERTS], ids=["an-import", "a-converter"])
def test_a_name_that_saves_is_no_loop(tmp_path: Path, text: str) -> None:
    assert verdict(tmp_path, text).code == "A1"


def test_of_a_thread_nothing_tells_when(tmp_path: Path) -> None:
    told = verdict(tmp_path, FEEDS)

    assert (told.state, told.confidence < 0.8) == ("found", True)


def flush(text: str) -> str:
    """As a page or a mail leaves it, without indentation and without what stood in brackets."""
    return "".join(f"{line.lstrip()}\n" for line in text.replace("<module>", "").splitlines())


HOOKED = (
    '  File "tools/train.py", line 170, in <module>\n    main()\n'
    '  File "mmcv/runner/epoch_based_runner.py", line 54, in train\n'
    "    self.call_hook('after_train_epoch')\n"
    '  File "mmcv/runner/hooks/evaluation.py", line 267, in after_train_epoch\n'
    "    self._do_evaluate(runner)\n"
    '  File "datasets/coco.py", line 274, in evaluate\n    image = self.name2id[name]\n'
    "KeyError: '/0000115_img.png'\n"
)


@pytest.mark.parametrize("head", ["", "Traceback (most recent call last):\n"])
def test_frames_without_indentation(tmp_path: Path, head: str) -> None:
    """Their source lines are read as such, with the head and without it."""
    told = verdict(tmp_path, head + flush(HOOKED))

    assert told.code == "A3"
    crash = told.findings[0].finding.shows[0].cites[0]
    assert "KeyError" in str(crash)


def test_a_raised_line_without_indentation_is_no_exception(tmp_path: Path) -> None:
    text = flush(
        "Traceback (most recent call last):\n"
        '  File "train.py", line 3, in <module>\n    raise ValueError("bad")\n'
        "ValueError: bad\n"
    )
    told = verdict(tmp_path, text)

    assert told.code == "A1"
    assert told.findings[0].finding.shows[0].cites[0].line == 4
