"""B3 of a card that is far hotter than all others and clocks below them all through the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from families.fleet import facts_of, sample, stepping
from flatline.judging.held_low import held_low
from flatline.model import Place

ENDS = 3600


def low(
    tmp_path: Path,
    *,
    clock: float = 1215,
    heat: float = 88,
    util: float = 97,
    power: float = 310,
    cards: int = 8,
    other: float = 56,
) -> Place | None:
    """Card 2 of the second of two hosts; the others are alike."""
    lines = []
    for host in range(2):
        for gpu in range(cards):
            own = (host, gpu) == (1, 2)
            read = {
                "DCGM_FI_DEV_SM_CLOCK": clock if own else 1410,
                "DCGM_FI_DEV_GPU_TEMP": heat if own else other + gpu % 3,
                "DCGM_FI_DEV_POWER_USAGE": power if own else 305 + gpu % 4,
                "DCGM_FI_DEV_GPU_UTIL": util if own else 97,
            }
            labels = f'gpu="{gpu}",Hostname="n{host}",modelName="A100"'
            lines += [sample(name, labels, value + at // 30 % 2 / 10, at)
                      for name, value in read.items() for at in range(0, ENDS, 30)]  # fmt: skip
    facts, _ = facts_of(tmp_path, lines, stepping(ENDS, lambda at: 6.0 + at % 7 / 100))
    found = held_low(facts)
    if found is None or not found.hot:
        return None
    assert any("°C" in one.text for one in found.shows)
    return found.places[0]


@pytest.mark.parametrize("power", [310.0, 330.0])
def test_heat_holds_it_whatever_it_draws(tmp_path: Path, power: float) -> None:
    assert low(tmp_path, power=power) == Place(host="n1", gpu="2")


@pytest.mark.parametrize(
    "changed",
    [{"clock": 1380.0}, {"heat": 66.0}, {"heat": 72.0}, {"util": 60.0}, {"cards": 3},
     {"other": 80.0}],
    ids=["a little lower", "ten degrees", "not hot", "less to do", "few cards", "all are hot"],
)  # fmt: skip
def test_near_misses(tmp_path: Path, changed: dict[str, float]) -> None:
    assert low(tmp_path, **changed) is None  # type: ignore[arg-type]
