"""A handler that trips over a name which the code that failed was to bind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict
from flatline.render.json import render
from flatline.verify import verify

HEAD = "Traceback (most recent call last):\n"
DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"
FIRST = HEAD + (
    '  File "/home/u/proj/run.py", line 31, in main\n    pool = make_pool(cfg)\n'
    '  File "/home/u/proj/data/pools.py", line 12, in load_dataset\n    rows = parse(path)\n'
)
SECOND = HEAD + '  File "/home/u/proj/run.py", line 44, in main\n    {}\n'
UNBOUND = "NameError: name 'pool' is not defined\n"


def verdict(folder: Path, text: str) -> Verdict:
    (folder / "run.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("rank", ["", "[rank2]: "])
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("pool.shutdown()", UNBOUND),
        (
            "del pool",
            "UnboundLocalError: cannot access local variable 'pool' where it is not associated"
            " with a value\n",
        ),
    ],
)
def test_what_was_being_handled_is_the_cause(
    tmp_path: Path, code: str, said: str, rank: str
) -> None:
    text = FIRST + "ValueError: 3 rows hold no label\n" + DURING + SECOND.format(code) + said
    text = "".join(rank + line for line in text.splitlines(keepends=True))
    found = verdict(tmp_path, text)
    assert (found.code, found.fault_class) == ("A1", "data")
    assert "ValueError: 3 rows hold no label" in found.headline
    assert found.confidence < 0.8
    document = json.loads(render(found))
    assert [check for check in verify(document, (str(tmp_path),)) if not check.ok] == []


@pytest.mark.parametrize(
    ("handled", "code"),
    [("KeyError: 'cache'", "pools[key] = default"), ("ImportError: no apex", "log.warning('x')")],
)
def test_an_absence_that_is_made_up_for_is_not(tmp_path: Path, handled: str, code: str) -> None:
    """There the handler itself is at fault."""
    text = FIRST + f"{handled}\n" + DURING + SECOND.format(code) + UNBOUND
    assert "NameError" in verdict(tmp_path, text).headline


def test_another_exception_of_a_handler_stands(tmp_path: Path) -> None:
    raised = "RuntimeError: cannot parse row 7 of /d/rows.csv\n"
    text = FIRST + "ValueError: bad row\n" + DURING + SECOND.format("raise RuntimeError(x)")
    assert "cannot parse row 7" in verdict(tmp_path, text + raised).headline


def test_somebodys_interrupt_is_no_fault_of_the_handlers(tmp_path: Path) -> None:
    text = FIRST + "KeyboardInterrupt\n" + DURING + SECOND.format("pool.shutdown()") + UNBOUND
    assert "NameError" not in verdict(tmp_path, text).headline
