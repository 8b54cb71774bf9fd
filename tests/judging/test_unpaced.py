"""What leaves doubt of a run whose steps nothing dates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from families.fleet import facts_of, sample, stepping
from flatline.judging.unpaced import unpaced
from flatline.judging.unsettled import unsettled

Level = Callable[[float], float]


def asked(tmp_path: Path, waits: Level, power: Level, dated: bool = False) -> list[str]:
    """Of three hosts with a GPU each, read every 30 s for two hours."""
    lines = []
    for host in range(3):
        total = 0.0
        for at in range(0, 7200, 30):
            total += 30 * waits(at)
            node, card = f'instance="n{host}:9100"', f'Hostname="n{host}",gpu="0"'
            lines.append(sample("node_pressure_cpu_waiting_seconds_total", node, total, at))
            lines.append(sample("DCGM_FI_DEV_POWER_USAGE", card, power(at) + host, at))
    facts, source = facts_of(tmp_path, lines, stepping(7150) if dated else None)
    if dated:
        return [one.question for one in unsettled(facts, paced=True)]
    found = list(unpaced(facts))
    for cite in (cite for _, shown in found for cite in shown.cites):
        assert source.replay(cite) == cite.value  # type: ignore[arg-type]
    return [question.partition(":")[0] for question, _ in found]


CPU, LESS = (
    "Whether waiting for a CPU slowed the run",
    "Whether the run was slower while its GPUs drew less",
)


@pytest.mark.parametrize(
    ("waits", "power", "questions"),
    [
        (lambda at: 0.01, lambda at: 600.0, []),
        (lambda at: 0.8 * at / 7200, lambda at: 600.0, [CPU]),
        (lambda at: 0.8 * (at > 6900), lambda at: 600.0, []),
        (lambda at: 0.01, lambda at: 600.0 if at < 4000 else 450.0, [LESS]),
        (lambda at: 0.01, lambda at: 600.0 if at < 6900 else 450.0, []),
        (lambda at: 0.01, lambda at: 600.0 if at < 4000 else 570.0, []),
        (lambda at: 0.01, lambda at: 100.0 if at < 1500 else 600.0, []),
    ],
    ids=["calm", "more and more wait", "wait as it ends", "draw less", "draw less as it ends",
         "draw a little less", "set up for long"],
)  # fmt: skip
def test_what_only_the_pace_could_tell(
    tmp_path: Path, waits: Level, power: Level, questions: list[str]
) -> None:
    assert asked(tmp_path, waits, power) == questions


def test_a_pace_that_holds_settles_it(tmp_path: Path) -> None:
    assert asked(tmp_path, lambda at: 0.5, lambda at: 600.0 if at < 4000 else 450.0, True) == []
