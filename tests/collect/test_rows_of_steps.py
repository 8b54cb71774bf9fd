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
