"""Threads that feed a run its data, and those whose end nobody waits for."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

THREAD = (
    "Exception in thread Thread-4:\nTraceback (most recent call last):\n"
    '  File "/usr/lib/python2.7/threading.py", line 810, in __bootstrap_inner\n    self.run()\n'
    '  File "/usr/lib/python2.7/threading.py", line 763, in run\n'
    "    self.__target(*self.__args, **self.__kwargs)\n"
)
FEEDER = (
    '  File "/home/u/proj/feeder.py", line 60, in _fill_sample_queue\n'
    "    item = self.read(path)\n"
    '  File "/venv/lib/python2.7/site-packages/nibabel/loadsave.py", line 44, in load\n'
    "    raise ImageFileError(path)\n"
)
UPLOAD = (
    '  File "/home/u/proj/report.py", line 9, in upload_batches\n    self.send(row)\n'
    '  File "/home/u/proj/dataset.py", line 9, in rows\n    return self.table[n]\n'
)
PINNED = (
    '  File "/venv/lib/python3.10/site-packages/torch/utils/data/_utils/pin_memory.py", line 28,'
    " in _pin_memory_loop\n    do_one_step()\n"
    '  File "/usr/lib/python3.10/multiprocessing/queues.py", line 122, in get\n'
    "    return _ForkingPickler.loads(res)\n"
)
SAID = "ValueError: 'x7.img' is no volume\n"


def verdict(folder: Path, text: str) -> Verdict:
    (folder / "train.log").write_text("Begin.\n" + text)
    return diagnose(collect(Request((str(folder),))))


def test_whoever_waits_for_the_data_waits_for_ever(tmp_path: Path) -> None:
    found = verdict(tmp_path, THREAD + FEEDER + SAID)
    assert (found.code, found.fault_class, found.confidence < 0.8) == ("A1", "data", True)


@pytest.mark.parametrize(
    "text",
    [
        THREAD + UPLOAD + SAID,
        THREAD + PINNED + "EOFError\n",
        THREAD + FEEDER + SAID + "".join(f"reading list {n}\n" for n in range(9)),
    ],
    ids=["reports", "peer", "goes on"],
)
def test_a_thread_that_nobody_waits_for(tmp_path: Path, text: str) -> None:
    assert verdict(tmp_path, text).state == "undetermined"
