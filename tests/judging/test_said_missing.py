"""Ranks that name the one they waited for."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

STEPS = "".join(f"step {n}/900 loss {3 * 0.9985**n:.4f}\n" for n in range(1, 300))
WAIT = (
    "[rank{}]: RuntimeError: ACL stream synchronize failed, error code:107020\n"
    "EI0002: [PID: {}] 2026-01-05-08:18:50.110.211 The wait execution of the Notify register times"
    " out. Reason: it has not received the Notify record from remote rank [{}]. base information:"
    " [streamID:[4], taskType[Notify Wait]] task information: [stage:[0], remote rank:[{}].]\n"
)


def waits(*named: tuple[int, int]) -> str:
    return "".join(WAIT.format(own, 400 + own, other, other) for own, other in named)


@pytest.mark.parametrize(
    ("named", "ranks"),
    [
        (((0, 5), (2, 5), (4, 5)), [5]),
        (((0, 5), (2, 5), (4, 3)), []),  # each waits for the one before it
        (((4, 5),), []),
        (((0, 5), (5, 5)), []),
    ],
)
def test_the_one_that_all_name(
    tmp_path: Path, named: tuple[tuple[int, int], ...], ranks: list[int]
) -> None:
    """Several name one that reports no wait: never surely, for numbers are those of a group."""
    (tmp_path / "train.log").write_text(STEPS + waits(*named))
    found = diagnose(collect(Request((str(tmp_path),))))

    assert (found.code, [place.rank for place in found.culprits]) == ("C2", ranks)
    assert not ranks or found.confidence < 0.8
