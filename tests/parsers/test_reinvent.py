"""Steps of REINVENT's stages."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.parsers.reinvent import Reader

END = "Maximum number of steps of {} reached in stage 2. Terminating all stages."


def stage(number: int, steps: int, level: float) -> list[str]:
    scored = (f"Score: {level + 0.3 * n / steps:.2f} Agent NLL: {40 - n / 9:.2f} Valid:"
              f" {90 + n % 9:3d}% Step: {n}" for n in range(1, steps + 1))  # fmt: skip
    return [f"Starting stage {number} <<<", *scored]


def test_stages_are_counted_on() -> None:
    """Each prints its steps from one."""
    reader = Reader()
    lines = [*stage(1, 12, 0.3), "Finished stage 1 >>>", *stage(2, 8, 0.2), END.format(8)]
    *steps, end = [item for line in lines for item in reader.feed(line)]

    assert [one.step for one in steps] == [*range(1, 21)]
    assert (steps[0].loss_name, steps[0].falling) == ("score", False)
    assert (end.kind, end.step) == ("finished", 20)


@pytest.mark.parametrize(("whole", "code"), [(True, "G1"), (False, None)])
def test_the_end_of_the_last_stage(tmp_path: Path, whole: bool, code: str | None) -> None:
    """Which the program tells; without that it may have been cut off."""
    lines = [*stage(1, 60, 0.2), "Finished stage 1 >>>", *stage(2, 90, 0.5)]
    lines += [END.format(90)] if whole else []
    text = "".join(f"16:{n // 60 % 60:02d}:{n % 60:02d} <INFO> {line}\n"
                   for n, line in enumerate(lines))  # fmt: skip
    (tmp_path / "rl.log").write_text(text)
    facts = collect(Request((str(tmp_path),)))

    assert len(facts.attempts) == 1
    assert diagnose(facts).code == code
