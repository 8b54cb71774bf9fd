"""JSON rows are a log where a program wrote its steps in them, and data elsewhere."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.facts import Facts


def test_rows_of_steps_are_read(tmp_path: Path) -> None:
    """With the plan they state."""
    rows = (
        {"step": n, "max_steps": 300, "loss": 4 * 0.98**n, "ts": 1_772_611_215 + n}
        for n in range(10, 310, 10)
    )
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    facts = collect(Request((str(tmp_path),)))

    assert (facts.last_step, facts.planned_steps) == (300, 300)
    assert diagnose(facts).code == "G1"


def test_rows_of_data_are_no_log(tmp_path: Path) -> None:
    """Whatever errors their texts quote."""
    row = {"prompt": "What does it mean?", "text": "RuntimeError: CUDA error: out of memory"}
    (tmp_path / "train.jsonl").write_text(f"{json.dumps(row)}\n" * 50)
    facts = collect(Request((str(tmp_path),)))

    assert not facts.log_files()
    assert diagnose(facts).state == "undetermined"


def test_what_rows_quote_nobody_said(tmp_path: Path) -> None:
    """Samples of a model are written with their step; of what a logger wrote, errors count."""
    said = "RuntimeError: CUDA error: an illegal memory access was encountered. Training completed"
    logged = {"step": 59, "level": "ERROR", "message": said}
    for more, code in (([], None), ([logged], "A3")):
        rows = [{"step": n, "loss": 3 - n / 40, "sample": said} for n in range(1, 60)]
        text = "".join(json.dumps(row) + "\n" for row in (*rows, *more))
        (tmp_path / "samples.jsonl").write_text(text)
        facts = collect(Request((str(tmp_path),)))

        assert facts.last_step == 59
        assert (diagnose(facts).code, facts.disposition) == (code, "failed" if code else "unknown")


def test_a_traceback_among_rows_is_the_programs(tmp_path: Path) -> None:
    """It is no row."""
    rows = "".join(json.dumps({"step": n, "loss": 3 - n / 40}) + "\n" for n in range(1, 60))
    crash = (
        "Traceback (most recent call last):\n"
        '  File "/w/train.py", line 88, in <module>\n    main()\n'
        "ValueError: shapes do not match: (3, 4) and (5,)\n"
    )
    (tmp_path / "log.jsonl").write_text(rows + crash)

    assert diagnose(collect(Request((str(tmp_path),)))).code == "A3"


def _logged(
    tmp_path: Path, rows: Iterable[Mapping[str, object]], name: str = "train.jsonl"
) -> Facts:
    (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return collect(Request((str(tmp_path),)))


def _time(n: int) -> str:
    return f"2026-08-30T16:{n // 60:02d}:{n % 60:02d}.615"


SHAPES: tuple[tuple[Mapping[str, object], Callable[[int, float], Mapping[str, object]]], ...] = (
    (
        {"ts": _time(0) + "Z", "level": "info", "event": "start"},
        lambda n, loss: {"ts": _time(n) + "Z", "level": "info", "step": n, "loss": loss},
    ),
    (
        {"event": "start", "level": "info", "timestamp": _time(0) + "Z"},
        lambda n, loss: {"event": "x" * 300, "global_step": n, "train/loss": loss,
                         "timestamp": _time(n) + "Z"},
    ),
    (
        {"levelname": "INFO", "message": "starting", "asctime": _time(0).replace("T", " ")},
        lambda n, loss: {"levelname": "INFO", "message": f"step {n} loss {loss:.4f}",
                         "asctime": _time(n).replace("T", " ").replace(".", ",")},
    ),
    (
        {"kind": "config", "learning_rate": 3e-4},
        lambda n, loss: {"ts": 1_788_106_192.5 + n, "iteration": n, "metrics": {"loss": loss}},
    ),
    (
        {"level": "info", "ts": 1_788_106_192.5, "msg": "start"},
        lambda n, loss: {"time": 1_788_106_192_500 + 1000 * n, "step": n, "train_loss": loss},
    ),
)  # fmt: skip


@pytest.mark.parametrize("name", ["train.jsonl", "train.log"])
@pytest.mark.parametrize(("first", "row"), SHAPES)
def test_loggers_rows_tell_steps_and_times(
    tmp_path: Path,
    first: Mapping[str, object],
    row: Callable[[int, float], Mapping[str, object]],
    name: str,
) -> None:
    """Where the first of them has no step, and wherever in them the time stands."""
    facts = _logged(tmp_path, [first, *(row(n, 4 * 0.98**n) for n in range(1, 61))], name)
    (track,) = facts.tracks

    assert list(track.steps) == list(range(1, 61))
    assert track.at[-1] - track.at[0] == 59


def test_a_crash_before_the_first_step_is_a_loggers_to_tell(tmp_path: Path) -> None:
    """Rows with a level and a time are a log without any step."""
    said = "RuntimeError: CUDA error: an illegal memory access was encountered"
    start = {"ts": _time(0) + "Z", "level": "info", "event": "start"}
    rows = [start, {"ts": _time(9) + "Z", "level": "error", "event": said}]

    assert diagnose(_logged(tmp_path, rows)).code == "A3"


def test_levels_and_dates_of_data_make_no_log(tmp_path: Path) -> None:
    """A difficulty is no logger's level, and a step that a text quotes is no row's."""
    said = "RuntimeError: CUDA error: an illegal memory access was encountered"
    quoted = '{"step": 5, "loss": 2.5}'
    rows = [
        {"problem": said, "level": "Level 5", "date": "2024-05-01"},
        {"prompt": quoted, "text": said, "loss": 1.5},
    ]

    assert not _logged(tmp_path, rows * 30).log_files()


def test_a_date_that_a_rows_value_quotes_is_not_its_time(tmp_path: Path) -> None:
    """Nor is one of what stands within the row."""
    rows = [
        {
            "step": n,
            "loss": 4 * 0.98**n,
            "note": f'"time": "{_time(n)}Z"',
            "by": {"time": _time(n)},
        }
        for n in range(1, 40)
    ]
    (track,) = _logged(tmp_path, rows).tracks

    assert all(math.isnan(at) for at in track.at)
