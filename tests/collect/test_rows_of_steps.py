"""JSON rows are a log where a program wrote its steps in them, and data elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

from flatline.collect import Request, collect
from flatline.diagnose import diagnose


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
