"""When a log was last written to, though nothing in it is known."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from flatline.collect import Request, collect

PROSE = "[2026-11-21 19:31:00] model loaded\n[2026-11-21 19:31:22] rollout 0: 64 prompts\n"
AT = datetime(2026, 11, 21, 19, 31, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        (PROSE, AT),
        (PROSE + "loading\n", None),
        (PROSE.replace("[2026-11-21 ", "").replace("]", ""), None),
        ("model loaded\nrollout 0\n", None),
    ],
    ids=["dated", "its last line bears no date", "times without a day", "nothing dated"],
)
def test_by_its_last_line(tmp_path: Path, text: str, at: datetime | None) -> None:
    """A line that bears its date dates the silence behind it; none is taken from one above."""
    (tmp_path / "train.log").write_text(text)

    facts = collect(Request((str(tmp_path),)))

    assert facts.last_seen.get("train.log") == at
    assert facts.last_lines["train.log"].at == at
