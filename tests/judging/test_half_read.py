"""A bar that stood halfway while the data set was being made is no training."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

BAR = "reading sizes\n 41%|####      | 21/51 [00:00<00:00, 380.10it/s]\n"
TRACE = (
    'Traceback (most recent call last):\n  File "/w/fit.py", line 9, in <module>\n    go(args)\n'
    '  File "/w/fit.py", line 7, in go\n    {call}\n  File "/w/inner.py", line 3, in {name}\n'
    '    raise ValueError("size")\nValueError: size\n'
)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("generate_dataset_group_by_blueprint", "A1"),
        ("make_dataset_for_rank", "A1"),
        ("shuffle_rows", "A3"),
        ("train_with_dataset", "A3"),
    ],
)
def test_by_the_function_it_was_raised_in(tmp_path: Path, name: str, code: str) -> None:
    (tmp_path / "fit.log").write_text(BAR + TRACE.format(call=f"{name}(args)", name=name))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.confidence < 0.8) == (code, True)
