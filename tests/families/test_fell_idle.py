"""D1 of GPUs that all idle more from a moment on, as the run slows with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from families.fleet import T0, facts_of, findings, sample, stepping
from flatline.families.input_starvation import judge

ONSET, ENDS = 1500, 4200
Busy = Callable[[int, bool], float]
"""(GPU, whether the run is slow) -> the share of the time in which something ran."""


def told(tmp_path: Path, busy: Busy, slow_s: float = 4.0) -> list[str]:
    """Two hosts of four cards; steps of two seconds, from ONSET on of `slow_s`."""
    lines = [
        sample("DCGM_FI_PROF_GR_ENGINE_ACTIVE", f'gpu="{gpu % 4}",Hostname="n{gpu // 4}"',
               busy(gpu, at > ONSET), at)
        for gpu in range(8)
        for at in range(0, ENDS, 30)
    ]  # fmt: skip
    track = stepping(ENDS, lambda at: 2.0 + (at % 7) / 100 if at < ONSET else slow_s)
    facts, _ = facts_of(tmp_path, lines, track)
    facts_window = facts.window
    assert facts_window is not None
    assert facts_window[0].timestamp() == T0
    return [f.role for f in findings(judge(facts))]


def test_all_idle_more_by_what_the_pace_lost(tmp_path: Path) -> None:
    assert told(tmp_path, lambda gpu, slow: 0.5 if slow else 0.97) == ["cause"]


@pytest.mark.parametrize(
    ("busy", "slow_s"),
    [
        (lambda gpu, slow: 0.97, 4.0),
        (lambda gpu, slow: 0.97 if gpu == 3 or not slow else 0.5, 4.0),
        (lambda gpu, slow: 0.4 if slow else 0.6, 4.0),
        (lambda gpu, slow: 0.85 if slow else 0.97, 4.0),
        (lambda gpu, slow: 0.5 if slow else 0.97, 2.05),
    ],
    ids=["busy all along", "one computes on", "half idle before", "hardly more", "no slower"],
)
def test_who_does_not_wait_for_the_host(tmp_path: Path, busy: Busy, slow_s: float) -> None:
    """A straggler keeps one busy, a slow fabric all of them; a small model never filled them."""
    assert "cause" not in told(tmp_path, busy, slow_s)
