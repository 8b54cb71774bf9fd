"""Frames of tracebacks as notebooks and Spyder print them."""

from __future__ import annotations

import pytest

from flatline.logs.traceback import read_traceback

CLASSIC = """\
AttributeError                            Traceback (most recent call last)
<ipython-input-7-a1b9f3e7f0c5> in <cell line: 9>()
      7     eval_dataset=rows,
      8 )
----> 9 trainer.train()

6 frames
/usr/local/lib/python3.10/dist-packages/transformers/utils/notebook.py in on_train_begin(self)
    293
    294     def on_train_begin(self, args):
--> 295         self.first = args.eval_strategy
    296         self.training_loss = 0

AttributeError: 'TrainingArguments' object has no attribute 'eval_strategy'
"""
COMPACT = """\
Traceback (most recent call last):

  File E:\\cap\\main.py:90 in <module>
    main(config)

  File ~\\anaconda3\\lib\\site-packages\\torch\\hub.py:595 in load_state_dict_from_url
    return torch.load(cached_file, map_location=map_location)

RuntimeError: PytorchStreamReader failed reading zip archive
"""
NUMBERED = """\
KeyError                                  Traceback (most recent call last)
File /opt/lib/python3.11/site-packages/pandas/core/frame.py:3807, in DataFrame.__getitem__(self)
   3806     return self._getitem_multilevel(key)
-> 3807 indexer = self.columns.get_loc(key)

Cell In[4], line 2
      1 import pandas
----> 2 frame["label"]

KeyError: 'label'
"""


@pytest.mark.parametrize(
    ("text", "exception", "frames"),
    [
        (CLASSIC, "AttributeError", [
            ("<ipython-input-7-a1b9f3e7f0c5>", 9, "<cell line: 9>", "trainer.train()"),
            ("/usr/local/lib/python3.10/dist-packages/transformers/utils/notebook.py", 295,
             "on_train_begin", "self.first = args.eval_strategy"),
        ]),
        (COMPACT, "RuntimeError", [
            ("E:\\cap\\main.py", 90, "<module>", "main(config)"),
            ("~\\anaconda3\\lib\\site-packages\\torch\\hub.py", 595, "load_state_dict_from_url",
             "return torch.load(cached_file, map_location=map_location)"),
        ]),
        (NUMBERED, "KeyError", [
            ("/opt/lib/python3.11/site-packages/pandas/core/frame.py", 3807,
             "DataFrame.__getitem__", "indexer = self.columns.get_loc(key)"),
            ("In[4]", 2, "", 'frame["label"]'),
        ]),
    ],
    ids=["classic", "compact", "numbered"],
)  # fmt: skip
def test_frames(text: str, exception: str, frames: list[tuple[str, int, str, str]]) -> None:
    crash = read_traceback(list(enumerate(text.splitlines(), 1)))

    assert crash is not None
    assert crash.exception == exception
    assert [(f.file, f.line, f.function, f.code) for f in crash.frames] == frames


def test_a_path_that_is_only_named_is_no_frame() -> None:
    text = "Traceback (most recent call last):\n  File x.py:9 is read\nValueError: no\n"
    crash = read_traceback(list(enumerate(text.splitlines(), 1)))

    assert crash is not None
    assert crash.frames == ()


def test_a_cell_s_own_frame_has_no_call() -> None:
    text = CLASSIC.replace("in <cell line: 9>()", "in <module>")
    raw = read_traceback(list(enumerate(text.splitlines(), 1)))
    assert raw is not None
    assert [frame.function for frame in raw.frames] == ["<module>", "on_train_begin"]
