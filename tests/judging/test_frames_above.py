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
