"""The work of a step that grew: what is quoted of it, and what is advised."""

from __future__ import annotations

from pathlib import Path

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import LogCite

LONGER = Path(__file__).parents[1] / "scenarios" / "sequences_longer_as_pace_falls" / "run"


def test_the_line_right_before_the_change_is_quoted() -> None:
    """Step 1190 stands at the old size and 1200 at the new one; nothing lies between them."""
    verdict = diagnose(collect(Request((str(LONGER),))))
    before, after = verdict.shows[0].cites[:2]

    assert isinstance(before, LogCite)
    assert isinstance(after, LogCite)
    assert (verdict.code, verdict.fault_class) == ("D6", "size")
    assert ("step 1190/" in before.text, "step 1200/" in after.text) == (True, True)
    assert after.line == before.line + 1


def test_steps_of_another_size_are_compared_at_the_same_size() -> None:
    """Tokens a second as printed may be reckoned by the size that was set, not by the real one."""
    verdict = diagnose(collect(Request((str(LONGER),))))

    assert "same size" in verdict.actions[0].text
    assert "tokens a second" not in verdict.actions[0].text
