"""Step times that a line gives beside a bar whose rate is a mean since it began."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.judging.throughput import course_in_order


@pytest.mark.parametrize(("every", "parts"), [(1, [0.5]), (10, None)])
def test_a_step_takes_what_its_own_line_says(
    tmp_path: Path, every: int, parts: list[float] | None
) -> None:
    """By the mean of the whole, the second half would hardly be slower at first; told of each
    tenth step it is not mixed with that."""
    lines, spent = [], 0.0
    for step in range(1, 161):
        took = 20.0 if step <= 80 else 40.0
        spent += took
        clock = f"{int(spent) // 3600}:{int(spent) // 60 % 60:02d}:{int(spent) % 60:02d}"
        lines.append(
            f"{step // 10:3d}%|#         | {step}/1000 [{clock}<7:00:00, {spent / step:5.2f}s/it]"
        )
        if step % every == 0:
            lines.append(f"{{'loss': {2 + 1 / step:.4f}, 'kl': 0.01, 'step_time': {took}}}")
    (tmp_path / "grpo.out").write_text("\n".join(lines) + "\n")

    run = course_in_order(collect(Request((str(tmp_path),))))

    assert run is not None
    assert run.pace.track is not None
    if parts is None:
        paces = [1 / value for value in run.pace.values]
        assert all(abs(b - a) < 1 for a, b in pairwise(paces))
        return
    assert [round(phase.part, 2) for phase in run.slow] == parts
    (slow,) = run.slow
    assert run.pace.track.steps[run.pace.indexes[slow.points[0]]] == 81
