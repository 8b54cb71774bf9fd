"""Exceptions as Visual Studio Code's debugger shows them."""

from __future__ import annotations

from pathlib import Path

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.logs.traceback import read_traceback

SHOWN = """\
Exception has occurred: ScannerError       (note: execution is paused at: <module>)
mapping values are not allowed here
  in "/home/u/det/config.py", line 5, column 29
  File "/home/u/det/train.py", line 135, in setup
    cfg.merge_from_file(args.config_file)
  File "/home/u/det/train.py", line 21, in <module>
    main()

terminated
"""


def test_the_innermost_frame_comes_first() -> None:
    raw = read_traceback(list(enumerate(SHOWN.split("\n"), 1)))

    assert raw is not None
    assert (raw.exception, raw.message.split("\n")[0], raw.complete) == (
        "ScannerError", "mapping values are not allowed here", True,
    )  # fmt: skip
    assert [(f.function, f.code) for f in raw.frames] == [
        ("<module>", "main()"), ("setup", "cfg.merge_from_file(args.config_file)"),
    ]  # fmt: skip
    assert (raw.head_line, raw.end_line) == (1, 7)


def test_it_is_judged_as_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "debug.txt").write_text(SHOWN)
    told = diagnose(collect(Request((str(tmp_path),))))

    assert (told.code, told.fault_class) == ("A1", "config")


def test_words_of_a_sentence_are_none() -> None:
    text = "Exception has occurred: Retrying the request in 5 s"

    assert read_traceback([(1, text)]) is None
